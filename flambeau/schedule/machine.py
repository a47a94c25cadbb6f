"""The few facts about a CPU that loops are planned with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """Vector width and registers, caches in bytes."""

    vector_bytes: int = 64
    registers: int = 32
    masked_memory: bool = True  # masked loads and stores cost about as much as plain ones
    level1_bytes: int = 32 * 1024
    level2_bytes: int = 1024 * 1024

"""What a CPU offers to generated code: vector width, registers, cache sizes, dot products.

Code depends on the features and never on the vendor. ``FLAMBEAU_CPU`` (``avx512``, ``avx2``,
``baseline``) or `restricted` masks features, so that every path runs on one machine.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flambeau.codegen.text import size_of
from flambeau.runtime import jit, tiles

LEVELS = {"avx512": "x86-64-v4", "avx2": "x86-64-v3", "baseline": "x86-64"}
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Target:
    """One CPU as the code generator sees it."""

    architecture: str  # x86_64, aarch64 or another of LLVM's names
    cpu: str  # LLVM's name of the processor
    features: str  # LLVM's comma-separated feature list
    vector_bytes: int
    vector_registers: int
    masked_memory: bool  # masked loads and stores cost about as much as plain ones
    fused_multiply_add: bool
    bfloat16_dot: bool  # avx512_bf16's dpbf16ps
    bfloat16_tiles: bool = False  # amx_bf16's tile registers, with the system's permission
    level1_bytes: int = 32 * _KIB
    level2_bytes: int = 1024 * _KIB
    level3_bytes: int = 16 * 1024 * _KIB

    def lanes(self, element: str = "float") -> int:
        """Elements of an LLVM scalar type in one vector register."""
        return max(1, self.vector_bytes // size_of(element))

    @property
    def vector_bits(self) -> int:
        return self.vector_bytes * 8


def x86_target(cpu: str, features: frozenset[str], text: str, caches: dict[str, int]) -> Target:
    wide = {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= features
    medium = "avx2" in features
    return Target(
        architecture="x86_64",
        cpu=cpu,
        features=text,
        vector_bytes=64 if wide else 32 if medium else 16,
        vector_registers=32 if wide else 16,
        masked_memory=wide,
        fused_multiply_add="fma" in features,
        bfloat16_dot=wide and "avx512bf16" in features,
        bfloat16_tiles=wide and {"amx-tile", "amx-bf16"} <= features and tiles.permitted(),
        **caches,
    )


def neon_target(cpu: str, text: str, caches: dict[str, int]) -> Target:
    return Target("aarch64", cpu, text, 16, 32, False, True, False, **caches)


def restrict(target: Target, level: str) -> Target:
    """The same machine with only the features of ``avx512``, ``avx2`` or ``baseline``."""
    if target.architecture != "x86_64" or level == "native":
        return target
    if level not in LEVELS:
        raise ValueError(f"FLAMBEAU_CPU: must be one of {sorted(LEVELS)} or native; got {level!r}")
    medium = {"avx2", "fma"} if level != "baseline" else set()
    wide = {"avx512f", "avx512vl", "avx512bw", "avx512dq"} if level == "avx512" else set()
    if (wide and target.vector_bytes < 64) or (medium and target.vector_bytes < 32):
        return target
    caches = {n: getattr(target, n) for n in ("level1_bytes", "level2_bytes", "level3_bytes")}
    return x86_target(LEVELS[level], frozenset(medium | wide), "", caches)


@functools.cache
def _host() -> Target:
    architecture, cpu, text = jit.host()
    caches = cache_sizes()
    on = frozenset(f[1:] for f in text.split(",") if f[:1] == "+")
    if architecture == "x86_64":
        return x86_target(cpu, on, text, caches)
    if architecture == "aarch64":
        return neon_target(cpu, text, caches)
    return Target(architecture, cpu, text, 16, 16, False, False, False, **caches)


def cache_sizes(root: str = "/sys/devices/system/cpu/cpu0/cache") -> dict[str, int]:
    """Data cache sizes in bytes as the kernel reports them; nothing for what it does not."""
    sizes: dict[str, int] = {}
    try:
        for entry in os.listdir(root):
            if not entry.startswith("index"):
                continue
            level, kind, size = (_line(f"{root}/{entry}/{n}") for n in ("level", "type", "size"))
            if kind != "Instruction" and size.endswith("K"):
                sizes[f"level{level}_bytes"] = int(size[:-1]) * _KIB
    except (OSError, ValueError):
        return {}
    return {n: s for n, s in sizes.items() if n in ("level1_bytes", "level2_bytes", "level3_bytes")}


def _line(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


_chosen: list[Target] = []


def host() -> Target:
    """The target that code is generated for now."""
    if not _chosen:
        _chosen.append(restrict(_host(), os.environ.get("FLAMBEAU_CPU", "native")))
    return _chosen[-1]


@contextmanager
def restricted(level: str) -> Iterator[Target]:
    """Generate for fewer features inside the block (for tests)."""
    _chosen.append(restrict(_host(), level))
    try:
        yield _chosen[-1]
    finally:
        _chosen.pop()

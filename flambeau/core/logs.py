"""What the compiler shows of its stages: `FLAMBEAU_LOGS=graph,loops`, or `set_logs(graph=True)`.

Each stage is a logger, `flambeau.graph` and so on. Where the program has configured logging,
records go there; elsewhere they go to standard error, each under a line that names its stage. While
nothing is asked for, `show` and `timed` return at once and `logging` is not imported.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from flambeau.core.errors import ValueRangeError, complaint

STAGES = {
    "graph": "the captured graph: equations over tensors",
    "guards": "what a captured graph relies on, tested at every call",
    "breaks": "where and why a graph ends and plain Python goes on",
    "program": "the Python that a captured frame becomes",
    "loops": "loop nests, as they reach the scheduler",
    "schedule": "what is fused, which loop becomes vectors, how work is cut for threads",
    "llvm": "LLVM IR as text",
    "asm": "assembly of this machine",
    "time": "seconds that each stage takes, and what came from the cache",
}
SYNONYMS = {
    "aot_graphs": "graph",
    "aot_joint_graph": "graph",
    "dynamo": "breaks",
    "fusion": "schedule",
    "graph_breaks": "breaks",
    "graph_code": "graph",
    "inductor": "schedule",
    "ir_post_fusion": "schedule",
    "ir_pre_fusion": "loops",
    "kernel_code": "llvm",
    "output_code": "llvm",
    "perf_hints": "breaks",
    "recompiles": "guards",
}
"""What PyTorch's `TORCH_LOGS` and `set_logs` call the nearest thing."""

on: set[str] = set()
"""Stages that are shown now."""


def chosen(names: Iterable[str]) -> set[str]:
    """The stages of these names; `all` is every one. Unknown names raise, and name the known."""
    wanted: set[str] = set()
    for given in names:
        name = given.strip().lstrip("+-").lower()
        if name == "all":
            wanted |= STAGES.keys()
        elif (stage := SYNONYMS.get(name, name)) in STAGES:
            wanted.add(stage)
        elif name:
            known = ", ".join(STAGES)
            must = f"a stage is one of {known}, all"
            raise ValueRangeError(complaint("FLAMBEAU_LOGS", must, {"stage": name}))
    return wanted


def set_logs(**stages: Any) -> None:
    """Show exactly these stages from now on: `set_logs(graph=True, llvm=True)`, `set_logs(all=1)`.

    Without arguments, what `FLAMBEAU_LOGS` says. A level of `logging` counts as yes.
    """
    names = [name for name, wanted in stages.items() if wanted]
    new = chosen(names) if stages else _of_environment()
    on.clear()
    on.update(new)


def _of_environment() -> set[str]:
    """The stages that `FLAMBEAU_LOGS` asks for; a wrong name warns and is left out."""
    wanted: set[str] = set()
    for name in os.environ.get("FLAMBEAU_LOGS", "").split(","):
        try:
            wanted |= chosen([name])
        except ValueRangeError as error:
            warnings.warn(str(error), stacklevel=2)
    return wanted


def show(stage: str, title: str, what: Any = "") -> None:
    """Write `what` (a value with a text, or a function that gives one) where the stage is on."""
    if stage not in on:
        return
    import logging

    text = str(what() if callable(what) else what).rstrip()
    text = f"[{stage}] {title}" + (f"\n{text}\n" if text else "")
    logger = logging.getLogger(f"flambeau.{stage}")
    if logger.hasHandlers():
        logger.setLevel(logging.DEBUG)
        logger.debug("%s", text)
    else:
        print(text, file=sys.stderr)


class timed:
    """`with timed("LLVM"):` shows the seconds of the block where `time` is on."""

    __slots__ = ("start", "title")

    def __init__(self, title: str):
        self.title = title

    def __enter__(self) -> timed:
        self.start = time.perf_counter()
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if "time" in on:
            show("time", f"{self.title}: {(time.perf_counter() - self.start) * 1e3:.1f} ms")


set_logs()

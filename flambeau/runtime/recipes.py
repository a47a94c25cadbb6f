"""What a generator has made of its parameters, so that a second process need not generate.

Generating a kernel's text takes longer than reading its object from the disk cache. A recipe is a
small entry of the same cache: from the parameters and the sources of the generator to the object's
key, the names in it and the facts that its caller needs.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from flambeau.core import logs
from flambeau.runtime import jit, object_cache, pool

Facts = dict[str, Any]
"""What JSON can say."""
SOURCES = ("codegen", "core", "ir", "loops", "runtime", "schedule")


def library(
    parameters: tuple, generate: Callable[[], tuple[str, Facts]], *, cpu: str, features: str,
    level: int,
) -> tuple[jit.Library, Facts]:
    """The library of the text that `generate` gives for `parameters`, and its facts."""
    name = named(parameters, cpu, features, level)
    with _guard:
        flight = _flights.get(name)
        first = flight is None
        flight = _flights.setdefault(name, _Flight())
    if not first:
        flight.landed.wait()
        if flight.result is not None:
            return flight.result
    try:
        found = None if logs.on else _known(name)
        flight.result = found or _generated(name, generate, cpu, features, level)
        return flight.result
    finally:
        with _guard:
            _flights.pop(name, None)
        flight.landed.set()


class _Flight:
    """One thread makes what others wait for; where it fails they try for themselves."""

    __slots__ = ("landed", "result")

    def __init__(self) -> None:
        self.landed = threading.Event()
        self.result: tuple[jit.Library, Facts] | None = None


_guard = threading.Lock()
_flights: dict[str, _Flight] = {}


def _renew() -> None:
    """A child has none of the threads that it might wait for."""
    global _guard
    _guard = threading.Lock()
    _flights.clear()


os.register_at_fork(after_in_child=_renew)


def _generated(
    name: str, generate: Callable[[], tuple[str, Facts]], cpu: str, features: str, level: int
) -> tuple[jit.Library, Facts]:
    jit.tell_watchers()
    text, facts = generate()
    made = jit.load(text, cpu=cpu, features=features, level=level)
    record = {"object": made.key, "names": made.names, "facts": facts}
    object_cache.write(name, json.dumps(record).encode())
    return made, facts


def _known(name: str) -> tuple[jit.Library, Facts] | None:
    content = object_cache.read(name)
    if content is None:
        return None
    record = json.loads(content)
    made = jit.known(record["object"], record["names"])
    return None if made is None else (made, record["facts"])


def named(*facts: Any) -> str:
    """A name in the cache that holds for these facts, this code and this machine."""
    state = hashlib.blake2b(digest_size=20)
    cpus = pool.capacity(), pool.machine_cpus()
    state.update(f"{described(facts)} {_sources()} {cpus} {jit.versions()}".encode())
    return f"r{state.hexdigest()}"


def described(fact: Any) -> str:
    """Parameters as text that another process gives too; what computes stands by its name."""
    if isinstance(fact, tuple):
        return "(" + ", ".join(map(described, fact)) + ")"
    if hasattr(fact, "apply"):
        return fact.name
    if is_dataclass(fact) and not isinstance(fact, type):
        parts = (f"{f.name}={described(getattr(fact, f.name))}" for f in fields(fact))
        return f"{type(fact).__name__}({', '.join(parts)})"
    return repr(fact)


@functools.cache
def _sources() -> str:
    """A digest of the generator's own code: other code makes other text."""
    state = hashlib.blake2b(digest_size=20)
    root = Path(__file__).parents[1]
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            state.update(path.read_bytes())
    return state.hexdigest()

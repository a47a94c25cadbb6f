"""Writing the Python function that is a captured program.

A program tests its guards, reads what it needs, runs the graph and replays what the frame changed.
The general form reads every path in every call. The settled form serves the objects of one caller:
what an `Observation` vouches for is neither read nor tested, but held by one native comparison.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau.capture import modes, words
from flambeau.capture.guards import (
    UNREADABLE,
    Guard,
    Wanted,
    Writer,
    condition,
    parameter,
    write_guards,
)
from flambeau.capture.observation import OPEN, Observation
from flambeau.capture.scalars import Term
from flambeau.capture.sources import EXPRESSION, Source

MISS: Any = type("Miss", (), {"__repr__": lambda self: "MISS"})()
"""What a program returns when its guards do not hold."""
FAILED: Any = type("Failed", (), {"__repr__": lambda self: "FAILED"})()
"""What it returns when its graph raised an error before anything was changed."""


class Recipe(NamedTuple):
    """All that is needed to write a program."""

    arguments: tuple[str, ...]
    guards: list[Guard]
    wanted: Wanted
    """Paths that the replay reads, under the names it uses."""
    inputs: list[Source]
    numbers: list[Term]
    execute: Callable | None
    """inputs and numbers -> outputs, None if the graph failed untouched."""
    outputs: list[str]
    tail: list[str]
    """Lines behind the call of `execute`, the return of the result among them."""

    @property
    def parameters(self) -> list[str]:
        return ["function", *map(parameter, self.arguments)]

    def sources(self) -> list[Source]:
        """Every path that is read beside the guards."""
        return [*self.wanted.sources.values(), *self.inputs]

    def observed(self, volatile: frozenset, function: Any, values: tuple[Any, ...]) -> Observation:
        """What the objects of this call vouch for."""
        arguments = dict(zip(self.arguments, values))
        return Observation(self.guards, self.sources(), volatile, function, arguments)


def general(recipe: Recipe) -> Callable:
    """The program that tests and reads everything."""
    writer = _sharing_names(Writer(), recipe)
    miss = f"return {writer.constant(MISS)}"
    texts: list[str] = []
    write_guards(writer, recipe.guards, miss, lambda: texts.extend(_reads(writer, recipe)))
    _write_rest(writer, recipe, texts)
    return writer.function("program", recipe.parameters)


def _sharing_names(writer: Any, recipe: Recipe) -> Any:
    """Both forms use the tail, so constants must have the names they have there."""
    writer.names, writer.constants = dict(recipe.wanted.names), dict(recipe.wanted.constants)
    return writer


def _reads(writer: Writer, recipe: Recipe) -> list[str]:
    recipe.wanted.write(writer)
    return [writer.path(s) for s in recipe.inputs] + [n.text(writer) for n in recipe.numbers]


def _write_rest(writer: Writer, recipe: Recipe, inputs: list[str]) -> None:
    if recipe.execute is not None:
        writer.line(f"found = {writer.constant(recipe.execute)}({', '.join(inputs)})")
        writer.line(f"if found is None: return {writer.constant(FAILED)}")
    if recipe.outputs:
        writer.line(f"{', '.join(recipe.outputs)}, = found")
    writer.lines += recipe.tail


class SettledWriter(Writer):
    """Paths to settled objects are constants; arguments are never held."""

    def __init__(self, seen: Observation):
        super().__init__()
        self.seen = seen

    def path(self, source: Source) -> str:
        if source.kind != "local":
            value = self.seen.value(source)
            if value is not OPEN:
                return self.constant(value)
        return super().path(source)

    def read_anew(self, source: Source) -> str:
        """The path read in this call, although its object is known."""
        if source.base is None:
            return "function" if source.kind == "function" else super().path(source)
        key = self.path(source.key) if isinstance(source.key, Source) else source.key
        if source.kind == "item" and not isinstance(source.key, Source):
            key = self.constant(source.key)
        if source.kind == "entry":
            return f"{self.instance_dict(source.base)}[{key!r}]"
        return EXPRESSION[source.kind].format(base=self.path(source.base), key=key)


class Settled:
    """A program for the objects that `seen` has observed; `otherwise` takes every other call."""

    def __init__(self, recipe: Recipe, seen: Observation, otherwise: Callable):
        self.seen, self.otherwise = seen, otherwise
        self.table = words.table(itertools.chain(*seen.words.values()))
        self.program = self._written(recipe, _sharing_names(SettledWriter(seen), recipe))

    @property
    def calls(self) -> int:
        """How many calls it has answered."""
        return words.times_held(self.table)

    def _written(self, recipe: Recipe, writer: SettledWriter) -> Callable:
        miss = f"return {writer.constant(self.otherwise)}({', '.join(recipe.parameters)})"
        compare = words.hold()
        assert compare is not None
        writer.line("try:")
        writer.depth += 1
        writer.line(f"if not {writer.constant(compare)}({writer.constant(self)}.table): {miss}")
        self._write_pins(writer, miss)
        for guard in self.seen.open_guards:
            writer.line(f"if not ({open_condition(guard, writer)}): {miss}")
        texts = _reads(writer, recipe)
        writer.depth -= 1
        errors = f"({UNREADABLE})"
        writer.line(f"except {errors}: {miss}")
        _write_rest(writer, recipe, texts)
        return writer.function("program", recipe.parameters)

    def _write_pins(self, writer: SettledWriter, miss: str) -> None:
        for source, identity in self.seen.pins.values():
            text = writer.read_anew(source)
            if source.kind == "local":
                writer.line(f"if id({text}) != {identity}: {miss}")
            else:
                writer.line(f"if {text} is not {writer.path(source)}: {miss}")


def open_condition(guard: Guard, writer: SettledWriter) -> str:
    """The part of a guard that the observation does not vouch for."""
    if guard.kind == "test" and guard.source is None and writer.seen.switches:
        text = modes.attributes_text(guard.expected.call, writer.constant)
        return condition(guard, writer) if text is None else text
    if guard.kind == "distinct":
        return _distinct(guard, writer) or condition(guard, writer)
    if guard.kind == "apart":
        return _apart(guard, writer) or condition(guard, writer)
    return condition(guard, writer)


def _parted(sources: list[Source], seen: Observation) -> tuple[list[Any], list[Source]]:
    """(settled objects, paths of the others)."""
    values = [seen.value(s) for s in sources]
    settled = [v for v in values if v is not OPEN]
    return settled, [s for s, v in zip(sources, values) if v is OPEN]


def _pairs(names: list[str]) -> list[tuple[str, str]]:
    return list(itertools.combinations(names, 2))


FEW = 4
"""Open paths up to which objects are compared one by one."""


def _distinct(guard: Guard, writer: SettledWriter) -> str:
    """Objects that are read in this call are none of the settled ones, nor each other."""
    settled, rest = _parted(list(guard.expected), writer.seen)
    if len(rest) > FEW:
        return ""
    names = [writer.path(s) for s in rest]
    known = writer.constant(frozenset(map(id, settled)))
    tests = [f"id({n}) not in {known}" for n in names]
    return " and ".join(tests + [f"{a} is not {b}" for a, b in _pairs(names)])


def _apart(guard: Guard, writer: SettledWriter) -> str:
    """The same for memory, where every open tensor has its own."""
    seen = writer.seen
    groups = [g for g in guard.expected if any(seen.value(s) is OPEN for s in g)]
    settled, rest = _parted([s for g in guard.expected for s in g], seen)
    vouched = all(seen.vouches_for_slot(v, "_storage") for v in settled)
    if not vouched or len(rest) > FEW or any(len(g) > 1 for g in groups):
        return ""
    names = [writer.path(s) for s in rest]
    known = writer.constant(frozenset(id(v._storage) for v in settled if v._storage is not None))
    free = [f"({n}._storage is None or id({n}._storage) not in {known})" for n in names]
    free += [
        f"({a}._storage is None or {a}._storage is not {b}._storage)" for a, b in _pairs(names)
    ]
    return " and ".join(free)

"""Guards: what must hold for a captured program to answer for a call.

A guard is a test on one path. All guards of a program become one generated function, in which every
common prefix of the paths is read once; paths that the program needs as inputs are read there too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from flambeau.capture.sources import EXPRESSION, Source

UNREADABLE = "AttributeError, LookupError, TypeError, ValueError, ArithmeticError"
"""What reading a path, or computing with numbers found there, may raise."""
LITERALS = (str, int, bool, bytes, type(None))


class Guard:
    """`kind` of test on the object at `source`, with the expected value(s)."""

    __slots__ = ("expected", "kind", "source")

    def __init__(self, source: Source | None, kind: str, expected: Any = None):
        self.source, self.kind, self.expected = source, kind, expected

    @property
    def mark(self) -> tuple:
        """Equal for guards that test the same thing."""
        expected = self.expected
        if not isinstance(expected, LITERALS):
            expected = id(expected)
        return (id(self.source), self.kind, type(self.expected), expected)

    def wanted(self) -> str:
        """What must hold of the object."""
        return DESCRIBE[self.kind](self.expected)

    def __repr__(self) -> str:
        return self.wanted() if self.source is None else f"{self.source!r}: {self.wanted()}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."


DESCRIBE: dict[str, Callable[[Any], str]] = {
    "is": lambda e: f"is {_short(e)}",
    "type": lambda e: f"has type {e.__qualname__}",
    "equals": lambda e: f"== {_short(e)}",
    "length": lambda e: f"has length {e}",
    "keys": lambda e: f"has keys {_short(e)}",
    "code": lambda e: f"is a function with the code of {e.co_qualname}",
    "absent": lambda e: f"has no own attribute {e!r}",
    "unset": lambda e: f"has no attribute {e!r}",
    "missing": lambda e: f"has no key {e!r}",
    "present": lambda e: f"has key {e!r}",
    "same": lambda e: f"is the same object as {e!r}",
    "distinct": lambda e: "are different objects: " + ", ".join(map(repr, e)),
    "test": lambda e: e.description,
    "apart": lambda e: "share memory in the same way",
    "like": lambda e: f"is {e[0].__name__} {e[1].dtype.name}{list(e[4])}",
    "tensor": lambda e: f"is {e[0].__name__} {e[1]!r}" + (" requiring grad" if e[2] else ""),
    "symbolic": lambda e: f"{e[0]!r} is {e[1]}",
}


class Test:
    """A guard written as a callable, for kinds that other layers bring (tensors, modes)."""

    __slots__ = ("call", "description")

    def __init__(self, call: Callable[..., bool], description: str):
        self.call, self.description = call, description


def parameter(name: str) -> str:
    """The name under which a program gets an argument, which may be `.0` or `@py_assert1`."""
    return "a_" + re.sub(r"\W", lambda found: f"x{ord(found[0])}x", name)


class Writer:
    """Collects the body of a generated function: lines, constants, and one variable a path."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.paths: dict[int, str] = {}
        self.depth = 1

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def constant(self, value: Any) -> str:
        """A literal, or a name bound to the object."""
        if value is None or value is True or value is False or value is Ellipsis:
            return repr(value)
        if type(value) in (int, str, bytes):
            return repr(value)
        if type(value) is float and math.isfinite(value):
            return repr(value)
        name = self.names.get(id(value))
        if name is None:
            name = self.names[id(value)] = f"c{len(self.names)}"
            self.constants[name] = value
        return name

    def fresh(self, text: str, prefix: str = "v") -> str:
        """A new variable holding the value of an expression."""
        name = f"{prefix}{len(self.lines)}"
        self.line(f"{name} = {text}")
        return name

    def path(self, source: Source) -> str:
        """The variable that holds the object at `source`, read here on first use."""
        found = self.paths.get(id(source))
        if found is None:
            found = self.paths[id(source)] = self._read(source)
        return found

    def _read(self, source: Source) -> str:
        if source.base is None:
            if source.kind == "local":
                return parameter(source.key)
            return "function" if source.kind == "function" else self.constant(source.key)
        base = self.path(source.base)
        if source.kind == "entry":
            return self.fresh(f"{self.instance_dict(source.base)}[{source.key!r}]")
        key = source.key
        if source.kind == "item":
            key = self.path(key) if isinstance(key, Source) else self.constant(key)
        return self.fresh(EXPRESSION[source.kind].format(base=base, key=key))

    def instance_dict(self, source: Source) -> str:
        """The variable that holds `source.__dict__`."""
        return self.path(source.step("attribute", "__dict__"))

    def function(self, name: str, parameters: Iterable[str]) -> Callable:
        """Compile the lines; constants are default arguments, the fastest names there are."""
        head = ", ".join([*parameters, *(f"{c}={c}" for c in self.constants)])
        text = f"def {name}({head}):\n" + "\n".join(self.lines) + "\n"
        namespace = dict(self.constants)
        exec(compile(text, f"<flambeau {name}>", "exec"), namespace)
        made = namespace[name]
        made.source_text = text
        return made


class Wanted(Writer):
    """Names for paths that are read later, when every guard has held: a read may have an effect
    (the missing key of a defaultdict) where the object is not the expected one."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: dict[str, Source] = {}

    def path(self, source: Source) -> str:
        if source.base is None:
            return super().path(source)
        found = self.paths.get(id(source))
        if found is None:
            found = self.paths[id(source)] = f"p{len(self.sources)}"
            self.sources[found] = source
        return found

    def write(self, writer: Writer) -> None:
        """Read them all."""
        for name, source in self.sources.items():
            writer.line(f"{name} = {writer.path(source)}")


def condition(guard: Guard, writer: Writer) -> str:
    """The Python expression that is true while the guard holds."""
    expected, kind = guard.expected, guard.kind
    if kind == "distinct":
        names = [writer.path(s) for s in expected]
        return f"len({{{', '.join(f'id({n})' for n in names)}}}) == {len(names)}"
    if kind == "apart":
        names = ["(" + "".join(writer.path(s) + ", " for s in g) + ")" for g in expected]
        return f"{writer.constant(memory_is_apart)}(({', '.join(names)},))"
    if kind == "symbolic":
        return f"{expected[0].text(writer)} is {expected[1]}"
    if kind == "test" and guard.source is None:
        return f"{writer.constant(expected.call)}()"
    assert guard.source is not None
    if kind == "absent":
        return f"{expected!r} not in {writer.instance_dict(guard.source)}"
    value = writer.path(guard.source)
    if kind == "equals":
        return _equality(value, expected, writer)
    if kind == "like":
        return _like(value, expected, writer)
    if kind == "tensor":
        return _tensor(value, expected, writer)
    if kind == "same":
        return f"{value} is {writer.path(expected)}"
    if kind == "test":
        return f"{writer.constant(expected.call)}({value})"
    return _SIMPLE[kind].format(value=value, expected=writer.constant(expected))


_SIMPLE = {
    "is": "{value} is {expected}",
    "type": "type({value}) is {expected}",
    "length": "len({value}) == {expected}",
    "keys": "tuple({value}) == {expected}",
    "code": "{value}.__code__ is {expected}",
    "unset": "not hasattr({value}, {expected})",
    "missing": "{expected} not in {value}",
    "present": "{expected} in {value}",
}


def memory_is_apart(groups: tuple[tuple, ...]) -> bool:
    """Tensors of one group share a storage; no two groups do.

    A tensor whose storage nobody has asked for shares it with none.
    """
    seen: set[int] = set()
    for group in groups:
        storages = {id(t._storage) for t in group if t._storage is not None}
        if len(storages) > 1 or (len(group) > 1 and not storages) or not seen.isdisjoint(storages):
            return False
        seen |= storages
    return True


def _tensor(value: str, facts: tuple, writer: Writer) -> str:
    """Same class, spec, need of gradients, and whether it is a leaf."""
    kind, spec, needs, leaf, _ = facts
    known = writer.constant(spec)
    same = f"({value}._spec is {known} or repr({value}._spec) == {repr(spec)!r})"
    history = "is" if leaf else "is not"
    return (
        f"type({value}) is {writer.constant(kind)} and {same} "
        f"and {value}._requires_grad is {needs} and {value}._node {history} None"
    )


def _like(value: str, facts: tuple, writer: Writer) -> str:
    """The same but for the sizes that are None; contiguous."""
    kind, spec, needs, leaf, sizes = facts
    now = writer.fresh(f"{value}._spec")
    tests = [
        f"type({value}) is {writer.constant(kind)}",
        f"{now}.dtype is {writer.constant(spec.dtype)}",
        f"{now}.is_contiguous and {now}.ndim == {spec.ndim}",
        f"{now}.device == {writer.constant(spec.device)}",
        f"{value}._requires_grad is {needs}",
        f"{value}._node {'is' if leaf else 'is not'} None",
        f"{value}._base is None",
    ]
    tests += [f"{now}.shape[{k}] == {n}" for k, n in enumerate(sizes) if n is not None]
    return " and ".join(tests)


def _equality(value: str, expected: Any, writer: Writer) -> str:
    kind = writer.constant(type(expected))
    if type(expected) is float and not expected:
        sign = writer.constant(math.copysign)
        return f"type({value}) is {kind} and {value} == 0 and {sign}(1, {value}) == " + str(
            math.copysign(1, expected)
        )
    if type(expected) is float and expected != expected:
        return f"type({value}) is {kind} and {value} != {value}"
    return f"type({value}) is {kind} and {value} == {writer.constant(expected)}"


def write_guards(
    writer: Writer,
    guards: Iterable[Guard],
    failed: str,
    more: Callable[[], None] = lambda: None,
) -> None:
    """Append the tests; a guard that fails, or cannot be evaluated, executes `failed`.

    `more` writes lines that belong to the same guarded block.
    """
    writer.line("try:")
    writer.depth += 1
    writer.line("pass")
    for guard in guards:
        test = condition(guard, writer)
        writer.line(f"if not ({test}): {failed}")
    more()
    writer.depth -= 1
    writer.line(f"except ({UNREADABLE}): {failed}")


def failing(
    guards: Iterable[Guard], arguments: dict[str, Any], function: Any
) -> list[Guard]:
    """The guards that do not hold."""
    given, writer = list(guards), Writer()
    writer.line("found = []")
    for at, guard in enumerate(given):
        write_guards(writer, [guard], f"found.append({at})")
        writer.paths.clear()  # what another guard reads may not be there
    writer.line("return found")
    check = writer.function("check", ["function", *map(parameter, arguments)])
    return [given[at] for at in check(function, *arguments.values())]


def failures(
    guards: Iterable[Guard], arguments: dict[str, Any], function: Any
) -> list[tuple[Guard, str]]:
    """The guards that do not hold, each with the value found now."""
    found = []
    for guard in failing(guards, arguments, function):
        try:
            now = _short(guard.source.value(arguments, function)) if guard.source else "changed"
        except Exception:
            now = "gone"
        found.append((guard, now))
    return found

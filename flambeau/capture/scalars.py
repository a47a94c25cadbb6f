"""Symbolic numbers: Python numbers that may change from call to call without a new capture.

They come from two sides: numbers that existed before the frame (a learning rate, a step count) and
numbers taken out of tensors (`loss.item()`). They are subclasses of float and int, so library code
accepts them, and record what is computed with them. The float inside is NaN: C code that reads it
behind our back leaves a NaN that the end of the capture finds. Decisions on a number that is known
now become guards; decisions on a number from a tensor break the graph.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from flambeau.capture.breaks import GraphBreak
from flambeau.capture.guards import Guard, Writer
from flambeau.capture.sources import Source
from flambeau.core.spec import WEAK
from flambeau.graph import Equation, Value
from flambeau.graph.numbers import FUNCTIONS, PREFIX

SIGNS = dict(add="+", sub="-", mul="*", truediv="/", floordiv="//", mod="%", pow="**")
SIGNS |= dict(lt="<", le="<=", gt=">", ge=">=", eq="==", ne="!=")
UNKNOWN: Any = object()
"""The hint of a number that only the running graph knows."""


class Term:
    """How a number is computed: a path, a graph value, or a function of others."""

    __slots__ = ("args", "foreseen", "hint", "lower", "mark", "name", "scalars", "source", "value")

    def __init__(
        self,
        scalars: Scalars,
        hint: Any,
        *,
        source: Source | None = None,
        name: str = "",
        args: tuple = (),
        value: Value | None = None,
    ):
        self.scalars, self.hint, self.source = scalars, hint, source
        self.name, self.args, self.value = name, args, value
        self.foreseen: Term | None = None
        self.lower = _lower_bound(name, args)
        self.mark = id(source) if source is not None else id(self)
        if name == "mul":
            self.mark = (name, *sorted((f for a in args for f in _factors(a)), key=repr))
        elif name:
            self.mark = (name, *map(_mark, args))

    def __repr__(self) -> str:
        if self.source is not None:
            return repr(self.source)
        if not self.name:
            return "<number of the graph>"
        parts = [repr(a) for a in self.args]
        sign = SIGNS.get(self.name)
        return f"({f' {sign} '.join(parts)})" if sign else f"{self.name}({', '.join(parts)})"

    def text(self, writer: Writer) -> str:
        """Python text over the paths; only for numbers that are known before the graph runs."""
        if self.source is not None:
            return writer.path(self.source)
        parts = [a.text(writer) if isinstance(a, Term) else writer.constant(a) for a in self.args]
        return f"{writer.constant(FUNCTIONS[self.name])}({', '.join(parts)})"

    def shifted(self, shift: int) -> Any:
        """The value when all integers from before the frame are larger by so much."""
        if self.source is not None:
            counts = type(self.hint) is int and self.source.kind != "number"
            return self.hint + shift if counts else self.hint
        return FUNCTIONS[self.name](
            *[a.shifted(shift) if isinstance(a, Term) else a for a in self.args]
        )

    def holds_for(self, shift: int, answer: Any) -> bool:
        """Whether a decision is the same then."""
        try:
            return self.shifted(shift) is answer
        except (ArithmeticError, ValueError):
            return False

    @property
    def depends_on_graph(self) -> bool:
        return not self.known

    @property
    def known(self) -> bool:
        return self.hint is not UNKNOWN


def foreseen(term: Any) -> Any:
    """The same number as it can be computed before the graph runs, None if it cannot."""
    if not isinstance(term, Term) or term.known:
        return term
    if term.foreseen is None and term.args:
        args = [foreseen(a) for a in term.args]
        if None not in args:
            term.foreseen = term.scalars.compute(term.name, *args)
    return term.foreseen


def _mark(arg: Any) -> Any:
    """Equal for operands that are computed in the same way."""
    return arg.mark if isinstance(arg, Term) else (type(arg), arg)


def _factors(arg: Any) -> tuple:
    """Products are equal in any order."""
    if isinstance(arg, Term) and arg.name == "mul":
        return arg.mark[1:]
    return (_mark(arg),)


def _lower_bound(name: str, args: tuple) -> float:
    """No integer value of the term is below; sizes start at 2."""
    bounds = [a.lower if isinstance(a, Term) else a for a in args]
    if name == "add":
        return sum(bounds)
    if name == "mul" and all(b >= 0 for b in bounds):
        return math.prod(bounds)
    return -math.inf


def _settled(name: str, terms: tuple) -> bool | None:
    """The answer to a comparison that needs no guard."""
    left, right = terms
    if _mark(left) == _mark(right):
        return name in ("eq", "le", "ge")
    if isinstance(left, Term) and not isinstance(right, Term) and left.lower > right:
        return name in ("ne", "gt", "ge")
    if isinstance(right, Term) and not isinstance(left, Term) and right.lower > left:
        return name in ("ne", "lt", "le")
    return None


NEUTRAL = {"mul": (1, True), "add": (0, True), "sub": (0, False), "floordiv": (1, False)}
"""Operand that changes nothing, and whether on either side."""


class SymbolicFloat(float):
    """A float whose value is a term."""

    term: Term


class SymbolicInt(int):
    """An int whose value is a term. Its own value is the hint: C code must have it. A second
    capture with shifted hints finds out whether the program depends on it (see `capture`)."""

    term: Term


def _symbol(term: Term, kind: type) -> Any:
    if kind is bool:
        return term.scalars.decided(term)
    if kind is int:
        made: Any = SymbolicInt(term.hint if term.known else 0)
    elif kind is float:
        made = SymbolicFloat(math.nan)
    else:
        raise GraphBreak(f"a symbolic {kind.__name__}")
    made.term = term
    term.scalars.symbols[id(made)] = made
    return made


def is_symbol(value: Any) -> bool:
    return isinstance(value, (SymbolicFloat, SymbolicInt))


def _kind(value: Any) -> type:
    if isinstance(value, SymbolicFloat):
        return float
    return int if isinstance(value, SymbolicInt) else type(value)


def _hint(value: Any) -> Any:
    return value.term.hint if isinstance(value, (SymbolicFloat, SymbolicInt)) else value


def computed(name: str, *values: Any) -> Any:
    """The symbolic result of a number function."""
    if not all(isinstance(v, (int, float)) for v in values):
        return NotImplemented
    owner = next(v.term.scalars for v in values if isinstance(v, (SymbolicFloat, SymbolicInt)))
    hints = [_hint(v) for v in values]
    terms = tuple(v.term if isinstance(v, (SymbolicFloat, SymbolicInt)) else v for v in values)
    if UNKNOWN in hints:
        kind = _result_kind(name, [_kind(v) for v in values])
        if kind is bool:
            known = [foreseen(t) for t in terms]
            if None not in known and (decision := owner.compute(name, *known)) is not None:
                return owner.decided(decision)
            raise GraphBreak(
                "a decision depends on a number taken from a tensor",
                "Keep it a tensor and use torch.where.",
            )
        return _symbol(Term(owner, UNKNOWN, name=name, args=terms), kind)
    if name in COMPARISONS:
        settled = _settled(name, terms)
        if settled is not None:
            return settled
    if name in NEUTRAL and _kind(values[0]) is int is _kind(values[1]):
        neutral, both = NEUTRAL[name]
        if values[1] is neutral:
            return values[0]
        if both and values[0] is neutral:
            return values[1]
    result = FUNCTIONS[name](*hints)
    term = Term(owner, result, name=name, args=terms)
    return _symbol(term, type(result))


COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _result_kind(name: str, kinds: list[type]) -> type:
    if name in COMPARISONS:
        return bool
    if name in ("floor", "ceil", "int", "round") and len(kinds) == 1:
        return int
    if name in ("add", "sub", "mul", "floordiv", "mod", "neg", "pos", "abs", "max", "min"):
        return float if float in kinds else int
    if name == "pow" and float not in kinds:
        raise GraphBreak("a power of integers taken from a tensor")
    return float


def _method(name: str) -> Callable:
    def method(self: Any, *others: Any) -> Any:
        return computed(name, self, *others)

    return method


def _reflected(name: str) -> Callable:
    def method(self: Any, other: Any) -> Any:
        return computed(name, other, self)

    return method


def _concrete_method(name: str) -> Callable:
    def method(self: Any, *others: Any) -> Any:
        value = self.term.scalars.concrete(self)
        return getattr(value, name)(*others)

    return method


def _install(cls: type) -> None:
    for name in "add sub mul truediv floordiv mod pow".split():
        setattr(cls, f"__{name}__", _method(name))
        setattr(cls, f"__r{name}__", _reflected(name))
    for name in (*COMPARISONS, "neg", "pos", "abs", "round", "floor", "ceil"):
        setattr(cls, f"__{name}__", _method(name))
    for name in (
        "__int__ __float__ __index__ __hash__ __repr__ __str__ __format__ __trunc__ "
        "__and__ __or__ __xor__ __rand__ __ror__ __lshift__ __rshift__ __invert__ __divmod__ "
        "__rdivmod__ is_integer as_integer_ratio hex bit_length"
    ).split():
        if hasattr(cls, name):
            setattr(cls, name, _concrete_method(name))


def _truth(self: Any) -> bool:
    return computed("ne", self, 0)


def _identity_hash(self: Any) -> int:
    return hash(self.term.mark)


_install(SymbolicFloat)
_install(SymbolicInt)
SymbolicInt.__bool__ = SymbolicFloat.__bool__ = _truth  # type: ignore[method-assign]
SymbolicInt.__hash__ = _identity_hash  # type: ignore[method-assign]
SymbolicInt.__index__ = lambda self: self  # type: ignore[method-assign]
NUMBER_OPERATORS = {n: n for n in ("add sub mul truediv floordiv mod pow".split())}
NUMBER_OPERATORS |= {"i" + n: n for n in NUMBER_OPERATORS} | {n: n for n in COMPARISONS}
"""operator.<name> -> number function."""
C_FUNCTIONS = {
    id(getattr(math, n)): n for n in "sqrt exp log log2 log10 sin cos tan tanh floor ceil".split()
} | {id(math.pow): "math_pow"}
NUMERIC = {
    id(getattr(operator, n)): n for n in "add sub mul truediv floordiv mod pow neg pos abs".split()
}


class Scalars:
    """Numbers of one capture."""

    def __init__(self, session: Any, shift: int = 0):
        self.session, self.shift = session, shift
        self.pinned: set[str] = set()
        self.inputs: dict[int, tuple[Term, Value]] = {}
        self.symbols: dict[int, Any] = {}
        self.by_source: dict[int, Any] = {}

    def input(self, value: Any, source: Source) -> Any:
        """A number from before the frame, of which only the type is guarded."""
        found = self.by_source.get(id(source))
        if found is None:
            self.session.guard(source, "type", type(value))
            hint = value + self.shift if type(value) is int else value
            found = self.by_source[id(source)] = _symbol(
                Term(self, hint, source=source), type(value)
            )
        return found

    def rate(self, value: Any, source: Source) -> Any:
        """An array scalar from before the frame, as the Python number that it is."""
        plain = value.item()
        number = source.step("integer" if type(plain) is int else "number")
        found = self.by_source.get(id(number))
        if found is None:
            hint = plain + self.shift if type(plain) is int else plain
            term = Term(self, hint, source=number)
            found = self.by_source[id(number)] = _symbol(term, type(plain))
        return found

    def size(self, value: int, source: Source) -> Any:
        """A size of a tensor from before the frame, at least 2."""
        found = self.by_source.get(id(source))
        if found is None:
            term = Term(self, value + self.shift, source=source)
            found = _symbol(term, int)
            self.by_source[id(source)] = found
            assert found >= 2
            term.lower = 2
        return found

    def release(self) -> None:
        """After the capture the numbers remain, in specs and guards, and what it knew goes."""
        self.session = None
        self.symbols.clear()
        self.by_source.clear()
        self.inputs.clear()

    def compute(self, name: str, *args: Any) -> Term | None:
        """A function of terms and numbers that are known; None where it has no value."""
        try:
            hint = FUNCTIONS[name](*[a.hint if isinstance(a, Term) else a for a in args])
        except (ArithmeticError, ValueError):
            return None
        return Term(self, hint, name=name, args=args)

    def of_tensor(self, number: Any, source: Source) -> Term:
        """The number in a tensor from before the frame."""
        return Term(self, number, source=source.step("number"))

    def from_tensor(self, value: Value, kind: type, before: Term | None = None) -> Any:
        """`tensor.item()`; `before` computes the same from what the call finds."""
        if kind is bool and before is not None:
            return self.decided(before)
        if kind not in (int, float):
            raise GraphBreak(
                "the value of a tensor is needed", "Take it outside of the compiled function."
            )
        recorder = self.session.tensors.recorder
        number = Value(WEAK[kind])
        recorder.equations.append(Equation(PREFIX + "item", (value,), {}, (number,)))
        term = Term(self, UNKNOWN, value=number)
        term.foreseen = before
        return _symbol(term, kind)

    def is_symbolic(self, value: Any) -> bool:
        return isinstance(value, (SymbolicFloat, SymbolicInt))

    def any_unknown(self, values: Any) -> bool:
        """Whether these are numbers, of which some are known to the running graph only."""
        found = [v for v in values if self.is_symbolic(v) and not v.term.known]
        return bool(found) and all(isinstance(v, (int, float)) for v in values)

    def any(self, values: Any) -> bool:
        return any(map(self.is_symbolic, values))

    def type_of(self, value: Any) -> type:
        return _kind(value)

    def decided(self, term: Term) -> bool:
        """A truth value that the program may now rely on."""
        if self.session is None:  # the capture is over; somebody prints a size
            return term.hint
        self.session.guards.setdefault(("symbolic", term.mark), _guard(term))
        self.session.keep(term)
        if term.name in ("eq", "ne") and term.hint is (term.name == "eq"):
            sources = [a for a in term.args if isinstance(a, Term)]
            if len(sources) == 1 and sources[0].source is not None:
                source = sources[0].source
                scalar = source.kind in ("number", "integer")
                self.pinned.add(repr(source.base if scalar else source))
        return term.hint

    def concrete(self, value: Any) -> Any:
        """The number as it is now, which becomes a guard."""
        if isinstance(value, slice):
            return slice(*map(self.concrete, (value.start, value.stop, value.step)))
        if isinstance(value, tuple) and self.any(value):
            return tuple(map(self.concrete, value))
        if not self.is_symbolic(value):
            return value
        if not value.term.known:
            raise GraphBreak(
                "the value of a number taken from a tensor is needed",
                "Take it outside of the compiled function.",
            )
        test = computed("eq", value, value.term.hint)
        assert test is True or value.term.hint != value.term.hint
        return value.term.hint

    def converted(self, kind: type, value: Any) -> Any:
        """`int(x)`, `float(x)`."""
        if kind is _kind(value):
            return value
        return computed(kind.__name__, value)

    def text(self, value: Any, writer: Writer) -> str:
        return value.term.text(writer)

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """A C function of symbolic numbers."""
        name = C_FUNCTIONS.get(id(function)) or NUMERIC.get(id(function))
        if name is not None and not kwargs:
            return computed(name, *args)
        return function(*map(self.concrete, args), **kwargs)

    # In the graph ----------------------------------------------------------------------------

    def value_of(self, symbol: Any) -> Value:
        """The graph value of a number."""
        return self._value(symbol.term)

    def _value(self, term: Term) -> Value:
        if term.value is None:
            recorder = self.session.tensors.recorder
            if term.source is not None:
                term.value = Value(WEAK[type(term.hint)])
                self.inputs[id(term)] = (term, term.value)
            else:
                args = [self._value(a) if isinstance(a, Term) else a for a in term.args]
                kind = float if not term.known else type(term.hint)
                term.value = Value(WEAK[kind])
                recorder.equations.append(Equation(PREFIX + term.name, args, {}, (term.value,)))
        return term.value


def _guard(term: Term) -> Any:
    return Guard(None, "symbolic", (term, term.hint))

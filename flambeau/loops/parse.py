"""Nests from their text: the inverse of `flambeau.loops.text`.

A number without a dtype takes that of the operand beside it, as in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from flambeau.core import dtype as dtypes
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.loops.expr import (
    OPS,
    Expr,
    apply,
    cast,
    check,
    const,
    guarded,
    index,
    item,
    iterator,
    load,
    scalar,
    size,
    where,
)
from flambeau.loops.nest import COMBINES, Buf, Nest, Store

TOKEN = re.compile(
    r"\s*(\.\d+(?![\w.])|\d+\.?\d*(?:e[+-]?\d+)?|[A-Za-z_][\w.]*|[-+*<:,()\[\]{}=@])"
)
NUMBERS = {"inf": float("inf"), "nan": float("nan"), "True": True, "False": False}
Parsed = Expr | int | float | bool


def parse(text: str) -> list[Nest]:
    """The nests of a program text, in order."""
    names: dict[str, object] = {}
    nests: list[Nest] = []
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if block and line.startswith("  "):
            block.append(line)
            continue
        if block:
            nests.append(parsed_nest(block, names))
            block = []
        if line.startswith(("for ", "do:")):
            block = [line]
        elif line.strip():
            declare(line, names)
    return nests


def declare(line: str, names: dict[str, object]) -> None:
    """`x: float32[2, 3]{1, 2}`, `alpha: float32` or `n: size[1, 8]`."""
    p = Parser(line, names)
    name = p.take()
    p.expect(":")
    kind = p.take()
    if kind == "size":
        low, high = p.listed("[", "]")
        names[name] = size(name, low, high)
    elif not p.at("["):
        names[name] = scalar(name, kind)
    else:
        shape = p.listed("[", "]")
        strides = p.listed("{", "}") if p.at("{") else None
        names[name] = Buf(name, tuple(shape), tuple(strides) if strides is not None else None, kind)


def parsed_nest(block: list[str], names: dict[str, object]) -> Nest:
    head = Parser(block[0], dict(names))
    iters: tuple[Expr, ...] = ()
    if head.take() == "for":
        iters = head.binders()
    head.expect(":")
    scope = {**names, **{i.attr[0]: i for i in iters}}
    stores = []
    rest = block[1:] if len(block) > 1 else [block[0][head.position :]]
    for line in rest:
        p = Parser(line, scope)
        found = p.statement()
        if isinstance(found, Store):
            stores.append(found)
        else:
            scope[found[0]] = found[1]
    return Nest(iters, tuple(stores))


class Parser:
    """One line. `names` gives buffers, scalars, sizes, open iterators and named expressions."""

    def __init__(self, text: str, names: dict):
        self.text = text
        self.names = names
        self.position = 0

    # tokens

    def peek(self) -> str:
        found = TOKEN.match(self.text, self.position)
        return found[1] if found else ""

    def take(self) -> str:
        found = TOKEN.match(self.text, self.position)
        if found is None:
            raise self.wrong("a token", self.text[self.position :])
        self.position = found.end()
        return found[1]

    def at(self, token: str) -> bool:
        return self.peek() == token

    def accept(self, token: str) -> bool:
        if self.at(token):
            self.take()
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.wrong(f"{token!r}", self.text[self.position : self.position + 12])

    def wrong(self, wanted: str, got: str) -> ValueRangeError:
        return ValueRangeError(
            complaint("parse", f"{wanted} is needed", dict(line=self.text, at=repr(got)))
        )

    # statements

    def statement(self) -> Store | tuple[str, Expr]:
        name = self.take()
        if self.at("["):
            position = self.listed("[", "]")
            combine = None if self.at("=") else self.take()
            self.expect("=")
            buf = self.names[name]
            value = self.expression()
            value = value if isinstance(value, Expr) else const(value, buf.dtype)
            return Store(buf, tuple(map(index, position)), value, combine)
        bound: tuple[Expr, ...] = ()
        if self.accept("("):
            bound = self.binders()
            self.expect(")")
        self.expect("=")
        with self.opened(bound):
            value = self.expression()
        assert isinstance(value, Expr)
        return name, value

    def binders(self) -> tuple[Expr, ...]:
        """`i0<2, i1<n`."""
        found = []
        while True:
            name = self.take()
            self.expect("<")
            with self.opened(tuple(found)):
                found.append(iterator(name, self.expression()))
            if not self.accept(","):
                return tuple(found)

    @contextmanager
    def opened(self, iters: tuple[Expr, ...]) -> Iterator[None]:
        held = dict(self.names)
        self.names.update({i.attr[0]: i for i in iters})
        yield
        self.names.clear()
        self.names.update(held)

    def listed(self, first: str, last: str) -> list:
        self.expect(first)
        found: list = []
        while not self.accept(last):
            found.append(self.expression())
            self.accept(",")
        return found

    # expressions

    def expression(self) -> Parsed:
        left = self.product()
        while self.peek() in ("+", "-"):
            left = joined("add" if self.take() == "+" else "sub", left, self.product())
        return left

    def product(self) -> Parsed:
        left = self.primary()
        while self.accept("*"):
            left = joined("mul", left, self.primary())
        return left

    def primary(self) -> Parsed:
        token = self.take()
        if token == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if token == "-":
            return -self.primary()
        if token[0].isdigit():
            return float(token) if set(token) & set(".e") else int(token)
        if token in NUMBERS:
            return NUMBERS[token]
        if self.at("(") and token not in self.names:
            return self.call(token)
        if self.at("[") or self.at("@"):
            return self.access(token)
        if token not in self.names:
            raise self.wrong("a known name", token)
        return self.names[token]

    def access(self, name: str) -> Expr:
        """`x[i0, i1]`, `x[i0 - 1 if c else 0.0]`, `x@[offset]`."""
        buf = self.names[name]
        flat = self.accept("@")
        self.expect("[")
        position: list = []
        while not self.at("]") and not self.at("if"):
            position.append(self.expression())
            self.accept(",")
        if self.accept("if"):
            condition = self.expression()
            self.expect("else")
            other = self.expression()
            self.expect("]")
            fill = other if isinstance(other, Expr) else const(other, buf.dtype)
            if flat:
                return Expr.make("at_where", buf.dtype, (condition, fill, index(position[0])), buf)
            return guarded(condition, buf, tuple(position), fill)
        self.expect("]")
        return (
            Expr.make("at", buf.dtype, (index(position[0]),), buf)
            if flat
            else load(buf, tuple(position))
        )

    def call(self, name: str) -> Expr:
        self.expect("(")
        start = self.position
        fold = name.removeprefix("scan.") in COMBINES and self.take() and self.at("<")
        self.position = start
        if fold:
            made = self.fold(name)
        else:
            self.position = start - 1
            made = called(name, self.listed("(", ")"))
        if self.peek()[:1] == "." and self.peek()[1:].isdigit():
            made = item(made, int(self.take()[1:]))
        return made

    def fold(self, name: str) -> Expr:
        """`add(r0<3: value)`."""
        bound = self.binders()
        self.expect(":")
        values: list[Expr] = []
        with self.opened(bound):
            while not self.accept(")"):
                values.append(self.expression())
                self.accept(",")
        combine = name.removeprefix("scan.")
        kind = values[0].dtype
        if COMBINES[combine] > 1:
            kind = (kind, dtypes.int64 if combine.startswith("arg") else kind)
        return Expr.make(
            "scan" if name.startswith("scan.") else "reduce",
            kind,
            (*values, *bound),
            (combine, len(values)),
        )


def joined(name: str, a: Parsed, b: Parsed) -> Parsed:
    """Two numbers beside each other are a sum of sizes."""
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return {"add": a + b, "sub": a - b, "mul": a * b}[name]
    return apply(name, a, b)


def called(name: str, args: list) -> Expr:
    if name.startswith(("checked.", "wrapped.")):
        wrap, op = name.split(".", 1)
        return check(args[0], args[1], op, wrap == "wrapped")
    if name == "where":
        return where(*args)
    if name in OPS:
        return apply(name, *args)
    (x,) = args
    return cast(x, name) if isinstance(x, Expr) else const(x, name)

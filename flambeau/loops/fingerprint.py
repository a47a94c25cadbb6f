"""Nests as a short key that another process finds for equal nests.

Interned nodes are one object in one process only. Here a node is its facts and the numbers of its
operands, in the order in which the stores reach them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from flambeau.core.dtype import dtype as DType
from flambeau.ir.node import postorder
from flambeau.loops.expr import Expr
from flambeau.loops.nest import Buf, Nest


def fingerprint(nests: Iterable[Nest]) -> str:
    """Equal for equal nests; else different but for an accident of 160 bits."""
    numbers: dict[Expr, int] = {}
    lines: list[str] = []
    for n in nests:
        roots = [*n.iters, *(e for s in n.stores for e in (*s.index, s.value))]
        for node in postorder(roots):
            if node not in numbers:
                numbers[node] = len(numbers)
                lines.append(facts(node, numbers))
        lines.append(f"nest {[numbers[i] for i in n.iters]}")
        for s in n.stores:
            at = [numbers[e] for e in s.index]
            lines.append(f"store {described(s.buf)} {at} {numbers[s.value]} {s.combine}")
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=20).hexdigest()


def facts(node: Expr, numbers: dict[Expr, int]) -> str:
    """One node; floats differ wherever their bits do, but for the bits of a NaN."""
    operands = [numbers[a] for a in node.args]
    return f"{node.kind} {described(node.dtype)} {operands} {described(node.attr)}"


def described(fact: Any) -> str:
    """An attribute as text."""
    if isinstance(fact, DType):
        return fact.name
    if isinstance(fact, Buf):
        return f"{fact.name}:{fact.dtype.name}{described(fact.shape)}{described(fact.strides)}"
    if isinstance(fact, Expr):
        operands = ", ".join(map(described, fact.args))
        return f"{fact.kind}({described(fact.dtype)}, {operands}, {described(fact.attr)})"
    if isinstance(fact, tuple):
        return "(" + ", ".join(map(described, fact)) + ")"
    return repr(fact)

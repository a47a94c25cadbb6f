"""What every nest must satisfy, checked between stages when FLAMBEAU_CHECK=1.

A violation is a defect of a lowering or a pass, never of the user's program.
"""

from __future__ import annotations

from collections.abc import Iterable

from flambeau.core import dtype as dtypes
from flambeau.ir.node import postorder
from flambeau.loops.affine import bounds
from flambeau.loops.expr import OPS, Expr, accepts
from flambeau.loops.nest import COMBINES, Nest


class BrokenNest(AssertionError):
    """A rule of the loop language is broken."""


def verify(nests: Iterable[Nest]) -> None:
    """Raise BrokenNest at the first expression or store that breaks a rule."""
    for nest in nests:
        for s in nest.stores:
            require(s.value.dtype is s.buf.dtype, nest, f"{s.buf} stores {s.value.dtype.name}")
            require(len(s.index) == len(s.buf.shape), nest, f"{s.buf} has {len(s.index)} indices")
            for e in (*s.index, s.value):
                unbound = e.free - set(nest.iters)
                require(not unbound, nest, f"{sorted(i.attr[0] for i in unbound)} are not bound")
                for node in postorder([e]):
                    verify_node(node, nest)
            in_bounds(s.buf, s.index, nest)


def require(holds: bool, nest: Nest, complaint: str) -> None:
    if not holds:
        raise BrokenNest(f"loops: {complaint}, in\n{nest}")


def verify_node(node: Expr, nest: Nest) -> None:
    """The rule of one node's kind."""
    kind = node.kind
    if kind in OPS:
        arity, wanted, _ = OPS[kind]
        same = all(a.dtype is node.args[0].dtype for a in node.args)
        require(
            len(node.args) == arity and same and accepts(wanted, node.args[0].dtype),
            nest,
            f"{kind} has operands {[a.dtype for a in node.args]}",
        )
    elif kind == "load":
        in_bounds(node.attr, node.args, nest)
    elif kind == "guarded":
        require(
            node.args[0].dtype is dtypes.bool and node.args[1].dtype is node.dtype,
            nest,
            f"{node.attr} is guarded by {node.args[0].dtype} with {node.args[1].dtype}",
        )
    elif kind == "where":
        c, x, y = node.args
        require(
            c.dtype is dtypes.bool and x.dtype is y.dtype is node.dtype, nest, "where mixes dtypes"
        )
    elif kind in ("reduce", "scan"):
        combine, count = node.attr
        bound = node.args[count:]
        require(combine in COMBINES and count >= 1, nest, f"{combine} is no fold")
        require(bool(bound) and all(i.kind == "iter" for i in bound), nest, f"{kind} binds no loop")


def in_bounds(buf, position: tuple[Expr, ...], nest: Nest) -> None:
    """Ranges must not prove an index wrong; that they prove it right is not asked."""
    require(len(position) == len(buf.shape), nest, f"{buf} is read with {len(position)} indices")
    for i, n in zip(position, buf.shape):
        require(i.dtype is dtypes.int64, nest, f"{buf} is indexed by {i.dtype}")
        low, high = bounds(i)
        most = n if isinstance(n, int) else bounds(n)[1]
        if i.kind == "iter" and most > 0:
            require(high < most, nest, f"{i.attr[0]} runs past dimension {n} of {buf}")
        require(high >= 0 and (low < most or most == 0), nest, f"{i} lies outside of {buf}")

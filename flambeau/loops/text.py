"""Nests as text, for people, golden tests and `parse`.

    for i0<2, i1<4: out[i0, i1] = add(r0<3: x[i0, r0, i1])

A fold shows its loops before the colon. Expressions used twice get a name of their own line, with
the fold loops that they mention: `a(r0<3) = exp(x[i0, r0])`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from flambeau.core import dtype as dtypes
from flambeau.ir.node import postorder
from flambeau.loops.expr import OPS, Expr
from flambeau.loops.nest import Nest, Store

INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2)}
ATOM = 9
WORTH_A_NAME = 24  # characters


def expression(e: Expr) -> str:
    """One expression, shared parts repeated unless that would be long."""
    lets, (text,) = printed([e])
    return text if not lets else text + " where " + ", ".join(lets)


def nest_text(nest: Nest) -> str:
    """One nest; on one line when it has one store and shares nothing long."""
    roots = [e for s in nest.stores for e in (*s.index, s.value)]
    lets, texts = printed(roots, frozenset(nest.iters))
    loops = ", ".join(map(binder, nest.iters))
    head = f"for {loops}:" if loops else "do:"
    rest = iter(texts)
    stores = [store_text(s, [next(rest) for _ in s.index], next(rest)) for s in nest.stores]
    if not lets and len(stores) == 1:
        return f"{head} {stores[0]}"
    return "\n  ".join([head, *lets, *stores])


def store_text(s: Store, index: list[str], value: str) -> str:
    place = f"{s.buf.name}[{', '.join(index)}]"
    if s.value.kind == "const":
        value = f"{s.value.dtype.name}({value})"
    return f"{place} = {value}" if s.combine is None else f"{place} {s.combine}= {value}"


def program_text(nests: Iterable[Nest]) -> str:
    """Buffer declarations, then the nests: what `parse` reads."""
    nests = list(nests)
    found: dict[str, object] = {}
    for n in nests:
        for node in postorder(e for s in n.stores for e in (*s.index, s.value)):
            if node.kind in ("load", "guarded", "at", "at_where"):
                found.setdefault(node.attr.name, node.attr)
            elif node.kind == "scalar":
                found.setdefault(node.attr, f"{node.attr}: {node.dtype.name}")
            found.update(sizes_in(node))
        for s in n.stores:
            found.setdefault(s.buf.name, s.buf)
        for i in n.iters:
            found.update(sizes_in(i))
    sizes = [text for text in found.values() if isinstance(text, str) and ": size[" in text]
    others = [str(x) for x in found.values() if x not in sizes]
    return "\n".join([*sizes, *others, *map(nest_text, nests)])


def sizes_in(node: Expr) -> dict[str, str]:
    """Declarations of the sizes that a node, its loop or its buffer mentions."""
    mentioned: list = [node]
    if node.kind == "iter":
        mentioned.append(node.attr[1])
    elif node.kind in ("load", "guarded"):
        mentioned += [*node.attr.shape, *node.attr.strides]
    roots = [e for e in mentioned if isinstance(e, Expr)]
    return {
        n.attr[0]: f"{n.attr[0]}: size[{n.attr[1]}, {n.attr[2]}]"
        for n in postorder(roots)
        if n.kind == "size"
    }


def binder(i: Expr) -> str:
    return f"{i.attr[0]}<{i.attr[1]}"


def printed(roots: list[Expr], outer: frozenset | None = None) -> tuple[list[str], list[str]]:
    """(lines that name shared expressions, the text of every root)."""
    uses: Counter[Expr] = Counter(roots)
    nodes = list(postorder(roots))
    for node in nodes:
        uses.update(a for a in node.args if a.kind != "iter")
    texts: dict[Expr, tuple[str, int]] = {}
    lets: list[str] = []
    for node in nodes:
        text, rank = node_text(node, texts)
        if uses[node] > 1 and len(text) > WORTH_A_NAME and not isinstance(node.dtype, tuple):
            bound = () if outer is None else sorted(node.free - outer, key=lambda i: i.attr[0])
            loops = f"({', '.join(map(binder, bound))})" if bound else ""
            name = f"a{len(lets)}"
            lets.append(f"{name}{loops} = {text}")
            text, rank = name, ATOM
        texts[node] = text, rank
    return lets, [texts[r][0] for r in roots]


def node_text(node: Expr, texts: dict[Expr, tuple[str, int]]) -> tuple[str, int]:
    """The text of one node and how tightly it binds."""
    kind = node.kind
    if kind == "const":
        return number(node), ATOM
    if kind in ("iter", "size"):
        return node.attr[0], ATOM
    if kind == "scalar":
        return node.attr, ATOM
    args = [texts[a][0] for a in node.args]
    if kind in INFIX:
        return infix(node, texts)
    if kind == "load":
        return f"{node.attr.name}[{', '.join(args)}]", ATOM
    if kind == "guarded":
        condition, other, *position = args
        return f"{node.attr.name}[{', '.join(position)} if {condition} else {other}]", ATOM
    if kind == "at":
        return f"{node.attr.name}@[{args[0]}]", ATOM
    if kind == "at_where":
        return f"{node.attr.name}@[{args[2]} if {args[0]} else {args[1]}]", ATOM
    return call(node, args), ATOM


def call(node: Expr, args: list[str]) -> str:
    kind = node.kind
    if kind == "cast":
        return f"{node.dtype.name}({typed(node.args[0], args[0])})"
    if kind == "check":
        op, wrap = node.attr
        return f"{'wrapped' if wrap else 'checked'}.{op}({', '.join(args)})"
    if kind == "item":
        return f"{args[0]}.{node.attr}"
    if kind in ("reduce", "scan"):
        combine, count = node.attr
        loops = ", ".join(map(binder, node.args[count:]))
        name = combine if kind == "reduce" else f"scan.{combine}"
        return f"{name}({loops}: {', '.join(typed(v, a) for v, a in zip(node.args[:count], args))})"
    if kind in OPS and all(a.kind == "const" for a in node.args):
        args = [typed(a, t) for a, t in zip(node.args, args)]
    if kind == "where" and all(a.kind == "const" for a in node.args[1:]):
        args = [args[0], *[typed(a, t) for a, t in zip(node.args[1:], args[1:])]]
    return f"{kind}({', '.join(args)})"


def typed(e: Expr, text: str) -> str:
    """A constant that nothing beside it gives a dtype says its own."""
    return f"{e.dtype.name}({text})" if e.kind == "const" and e.dtype is not dtypes.int64 else text


def infix(node: Expr, texts: dict[Expr, tuple[str, int]]) -> tuple[str, int]:
    sign, rank = INFIX[node.kind]
    (left, a), (right, b) = (texts[x] for x in node.args)
    if all(x.kind == "const" for x in node.args):
        left, right = (typed(x, t) for x, t in zip(node.args, (left, right)))
    if a < rank:
        left = f"({left})"
    if b < rank or (b == rank):
        right = f"({right})"
    return f"{left} {sign} {right}", rank


def number(node: Expr) -> str:
    """A constant: bool and floats as Python writes them, infinities by name."""
    value = node.attr
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"nan": "nan", "inf": "inf", "-inf": "-inf"}[str(value)]
    return repr(value)

"""The passes of one kernel as instructions.

Invariants: every value is emitted in the outermost open loop that it depends on, before the loops
that do not change it; at most one open loop is a vector loop, and a value has lanes exactly when it
varies along that loop. A value is remembered for as long as its loop is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flambeau.codegen.nest.access import Access, Accesses
from flambeau.codegen.nest.convert import converted, narrowed
from flambeau.codegen.nest.fold import Folding
from flambeau.codegen.nest.operations import OPERATIONS, operation
from flambeau.codegen.nest.types import register_type
from flambeau.codegen.target import Target
from flambeau.codegen.text import Function, Operand, Value, constant, constants, lanes_of, vector
from flambeau.core import dtype as dtypes
from flambeau.ir.node import nodes
from flambeau.loops.affine import bounds
from flambeau.loops.expr import Expr
from flambeau.schedule.flat import Put
from flambeau.schedule.rows import ROW
from flambeau.schedule.tree import Pass

TRIVIAL = frozenset(("const", "iter", "size", "scalar", "reduce", "item", "scan", "tuple"))


class Emitter(Accesses):
    """Emits into `f`; buffers and numbers are looked up by name."""

    def __init__(
        self,
        f: Function,
        target: Target,
        buffers: dict[str, Value],
        numbers: dict[str, Value],
        status: Value | None,
        sites: tuple[str, ...] = (),
    ):
        self.f = f
        self.target = target
        self.buffers = buffers
        self.numbers = numbers
        self.status = status
        self.sites = sites
        self.order: list[Expr] = []  # open iterators, outermost first
        self.index: dict[Expr, Operand] = {}
        self.vector: Expr | None = None
        self.lanes = 1
        self.mask: Value | None = None
        self.scopes: list[dict[Expr, list[Value]]] = [{}]
        self.tiles: dict[Expr, Value] = {}  # transposed blocks of loads
        self.tile_row: Operand = 0

    # passes

    def block(self, passes: tuple[Pass, ...], puts: tuple[Put, ...]) -> None:
        for p in passes:
            self.run(p)
        self.write(puts)

    def write(self, puts: tuple[Put, ...]) -> None:
        """All values first: a store may overwrite what another value reads."""
        values = [self.value(p.value) for p in puts]
        for p, x in zip(puts, values):
            self.store(Access(p.buf, p.offset), x, p.combine, p.iters)

    def run(self, p: Pass, start: int = 0, ranged: tuple[Operand, Operand] | None = None) -> None:
        """One pass, its loops before `start` being open; `ranged` limits the loop at `start`."""
        self.hoist(p)
        foldings = [Folding(self.f, x.node) for x in p.folds]
        tiers = self.tiers(p)
        held = [[g.start(lanes) for g in foldings] for lanes, _ in tiers]
        state = self.loops(p, start, tiers, foldings, flat(held), ranged)
        self.finish(p, tiers, foldings, unflat(state, held))

    def finish(self, p: Pass, tiers: list, foldings: list[Folding], held: list) -> None:
        """Accumulators of all tiers merged into the folds' values."""
        one = tiers[-1][0] if p.vector is None else 1
        for at, (g, x) in enumerate(zip(foldings, p.folds)):
            total = None
            for (lanes, _), tier in zip(tiers, held):
                part = g.narrowed(tier[at], min(lanes, tiers[-1][0]))
                total = part if total is None else g.merge(total, part)
            assert total is not None
            self.scopes[-1][x.node] = g.finish(g.narrowed(total, one))

    def tiers(self, p: Pass) -> list[tuple[int, bool]]:
        """The loops that one vector loop becomes, as (lanes, masked): wide ones, then the rest."""
        if p.vector is None:
            return [(self.lanes, False)]
        n = p.vector.attr[1]
        if isinstance(n, int) and n % p.lanes == 0:
            return [(p.lanes, False)]
        wide = [] if isinstance(n, int) and n < p.lanes else [(p.lanes, False)]
        if isinstance(n, int) and n % p.tail == 0:
            return [*wide, (p.tail, False)]
        if self.target.masked_memory:
            return [*wide, (p.tail, True)]
        middle = (
            [(p.tail, False)]
            if p.tail < p.lanes and not (isinstance(n, int) and n < p.tail)
            else []
        )
        return [*wide, *middle, (1, False)]

    def loops(
        self,
        p: Pass,
        at: int,
        tiers: list,
        foldings: list[Folding],
        state: list[Value],
        ranged: tuple | None = None,
        tier: int = 0,
    ) -> list[Value]:
        """Open the loops of `p` from `at` on and run the innermost part."""
        if at == len(p.iters):
            return self.innermost(p, foldings, state, tier)
        i = p.iters[at]
        low, high = ranged or (0, self.extent(i))
        if i is p.vector:
            return self.vector_loop(p, at, tiers, foldings, state, low, high)
        if i is p.tile:
            with self.f.loop(low, high, p.rows) as loop, self.opened(i, loop.index):
                self.loops(p, at + 1, tiers, foldings, state)
            return state
        scans = [Folding(self.f, s) for s in p.scans if s.args[-1] is i]
        held = [g.start(self.lanes) for g in scans]
        with self.f.loop(low, high, 1, [*state, *flat([held])]) as loop, self.opened(i, loop.index):
            mine = loop.carried[: len(state)]
            scanned = self.scanned(p, scans, unflat(loop.carried[len(state) :], [held])[0])
            loop.next = [
                *self.loops(p, at + 1, tiers, foldings, mine, None, tier),
                *flat([scanned]),
            ]
        return loop.results[: len(state)]

    def scanned(self, p: Pass, scans: list[Folding], held: list) -> list:
        """The running folds at this turn of the loop."""
        new = []
        for g, node, h in zip(scans, p.scans, held):
            x = self.widened(self.value(node.args[0]))
            values = [x]
            if node.attr[0].startswith("arg"):
                values.append(self.widened(self.value(node.args[-1])))
            new.append(g.update(h, values, None))
            self.scopes[-1][node] = g.finish(new[-1])
        return new

    def vector_loop(
        self,
        p: Pass,
        at: int,
        tiers: list,
        foldings: list[Folding],
        state: list[Value],
        low: Operand,
        high: Operand,
    ) -> list[Value]:
        """One loop a tier; each takes what is left in steps of its lanes."""
        f, i = self.f, p.vector
        assert i is not None
        per = len(state) // len(tiers)
        results: list[Value] = []
        scans = [Folding(f, s) for s in p.scans]
        running = [g.start(1) for g in scans]
        for tier, (lanes, masked) in enumerate(tiers):
            end = high if masked or lanes == 1 else self.whole_steps(low, high, lanes)
            mine = state[tier * per : (tier + 1) * per]
            with (
                f.loop(low, end, lanes, [*mine, *flat([running])]) as loop,
                self.opened(i, loop.index),
                self.lanes_of_loop(i, lanes, self.tail_mask(loop.index, low, end, lanes, masked)),
            ):
                if p.tile is not None:
                    self.tile_block(p)
                else:
                    held = unflat(loop.carried[per:], [running])[0]
                    after = [self.prefixed(g, s, h) for g, s, h in zip(scans, p.scans, held)]
                    inner = self.loops(p, at + 1, tiers, foldings, loop.carried[:per], None, tier)
                    loop.next = [*inner, *flat([after])]
            results += loop.results[:per]
            running = unflat(loop.results[per:], [running])[0]
            low = end
        return results

    def prefixed(self, g: Folding, node: Expr, running: list[Value]) -> list[Value]:
        """Running folds of all lanes by doubling distances; the last lane runs on."""
        f, lanes = self.f, self.lanes
        x = self.widened(self.value(node.args[0]))
        start = g.start(lanes)[0]
        if self.mask is not None:
            x = f.select(self.mask, x, start)
        step = 1
        while step < lanes:
            moved = f.shuffle(
                start, x, [lane if lane < step else lanes + lane - step for lane in range(lanes)]
            )
            (x,) = g.merge([moved], [x])
            step *= 2
        whole = g.merge([f.splat(running[0], lanes)], [x])
        self.scopes[-1][node] = g.finish(whole)
        return [f.extract(whole[0], lanes - 1)]

    def tile_block(self, p: Pass) -> None:
        """One square block: transpose what must be, then run the loop of the block's rows."""
        f, u = self.f, p.tile
        assert u is not None
        start, extent = self.index[u], self.extent(u)
        left = f.sub(extent, start)
        whole = isinstance(extent, int) and extent % p.rows == 0
        count: Operand = p.rows if whole else f.minimum(left, p.rows)
        if self.lanes > 1:
            for node in p.staged:
                self.stage(node, p.lanes, p.rows, count)
        with f.loop(0, count) as row, self.opened(u, f.add(start, row.index)):
            self.tile_row = row.index
            self.innermost(p, [], [], 0)
        self.tiles.clear()

    def whole_steps(self, low: Operand, high: Operand, lanes: int) -> Operand:
        """The end of the part of [low, high) that whole steps cover."""
        f = self.f
        count = f.sub(high, low)
        if isinstance(count, int):
            return f.add(low, count // lanes * lanes)
        return f.add(low, f.binary("and", count, -lanes))

    def tail_mask(
        self, index: Value, low: Operand, end: Operand, lanes: int, masked: bool
    ) -> Value | None:
        if not masked:
            return None
        # One lane stays a run-time mask: LLVM 22 turns a truncating store under a constant mask of
        # one lane into a store of the whole wide element.
        if isinstance(low, int) and isinstance(end, int) and 1 < end - low < lanes:
            return constants([k < end - low for k in range(lanes)], "i1")
        return self.f.lane_mask(self.f.sub(end, index), lanes)

    def innermost(
        self, p: Pass, foldings: list[Folding], state: list[Value], tier: int
    ) -> list[Value]:
        """The body, the stores, then the folds."""
        self.block(p.body, p.puts)
        new: list[Value] = []
        at = 0
        for g, x in zip(foldings, p.folds):
            values = [self.widened(self.value(v)) for v in x.values]
            size = len(g.start(1))
            mask = self.mask if p.vector is not None else None
            new += g.update(state[at : at + size], values, mask)
            at += size
        return new

    @contextmanager
    def opened(self, i: Expr, index: Operand) -> Iterator[None]:
        """Inside, `i` is open and has the value `index`."""
        outer = self.index.get(i)
        self.order.append(i)
        self.index[i] = index
        self.scopes.append({})
        yield
        self.scopes.pop()
        self.order.pop()
        if outer is None:
            del self.index[i]
        else:
            self.index[i] = outer

    @contextmanager
    def lanes_of_loop(self, i: Expr, lanes: int, mask: Value | None) -> Iterator[None]:
        held = self.vector, self.lanes, self.mask
        self.vector, self.lanes, self.mask = i, lanes, mask
        yield
        self.vector, self.lanes, self.mask = held

    # hoisting

    def hoist(self, p: Pass) -> None:
        """Emit now what the loops of `p` do not change, and the start of every address inside."""
        opened = frozenset(self.order)
        closing = frozenset(p.iters) - opened
        wanted: list[Expr] = []
        available: set[Expr] = set()
        for node in nodes(tuple(p.roots())):
            if node.kind in ("at", "at_where") and not node.free <= opened:
                self.early(Access(node.attr, node.args[-1]), opened)
            if (
                node.free <= opened
                and not node.free & closing
                and self.is_available(node, available)
            ):
                available.add(node)
                if node.kind not in TRIVIAL:
                    wanted.append(node)
        for node in wanted:
            self.value(node)
        for q in p.all_puts():
            self.early(Access(q.buf, q.offset), opened)

    def is_available(self, node: Expr, available: set[Expr]) -> bool:
        """Can the value be had now? Folds have one only once their pass has run."""
        if node.kind in ("reduce", "scan"):
            return self.is_known(node)
        return all(a in available for a in node.args)

    def early(self, access: Access, opened: frozenset) -> None:
        """The part of an address that is known before the loops."""
        if not access.buf.name.startswith(ROW):
            self.pointer(access, opened)

    def is_known(self, node: Expr) -> bool:
        return any(node in scope for scope in self.scopes)

    # values

    def extent(self, i: Expr) -> Operand:
        n = i.attr[1]
        return n if isinstance(n, int) else self.value(n)

    def widened(self, x: Value) -> Value:
        """With the lanes of the open vector loop."""
        return x if lanes_of(x.type) == self.lanes else self.f.splat(x, self.lanes)

    def value(self, e: Expr) -> Value:
        """The value of `e` here."""
        return self.values(e)[0]

    def values(self, e: Expr) -> list[Value]:
        found = self.find(e)
        if found is not None:
            return found
        stack = [e]
        while stack:
            node = stack[-1]
            if self.find(node) is not None:
                stack.pop()
                continue
            missing = [a for a in self.needs(node) if self.find(a) is None]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            self.remember(node, self.computed(node))
        found = self.find(e)
        assert found is not None
        return found

    def find(self, e: Expr) -> list[Value] | None:
        for scope in reversed(self.scopes):
            found = scope.get(e)
            if found is not None:
                return found
        return None

    def remember(self, node: Expr, values: list[Value]) -> None:
        self.scopes[-1][node] = values

    def needs(self, node: Expr) -> list[Expr]:
        """What must be computed before `node`."""
        if node.kind in ("at", "at_where"):
            return [*node.args[:-1], *self.address_needs(node.args[-1])]
        if node.kind in ("reduce", "scan"):
            raise AssertionError(f"a fold was not scheduled before its use: {node}")
        return list(node.args)

    def computed(self, node: Expr) -> list[Value]:
        kind, f = node.kind, self.f
        if kind == "const":
            return [constant(node.attr, register_type(node.dtype))]
        if kind == "iter":
            return [self.iterator(node)]
        if kind in ("size", "scalar"):
            return [self.numbers[node.attr if kind == "scalar" else node.attr[0]]]
        if kind == "item":
            return [self.values(node.args[0])[node.attr]]
        if kind == "tuple":
            return [self.value(a) for a in node.args]
        if kind in ("at", "at_where"):
            return [self.load(node)]
        if kind == "check":
            return [self.checked(node)]
        args = self.aligned([self.value(a) for a in node.args])
        if kind == "cast":
            return [converted(f, args[0], node.args[0].dtype, node.dtype)]
        if kind == "where":
            return [f.select(*args)]
        operand = node.args[0].dtype
        if operand is dtypes.int64 and kind in ("floordiv", "mod") and self.is_plain(node):
            return [f.binary("udiv" if kind == "floordiv" else "urem", *args)]
        made = operation(f, kind, operand, args)
        return [narrowed(f, made, node.dtype) if lanes_of(made.type) and not exact(kind) else made]

    def is_plain(self, node: Expr) -> bool:
        """No operand is negative and the divisor is not 0."""
        return bounds(node.args[0])[0] >= 0 and bounds(node.args[1])[0] > 0

    def iterator(self, i: Expr) -> Value:
        """An iterator's value; along the vector loop, one a lane."""
        at = self.index[i]
        if not isinstance(at, Value):
            at = constant(at, "i64")
        if i is not self.vector or self.lanes == 1:
            return at
        steps = constants(range(self.lanes), "i64")
        return self.f.binary("add nsw", self.f.splat(at, self.lanes), steps)

    def aligned(self, args: list[Value]) -> list[Value]:
        """All with the same number of lanes."""
        most = max(lanes_of(a.type) for a in args)
        return [
            a
            if lanes_of(a.type) == most
            else self.f.splat(a, most)
            if not is_constant(a)
            else Value(f"splat ({a.type} {a})", vector(most, a.type))
            for a in args
        ]


def is_constant(x: Value) -> bool:
    return x[0] != "%" and x[0] != "@"


def exact(kind: str) -> bool:
    """Operations whose result on rounded operands needs no rounding."""
    return kind in (
        "neg",
        "abs",
        "max",
        "min",
        "fmax",
        "fmin",
        "copysign",
        "sign",
        "where",
    ) or kind in ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "signbit")


def flat(tiers: list[list[list[Value]]]) -> list[Value]:
    return [v for tier in tiers for held in tier for v in held]


def unflat(values: list[Value], like: list[list[list[Value]]]) -> list[list[list[Value]]]:
    """`values` in the nesting of `like`."""
    rest = iter(values)
    return [[[next(rest) for _ in held] for held in tier] for tier in like]


__all__ = ["Emitter", "OPERATIONS"]

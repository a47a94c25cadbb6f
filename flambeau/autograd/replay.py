"""Backward passes that come again are replayed.

A training loop walks the same graph in every step. The second pass with an outline
(`outline.py`) is recorded: which plans the executor ran on which tensors. From the third on, these
plans run as one straight function, without walking the graph, calling rules or looking up plans.
The operations and their order are the same, so every bit of the result is.

A pass whose values are large has nothing to gain, and would hold them to its end; it is not
replayed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from flambeau.autograd.node import Node
from flambeau.autograd.outline import Outline
from flambeau.autograd.saved import SavedInput, SavedOutput
from flambeau.autograd.views import bump
from flambeau.core.context import state
from flambeau.eager.executor import EagerExecutor, refused, signature
from flambeau.tensor import interop
from flambeau.tensor.tensor import Tensor

KEPT = 64  # outlines that are remembered
LARGE = 1 << 25  # bytes of saved results from which on a pass is not replayed
PATIENCE = 32  # passes in a row with new outlines, after which only some are looked at

SEEN, NEVER = "seen", "never"


class Replay(NamedTuple):
    """One pass as a function of its inputs, and the nodes whose saved values it frees."""

    function: Callable
    released: list[int]

    def run(self, outline: Outline, keep_graph: bool) -> tuple[Tensor | None, ...]:
        try:
            results = self.function(*outline.inputs)
        except (ValueError, MemoryError) as error:
            raise refused("backward", error, ()) from None
        if not keep_graph:
            for at in self.released:
                outline.nodes[at].release()
        return results


def held_bytes(nodes: Sequence[Node]) -> int:
    """Bytes of results that the nodes have saved: a replay would hold them to its end. Leaves stay
    anyway."""
    total = 0
    for node in nodes:
        for saved in getattr(node, "saved", ()):
            if isinstance(saved, SavedOutput):
                total += saved.plain._spec.nbytes
            elif isinstance(saved, SavedInput) and saved.tensor._node is not None:
                total += saved.tensor._spec.nbytes
    return total


class Replays:
    """What is known of outlines, the one used last at the end."""

    def __init__(self) -> None:
        self.known: OrderedDict[tuple, Any] = OrderedDict()
        self.misses = 0
        self.idle = 0

    def looks(self) -> bool:
        """Is it worth finding the outline of the next pass? Seldom, where all have been new."""
        if self.idle:
            self.idle -= 1
            return False
        return True

    def find(self, key: tuple) -> Any:
        """The replay, SEEN, NEVER, or None for an outline that is new."""
        found = self.known.get(key)
        if found is not None:
            with suppress(KeyError):  # another thread may have let it go
                self.known.move_to_end(key)
            self.misses = 0
            return found
        self.misses += 1
        if self.misses > PATIENCE:
            self.idle = min(self.misses, 1024)
        self.keep(key, SEEN)
        return None

    def keep(self, key: tuple, what: Any) -> None:
        self.known[key] = what
        while len(self.known) > KEPT:
            self.known.popitem(last=False)


replays = Replays()


def may_replay() -> bool:
    """Does the pass run plain operations on this thread?"""
    return state.top is None and state.executor.__class__ is EagerExecutor and replays.looks()


class Recorder(EagerExecutor):
    """The executor of one pass: computes, and writes down each plan with the places it reads.

    A place is a tensor that the pass was given or has made. All are held until the end, so no
    two share an id; a tensor on the very memory of a place is that place under another name.
    """

    holds = 1

    def __init__(self, inputs: Sequence[Tensor], fits: bool = True):
        self.held: list[Tensor] = []
        self.places: dict[int, int] = {}
        self.memory: dict[int, int] = {}
        self.lines: list[Line] = []
        self.fits = fits
        self.count = 0
        self.given = [self.place(t) for t in inputs]
        self.reads = next(interop.reads)

    def place(self, t: Tensor) -> int:
        """A new place, for t."""
        at, self.count = self.count, self.count + 1
        self.held.append(t)
        self.places[id(t)] = at
        self.memory.setdefault(id(t._array), at)
        return at

    def find(self, t: Tensor) -> int | None:
        at = self.places.get(id(t))
        if at is None:
            at = self.memory.get(id(t._array))
            if at is not None:
                self.held.append(t)
                self.places[id(t)] = at
        return at

    def operands(self, args: tuple) -> list:
        """Places of tensors; numbers and None in a `Constant`."""
        found = [self.find(a) if isinstance(a, Tensor) else Constant(a) for a in args]
        if None in found:
            self.fits = False
        return found

    def execute(self, primitive, args: tuple, params: dict) -> Any:
        operands = self.operands(args)
        out = super().execute(primitive, args, params)
        made = [self.place(t) for t in (out if isinstance(out, tuple) else (out,))]
        self.write(primitive, signature(args, params), operands, made, isinstance(out, tuple))
        return out

    def execute_inplace(self, primitive, target: Tensor, args: tuple, params: dict) -> None:
        operands = self.operands((target, *args))
        super().execute_inplace(primitive, target, args, params)
        self.write(primitive, (target._spec, signature(args, params)), operands, [], False)

    def write(self, primitive, key: tuple, operands: list, made: list[int], several: bool) -> None:
        plan = primitive.plans.get(key)
        if plan is None or primitive.kind == "random":
            self.fits = False
        else:
            self.lines.append(Line(plan, operands, made, several))

    def replay(
        self, outline: Outline, ran: list[Node], results: Sequence[Tensor | None]
    ) -> Replay | None:
        """What makes the same `results` from the inputs of another pass. `ran` are the nodes whose
        rules the pass has called: it frees what they have saved, unless the graph is kept."""
        places = [None if t is None else self.find(t) for t in results]
        unknown = any(t is not None and p is None for t, p in zip(results, places))
        if unknown or not self.fits or next(interop.reads) != self.reads + 1:
            return None
        done = set(ran)
        released = [k for k, node in enumerate(outline.nodes) if node in done]
        return Replay(written(self.lines, self.given, places), released)


class Constant(NamedTuple):
    """An operand that is the same in every pass."""

    value: Any


class Line(NamedTuple):
    """made <- plan(operands); without `made`, the plan writes into its first operand."""

    plan: Callable
    operands: list
    made: list[int]
    several: bool


def written(lines: list[Line], given: list[int], results: list[int | None]) -> Callable:
    """The lines as a Python function; what no later line reads is let go."""
    space: dict[str, Any] = {"bump": bump}
    last = {p: k for k, line in enumerate(lines) for p in line.operands if isinstance(p, int)}
    keep = {*given, *results}
    text = [f"def replay({', '.join(f't{p}' for p in given)}):"]
    for k, (plan, operands, made, several) in enumerate(lines):
        space[f"plan{k}"] = plan
        words = []
        for n, p in enumerate(operands):
            words.append(f"t{p}" if isinstance(p, int) else f"c{k}_{n}")
            if isinstance(p, Constant):
                space[words[-1]] = p.value
        call = f"plan{k}({', '.join(words)})"
        names = ", ".join(f"t{p}" for p in made) + "," * several
        text.append(f" {names} = {call}" if made else f" {call}")
        if not made and operands[0] in given:  # somebody outside may look at its version
            text.append(f" bump({words[0]})")
        done = [p for p in {*operands, *made} if isinstance(p, int) and last.get(p, k) == k]
        if gone := ", ".join(f"t{p}" for p in sorted(done) if p not in keep):
            text.append(f" del {gone}")
    text.append(f" return ({''.join('None, ' if p is None else f't{p}, ' for p in results)})")
    exec(compile("\n".join(text), "<backward>", "exec"), space)
    return space["replay"]

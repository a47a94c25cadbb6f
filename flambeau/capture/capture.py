"""Capturing one frame: interpret it, and make a program from what was recorded.

The outermost frame is interpreted until it returns or meets an instruction that must run as plain
Python. In the second case the capture starts again and stops before that instruction, so that
everything recorded has happened and nothing else has.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau.autograd.saved import unseen
from flambeau.capture import modes
from flambeau.capture.breaks import GraphBreak, NeedGradients, SkipFrame, UserError
from flambeau.capture.bytecodes import UnknownBytecode
from flambeau.capture.effects import write_effects
from flambeau.capture.guards import Guard, Wanted
from flambeau.capture.instructions import program
from flambeau.capture.interpreter.frame import Frame
from flambeau.capture.interpreter.run import Interpreter, Stop
from flambeau.capture.outputs import Outputs, recorded_runner
from flambeau.capture.programs import Recipe, general
from flambeau.capture.rebuild import Builder, Unrebuildable
from flambeau.capture.resume import Place, can_break_at, slot_order
from flambeau.capture.scalars import Scalars, is_symbol
from flambeau.capture.session import Session
from flambeau.capture.sources import Source
from flambeau.capture.tensors import Tensors
from flambeau.capture.values import NULL, Unseen
from flambeau.core import context
from flambeau.core.spec import _interned
from flambeau.graph import Graph
from flambeau.graph.graph import structure

ATTEMPTS = 12


class Break(NamedTuple):
    """Where and why a captured frame goes on as plain Python."""

    place: Place
    reason: str
    hint: str
    where: str


class Captured(NamedTuple):
    """A program for one frame.

    `program(function, *raw arguments)` gives MISS if a guard fails; otherwise the frame's result,
    or, with a break, the bound locals and stack at its place.
    """

    program: Callable[..., Any]
    graph: Graph
    guards: list[Guard]
    broken: Break | None
    recorded: bool
    text: str
    symbolic: bool
    form: str
    """What must be equal for two captures to be one program; empty without symbolic numbers."""
    pinned: frozenset[str]
    recipe: Recipe


class Options(NamedTuple):
    """What a capture is asked to do.

    backend         (graph, examples) -> callable, for a graph whose results have no history
    differentiable  (graph, examples, backend, outputs) -> callable, for one where the outputs at
                    these positions have
    """

    backend: Callable[..., Callable]
    differentiable: Callable[..., Callable] = recorded_runner
    fullgraph: bool = False
    dynamic: frozenset[str] = frozenset()
    static: bool = False
    symbolic: bool = False
    pinned: frozenset[str] = frozenset()
    """Numbers that turned out to be decided by what the frame does with them."""
    stop: int | None = None
    """Break before this instruction of a function's start, for tests."""


class Frozen(NamedTuple):
    """The frame to capture: a function called with raw arguments, or resumed at a place."""

    function: types.FunctionType
    code: types.CodeType
    names: tuple[str, ...]
    values: tuple
    start: Place | None = None


class Attempt:
    """One pass over the frame."""

    def __init__(
        self, frozen: Frozen, options: Options, stop: int | None, gradients: bool, shift: int = 0
    ):
        self.frozen, self.options = frozen, options
        self.tensors = Tensors(gradients)
        self.session = Session(self.tensors)
        self.session.dynamic = set(options.dynamic)
        self.session.scalars = self.tensors.recorder.scalars = Scalars(self.session, shift)
        self.session.all_symbolic = options.symbolic
        self.session.pinned = options.pinned
        self.run = self.tensors.run = Interpreter(self.session, stop)
        self.session.note(frozen.function, Source(None, "function"))
        self.frame = self._frame()
        self.result: Any = None
        self.stopped = False
        self.before = modes.snapshot()
        self.changes: list[tuple[Any, str, Any]] = []

    def _frame(self) -> Frame:
        frozen, session = self.frozen, self.session
        slots: dict[str, Any] = {}
        stack: list[Any] = []
        bound = len(frozen.start.bound) if frozen.start else len(frozen.names)
        for k, (name, value) in enumerate(zip(frozen.names, frozen.values)):
            source = Source(None, "local", name)
            if k >= bound:
                last = k == len(frozen.names) - 1
                unread = last and self._passes_on()
                stack.append(Unseen(value, source) if unread else session.wrap(value, source))
            elif isinstance(value, types.CellType) and name in frozen.code.co_cellvars:
                session.note(value, source)
                slots[name] = value
            else:
                slots[name] = Unseen(value, source)
        source = session.source(frozen.function)
        frame = Frame(self.run, frozen.function, frozen.code, slots, source)
        frame.is_root = True
        if frozen.start is not None:
            frame.pc = frozen.start.index
            values = iter(stack)
            frame.stack.extend(NULL if null else next(values) for null in frozen.start.nulls)
        return frame

    def _passes_on(self) -> bool:
        """Whether the resumed frame only stores or returns what the instruction before has given:
        that is no reason to guard it."""
        assert self.frozen.start is not None
        instructions, at = program(self.frozen.code), self.frozen.start.index
        while instructions[at].name == "NOP":
            at += 1
        return instructions[at].name in ("STORE_FAST", "RETURN_VALUE", "POP_TOP")

    def interpret(self) -> None:
        """Run the frame; afterwards the thread's switches are as before."""
        try:
            with unseen(), context.executing(self.tensors.recorder):
                self.result = self.frame.execute()
        except Stop:
            self.stopped = True
        finally:
            self.changes = modes.changes(self.before)
            modes.restore(self.before)

    # The program -----------------------------------------------------------------------------

    def place(self) -> Place:
        """The shape of the frame where it was stopped."""
        frame = self.frame
        if frame.handled is not None:
            raise SkipFrame("the frame breaks inside of an exception handler")
        bound = slot_order(frame.code, frame.slots)
        return Place(frame.pc, tuple(v is NULL for v in frame.stack), bound)

    def finished(self, broken: Break | None) -> Captured:
        """Write the program."""
        reads = Wanted()
        outputs = Outputs(self.tensors, self.session)
        builder = Builder(self.session, reads, outputs.expression, outputs.number)
        outputs.builder = builder
        for change in self.changes:
            self.session.effect(("state", *change[:2]), ("state", change, None))
        outputs.note_changes()
        if broken is None:
            result = builder.expression(self.result)
        else:
            frame = self.frame
            values = [frame.slots[n] for n in broken.place.bound]
            values += [v for v in frame.stack if v is not NULL]
            result = "(" + "".join(builder.expression(v) + ", " for v in values) + ")"
        builder.finish()
        result = builder.body.fresh(result, "r")
        write_effects(builder)
        return self._written(builder, outputs, result, broken)

    def _written(
        self, builder: Builder, outputs: Outputs, result: str, broken: Break | None
    ) -> Captured:
        graph = outputs.graph()
        execute = None
        if graph.equations or outputs.names():
            options = self.options
            execute = outputs.execution(graph, options.backend, options.differentiable)
        tail = outputs.separated(graph) + outputs.lines + builder.body.lines
        scalars = self.session.scalars
        recipe = Recipe(
            self.frozen.names,
            self._guards(graph),
            builder.reads,
            outputs.input_sources(),
            [term for term, _ in scalars.inputs.values()],
            execute,
            outputs.names(),
            [*tail, f"    return {result}"],
        )
        program = general(recipe)
        symbolic = bool(scalars.by_source)
        form = program.source_text + structure(graph) if symbolic else ""
        recorded = bool(graph.equations)
        pinned = frozenset(scalars.pinned)
        scalars.release()
        if symbolic:
            forget_symbolic_specs()
        text = program.source_text
        return Captured(
            program, graph, recipe.guards, broken, recorded, text, symbolic, form, pinned, recipe
        )

    def _guards(self, graph: Graph) -> list[Guard]:
        session = self.session
        unchanged = modes.Unchanged()
        session.test(None, unchanged, unchanged.description, "modes")
        self.tensors.guard_aliasing(graph)
        self._guard_identities()
        return list(session.guards.values())

    def _guard_identities(self) -> None:
        """Objects that are changed must not be other objects that the program knows."""
        session = self.session
        changed = {id(s) for kind, s, _ in session.effects.values() if kind == "attribute"}
        changed |= set(session.snapshots)
        changed |= set(session.unfilled)
        groups: dict[type, dict[int, Source]] = {}
        mutated: set[type] = set()
        for value in session.kept:
            source = session.sources.get(id(value))
            if source is None or source.is_constant or session.tensors.is_tensor(value):
                continue
            kind = self.run.type_of(value)
            if id(value) in session.originals or id(value) not in session.shadows:
                groups.setdefault(kind, {})[id(source)] = source
            if id(value) in changed:
                mutated.add(kind)
        for kind in mutated:
            sources = tuple(groups.get(kind, {}).values())
            if len(sources) > 1:
                session.guard(sources[0], "distinct", sources)


SHIFTS = (2, 5, 1, 3, 4, 6, 7, 8, 10, 12, 16, 20, 30, 32, 60, 64, 100, 128, 1000)
"""What may be added to symbolic integers in a second capture."""
SECOND_CAPTURES = 3


def _never_run(*graph: Any) -> Callable[..., Any]:
    """The backend of a second capture, whose numbers do not fit the tensors."""
    return _never_run


def forget_symbolic_specs() -> None:
    """Specs with symbolic sizes mean something in one capture only."""
    for key in [k for k in tuple(_interned) if any(map(is_symbol, k[1]))]:
        _interned.pop(key, None)


def capture(frozen: Frozen, options: Options) -> Captured:
    """A program for the frame. Raises SkipFrame if it must run as plain Python.

    A program with symbolic numbers is captured a second time with other numbers in their place, for
    which its decisions are the same: C code may have read an integer behind our back, and then the
    two programs differ. In that case the frame is captured for the numbers as they are.
    """
    captured = _captured(frozen, options, 0)
    while captured.symbolic and captured.pinned - options.pinned:
        options = options._replace(pinned=options.pinned | captured.pinned)
        captured = _captured(frozen, options, 0)
    if not captured.symbolic:
        return captured
    decided = [g.expected for g in captured.guards if g.kind == "symbolic"]
    fitting = (n for n in SHIFTS if all(term.holds_for(n, answer) for term, answer in decided))
    unmade = options._replace(backend=_never_run, differentiable=_never_run)
    for shift in itertools.islice(fitting, SECOND_CAPTURES):
        try:
            again = _captured(frozen, unmade, shift)
        except (SkipFrame, Exception):
            continue
        if again.form == captured.form:
            return captured
    return _captured(frozen, options._replace(dynamic=frozenset(), symbolic=False), 0)


def _captured(frozen: Frozen, options: Options, shift: int) -> Captured:
    stop = options.stop if frozen.start is None else None
    gradients = False
    reason: GraphBreak | None = None
    for _ in range(ATTEMPTS):
        try:
            attempt = Attempt(frozen, options, stop, gradients, shift)
        except GraphBreak as found:
            if options.fullgraph:
                raise
            raise SkipFrame(found.reason) from None
        try:
            attempt.interpret()
            return _conclude(attempt, reason)
        except NeedGradients:
            gradients = True
        except GraphBreak as found:
            if options.fullgraph:
                raise
            stop, reason = _earlier(attempt.session.root_step, stop), found
        except Unrebuildable as found:
            made = attempt.session.created.get(id(found.value))
            if made is None or options.fullgraph:
                raise SkipFrame(str(found)) from None
            stop = _earlier(made, stop)
            reason = reason or GraphBreak(str(found))
        except UserError as error:
            raise SkipFrame(
                f"the frame raises {type(error.value).__name__}: {error.value}"
            ) from None
        except UnknownBytecode as error:
            raise SkipFrame(str(error)) from None
    raise SkipFrame("no place was found where the frame could be left")


def _earlier(step: int, stop: int | None) -> int:
    if stop is not None and step >= stop:
        raise SkipFrame("the frame cannot be left at the place where it breaks")
    if step < 1:
        raise SkipFrame("the frame breaks before it starts")
    return step


def _conclude(attempt: Attempt, reason: GraphBreak | None) -> Captured:
    if not attempt.stopped:
        return attempt.finished(None)
    place = attempt.place()
    if not can_break_at(attempt.frozen.code, place.index):
        raise SkipFrame("the frame breaks at an instruction that cannot run on its own")
    line = attempt.frame.instructions[place.index].line
    where = f"{attempt.frozen.code.co_filename}:{line}"
    why = reason or GraphBreak("asked to stop here")
    return attempt.finished(Break(place, why.reason, why.hint, why.where or where))

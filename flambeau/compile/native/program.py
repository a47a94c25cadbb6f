"""A graph as one generated Python function around tapes of kernel calls.

Where everything is native the function is one call. Python steps stand between two tapes and see
the arena through tensors of the frame; what they make is theirs. Nothing that lives in the arena
leaves the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from flambeau.compile.native.calls import STREAM, Call, Work
from flambeau.compile.native.frames import FrameLayout, Frames
from flambeau.compile.native.memory import MemoryPlan
from flambeau.compile.native.ordering import reads_tensor
from flambeau.core import context
from flambeau.core.bounds import out_of_range
from flambeau.core.errors import OpError, OutOfMemoryError, complaint
from flambeau.eager.memory import empty_array
from flambeau.graph import Graph
from flambeau.graph.graph import Equation, Value
from flambeau.graph.interpret import Untouched
from flambeau.graph.numbers import function_of, is_number
from flambeau.random.primitives import engine_of
from flambeau.runtime import builtin, forms
from flambeau.runtime import tape as tapes
from flambeau.tensor.tensor import Tensor, make

CONTEXT_BYTES = 64  # contexts and the arena start at multiples
LETTERS = {"i": tapes.INTEGER, "d": tapes.DOUBLE}
FIRST_CONTEXT = 8  # words of a frame before the contexts


def tensor_layout() -> tapes.TensorLayout:
    array = np.zeros(1)
    example = make(array, object())
    return tapes.TensorLayout(Tensor, *tapes.slot_places(example, array, example._spec))


class Misfit(Exception):
    """An input is not what the program was made for; nothing has been done."""


class Stretch:
    """Kernel calls without Python in between, on their way to a tape."""

    def __init__(self, calls: Sequence[Call], memory: MemoryPlan, first_word: int):
        self.calls, self.memory = calls, memory
        self.word = first_word
        self.sources: dict[tuple[Value, int], int] = {}  # (value, letter) -> argument
        self.relocations: list[tapes.Relocation] = []
        self.in_arena: list[tuple[int, int]] = []  # (word, byte of the arena)
        self.constants: list[tuple[int, int]] = []
        self.kernels: list[tapes.KernelCall] = []
        for call in calls:
            self.add(call)

    def add(self, call: Call) -> None:
        form = forms.form_of(call.entry)
        self.kernels.append(tapes.KernelCall(form, self.word))
        for place, letter, value in zip(form.places, form.letters, call.arguments, strict=True):
            self.bind(self.word + place, letter, value)
        self.word += -(-form.words * 8 // CONTEXT_BYTES) * CONTEXT_BYTES // 8

    def bind(self, word: int, letter: str, value: Any) -> None:
        if not isinstance(value, Value):
            self.constants.append((word, builtin.word_of(value, double=letter == "d")))
            return
        if letter != "p":
            self.relocations.append(tapes.Relocation(word, self.source(value, LETTERS[letter])))
            return
        start = self.memory.in_arena(value)
        if start is not None:
            self.in_arena.append((word, start))
            return
        place = self.memory.places[value]
        at = self.source(place.root, tapes.TENSOR)
        self.relocations.append(tapes.Relocation(word, at, place.offset))

    def source(self, value: Value, letter: int) -> int:
        return self.sources.setdefault((value, letter), len(self.sources) + 1)

    def tape(self, arena_start: int, layout: tapes.TensorLayout) -> Callable[..., int]:
        """The callable; the arena starts `arena_start` bytes into the frame."""
        arguments = [tapes.Argument(letter, v.spec) for v, letter in self.sources]
        moves = [tapes.Relocation(w, tapes.FRAME, arena_start + at) for w, at in self.in_arena]
        return tapes.tape(arguments, [*self.relocations, *moves], self.kernels, layout)

    def first_effect(self) -> int:
        """The first call that changes memory of the caller, or its random stream."""
        outside, places = self.memory.outside, self.memory.places
        for k, call in enumerate(self.calls):
            if call.is_random or any(places[v].root in outside for v in call.written):
                return k
        return len(self.calls)


class Program:
    """`run(*inputs)` gives the outputs; it raises Misfit or Untouched where nothing was done."""

    def __init__(self, graph: Graph, work: Sequence[Work], memory: MemoryPlan,
                 alias: Callable, written: Callable):
        self.graph, self.memory = graph, memory
        self.work = work  # keeps the kernels alive
        self.stretches: list[Stretch] = []
        self.names: dict[Value, str] = {}
        self.views = {e.outputs[0]: e for e in graph.equations if e.is_view}
        self.space: dict[str, Any] = {
            "alias": alias, "written": written, "make": make, "empty": empty_array,
            "state": context.state, "engine": engine_of(None),
            "Untouched": Untouched, "Misfit": Misfit, "fail": self.fail}
        self.lines: list[tuple[str, bool]] = []  # (text, whether it has an effect outside)
        self.arena_tensors: list[tuple[Value, str]] = []
        self.word = FIRST_CONTEXT
        self.touched = self.checked = False
        self.last_use: dict[str, int] = {}
        for value in graph.inputs:
            self.names[value] = f"x{len(self.names)}"
        self.names[STREAM] = "stream"
        for value, tensor in graph.constants.items():
            self.names[value] = self.constant(tensor)
        self.write(work)
        self.link()
        self.run = self.generated()

    # writing lines

    def constant(self, value: Any) -> str:
        name = f"c{len(self.space)}"
        self.space[name] = value
        return name

    def line(self, text: str, names: Iterable[str] = (), effect: bool = False) -> None:
        for name in names:
            self.last_use[name] = len(self.lines)
        self.touched = self.touched or effect
        self.lines.append((text, effect))

    def write(self, work: Sequence[Work]) -> None:
        pending: list[Call] = []
        for piece in work:
            if isinstance(piece, Call):
                pending.append(piece)
                continue
            if not is_number(piece.op) or reads_tensor(piece):
                self.flush(pending)
                pending = []
            self.step(piece)
        self.flush(pending)
        names = [self.name(v, final=True) for v in self.graph.outputs]
        self.line("frames.append(frame)")
        self.line(f"return [{', '.join(names)}]", names)

    def check_inputs(self, stretch: Stretch) -> None:
        """The first tape reads all inputs, so it tells whether they are as expected."""
        if not self.checked:
            self.checked = True
            for value in filter(is_tensor, self.graph.inputs):
                stretch.source(value, tapes.TENSOR)

    def flush(self, calls: list[Call]) -> None:
        if not calls:
            return
        for value in (v for c in calls for v in c.made):
            if value not in self.memory.arena:
                self.fresh(value)
        stretch = Stretch(calls, self.memory, self.word)
        self.word = stretch.word
        self.check_inputs(stretch)
        self.call(stretch)
        for root in dict.fromkeys(self.memory.places[v].root for c in calls for v in c.written):
            if root in self.names and root not in self.memory.arena:
                self.line(f"written({self.name(root)})")

    def fresh(self, value: Value) -> None:
        name = self.names[value] = f"r{len(self.names)}"
        spec = self.constant(value.spec)
        self.line(f"{name} = make(empty({spec}), {spec})", [name])

    def call(self, stretch: Stretch) -> None:
        number = len(self.stretches)
        self.stretches.append(stretch)
        arguments = [self.name(v) for v, _ in stretch.sources]
        passed = "".join(f", {a}" for a in arguments)
        again = "".join(f"{a}, " for a in arguments)
        run = [f"status = tape{number}(frame.address{passed})",
               f"if status: fail({number}, status, frame, {self.touched}, ({again}))"]
        if any(c.is_random for c in stretch.calls):
            run = ["with engine.lock:", "    stream = engine.address()", *indented(run)]
        self.line("\n".join(run), arguments, stretch.first_effect() < len(stretch.calls))

    def check_first(self) -> None:
        """Where a Python step comes first, an empty tape goes before it."""
        stretch = Stretch((), self.memory, self.word)
        self.check_inputs(stretch)
        self.call(stretch)

    def step(self, equation: Equation) -> None:
        """A Python step, on tensors of the caller, its own and the arena's."""
        arguments = self.text(equation.inputs)
        if is_number(equation.op):
            name = self.names[equation.outputs[0]] = f"n{len(self.names)}"
            self.line(f"{name} = {self.constant(function_of(equation.op))}(*{arguments})",
                      self.used(equation))
            return
        if not self.checked:
            self.check_first()
        call = f"{self.constant(equation.op)}, {arguments}, {self.constant(dict(equation.params))}"
        used = self.used(equation)
        if equation.target is not None:
            target = self.name(equation.target)
            op, rest = call.split(", ", 1)
            outside = self.memory.places[equation.target].root in self.memory.outside
            self.line(f"execute_inplace({op}, {target}, {rest}); written({target})",
                      [*used, target], outside or equation.is_random)
            return
        names = []
        for value in equation.outputs:
            names.append(f"t{len(self.names)}")
            self.names[value] = names[-1]
        results = ", ".join(names) + "," * equation.several
        self.line(f"{results} = execute({call})", [*used, *names], equation.is_random)

    def used(self, equation: Equation) -> list[str]:
        return [self.name(v) for v in equation.values()]

    def text(self, operand: Any) -> str:
        if isinstance(operand, Value):
            return self.name(operand)
        if type(operand) is tuple:
            return "(" + "".join(self.text(v) + ", " for v in operand) + ")"
        plain = type(operand) in (int, bool, type(None))
        return repr(operand) if plain else self.constant(operand)

    def name(self, value: Value, final: bool = False) -> str:
        """The variable of a value; a view gets one when it is first needed."""
        known = self.names.get(value)
        if known is not None:
            return known
        if self.memory.in_arena(value) is not None:
            assert not final, "memory of the arena must not leave a program"
            known = self.names[value] = f"a{len(self.names)}"
            self.arena_tensors.append((value, known))
            return known
        equation = self.views[value]
        arguments = self.text(equation.inputs)
        known = self.names[value] = f"v{len(self.names)}"
        made = f"alias(*{arguments})" if equation.op == "alias" else (
            f"execute({self.constant(equation.op)}, {arguments}, "
            f"{self.constant(dict(equation.params))})")
        self.line(f"{known} = {made}", [*self.used(equation), known])
        return known

    # putting it together

    def link(self) -> None:
        """Lay out the frame and make the tapes."""
        start = -(-self.word * 8 // CONTEXT_BYTES) * CONTEXT_BYTES
        constants = tuple(c for s in self.stretches for c in s.constants)
        tensors = tuple((v.spec, start + (self.memory.in_arena(v) or 0))
                        for v, _ in self.arena_tensors)
        self.frames = Frames(FrameLayout(start + self.memory.nbytes, constants, tensors))
        self.space.update(take=self.frames.take, frames=self.frames.idle)
        layout = tensor_layout()
        for number, stretch in enumerate(self.stretches):
            self.space[f"tape{number}"] = stretch.tape(start, layout)

    def generated(self) -> Callable[..., list[Any]]:
        head = ["frame = take()"]
        if any("execute(" in text for text, _ in self.lines):
            head.append("execute = state.executor.execute")
        if any("execute_inplace(" in text for text, _ in self.lines):
            head.append("execute_inplace = state.executor.execute_inplace")
        if self.arena_tensors:
            head.append(", ".join(n for _, n in self.arena_tensors) + ", = frame.tensors")
        first = next((k for k, (_, effect) in enumerate(self.lines) if effect), len(self.lines))
        body = [*head, "try:", *indented(self.cleaned(range(first))), "    pass"]
        body += ["except (Untouched, Misfit): raise"]
        body += ["except Exception as error: raise Untouched from error"]
        body += self.cleaned(range(first, len(self.lines)))
        inputs = [self.names[v] for v in self.graph.inputs]
        text = f"def program({', '.join(inputs)}):\n" + "\n".join(indented(body)) + "\n"
        exec(compile(text, "<flambeau program>", "exec"), self.space)
        return self.space["program"]

    def cleaned(self, span: range) -> list[str]:
        """The lines, each followed by the end of what it used last."""
        ends: dict[int, list[str]] = {}
        for name, at in self.last_use.items():
            if name[0] in "rtv" and at < len(self.lines) - 1:
                ends.setdefault(at, []).append(name)
        found = []
        for at in span:
            found += self.lines[at][0].split("\n")
            if at in ends:
                found.append(f"del {', '.join(ends[at])}")
        return found

    # when something goes wrong

    def fail(self, number: int, status: int, frame: Any, touched: bool, arguments: tuple) -> None:
        """Raise what a tape's status says; return where a second try has succeeded."""
        stretch = self.stretches[number]
        if status == tapes.UNFIT:
            status = self.space[f"tape{number}"](frame.address, *respecced(stretch, arguments))
        if status == tapes.DONE:
            return
        if status == tapes.UNFIT and touched:  # to begin again would write twice
            raise OpError(complaint("program", "a step must give a result of the planned layout",
                                    dict(stretch=number), "Please report it."))
        if status == tapes.UNFIT:
            raise Misfit
        at = int(frame.words[tapes.FAILED_CALL])
        error = failure(stretch.kernels[at], frame, status)
        if touched or at >= stretch.first_effect():
            raise error
        raise Untouched from error


def is_tensor(value: Value) -> bool:
    return not value.spec.weak


def indented(lines: Iterable[str]) -> list[str]:
    return ["    " + line for line in lines]


def respecced(stretch: Stretch, arguments: tuple) -> list[Any]:
    """The arguments under the specs that the tape knows: equal specs may be two objects."""
    found = []
    for (value, letter), x in zip(stretch.sources, arguments):
        if letter == tapes.TENSOR and x._spec is not value.spec:
            s, have = value.spec, x._spec
            if x._array is None or (have.dtype, have.shape, have.strides, have.device) != (
                    s.dtype, s.shape, s.strides, s.device):
                raise Misfit
            x = make(np.asarray(x._array), s)
        found.append(x)
    return found


def failure(kernel: tapes.KernelCall, frame: Any, status: int) -> Exception:
    if status == forms.INDEX_ERROR:
        at = kernel.context + kernel.form.found
        index, size, site = map(int, frame.words[at : at + 3])
        return out_of_range(kernel.form.sites[site], index, size)
    return OutOfMemoryError(complaint("program", "memory must suffice for a kernel's work"))

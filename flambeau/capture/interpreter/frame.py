"""One interpreted frame: the loop that executes canonical instructions."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from flambeau.capture.breaks import GraphBreak, UserError
from flambeau.capture.instructions import Instruction, program
from flambeau.capture.sources import Source
from flambeau.capture.values import MISSING

Operation = Callable[["Frame", Instruction], Any]
OPERATIONS: dict[str, Operation] = {}
RETURNED, YIELDED = object(), object()


def operation(*names: str) -> Callable[[Operation], Operation]:
    """Register the function that executes the instructions with these names.

    It may return RETURNED or YIELDED, with the value on top of the stack.
    """

    def register(function: Operation) -> Operation:
        for name in names:
            OPERATIONS[name] = function
        return function

    return register


class Frame:
    """The state of a function that is being interpreted.

    Slots map names to values; the slot of a cell variable holds the cell.
    """

    __slots__ = (
        "code",
        "free",
        "function",
        "globals",
        "handled",
        "instructions",
        "is_root",
        "keyword_names",
        "pc",
        "run",
        "slots",
        "source",
        "stack",
        "yielded",
    )

    def __init__(
        self,
        run: Any,
        function: types.FunctionType,
        code: types.CodeType,
        slots: dict[str, Any],
        source: Source | None,
    ):
        self.run = run
        self.function = function
        self.code = code
        self.globals = function.__globals__
        self.slots = slots
        self.source = source
        self.instructions = program(code)
        self.pc = 0
        self.stack: list[Any] = []
        self.keyword_names: tuple[str, ...] = ()
        self.handled: BaseException | None = None
        self.is_root = False
        self.yielded: Any = MISSING
        self.free = dict(zip(code.co_freevars, function.__closure__ or ()))

    # The loop --------------------------------------------------------------------------------

    def throw_in(self, error: BaseException) -> Any:
        """Go on with an exception at the place where the frame is suspended."""
        at = self.pc - 1
        self._unwind(UserError(error), self.instructions[at], at)
        return self.execute()

    def execute(self) -> Any:
        """Run until the function returns or yields; the value, or the program's exception."""
        stack, instructions, session = self.stack, self.instructions, self.run.session
        while True:
            at = self.pc
            instruction = instructions[at]
            if self.is_root and instruction.name != "NOP":
                self.run.before_root_step(self, at)
            session.count_step()
            self.pc = at + 1
            try:
                done = OPERATIONS[instruction.name](self, instruction)
            except UserError as error:
                self._unwind(error, instruction, at)
                continue
            except GraphBreak as reason:
                if not reason.where:
                    reason.where = f"{self.code.co_filename}:{instruction.line}"
                raise
            except KeyError:
                if instruction.name not in OPERATIONS:
                    raise GraphBreak(f"instruction {instruction.name}") from None
                raise
            if done is not None:
                if done is YIELDED:
                    self.yielded = stack.pop()
                    return None
                return stack.pop()

    def _unwind(self, error: UserError, instruction: Instruction, at: int) -> None:
        handler = instruction.handler
        if handler is None:
            raise error
        del self.stack[handler.depth :]
        if handler.push_lasti:
            self.stack.append(at)
        value = error.value
        if value.__context__ is None and self.handled is not None and self.handled is not value:
            value.__context__ = self.handled
        self.run.session.keep(value)
        self.stack.append(value)
        self.pc = handler.target

    # Stack -----------------------------------------------------------------------------------

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        return self.stack.pop()

    def pops(self, count: int) -> list[Any]:
        """The topmost values, deepest first."""
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    # Variables -------------------------------------------------------------------------------

    def cell(self, name: str) -> tuple[types.CellType, Source | None]:
        """The cell of a variable and the path to it."""
        free = self.free.get(name)
        if free is None:
            return self.slots[name], None
        source = None
        if self.source is not None and id(free) not in self.run.session.new_cells:
            source = self.source.step("cell", self.code.co_freevars.index(name))
        return free, source

    def read_cell(self, name: str) -> Any:
        cell, source = self.cell(name)
        value = self.run.session.read_cell(cell, source)
        if value is MISSING:
            if name in self.code.co_freevars:
                text = (
                    f"cannot access free variable {name!r} where it is not associated with a value"
                )
                raise UserError(NameError(text))
            text = f"cannot access local variable {name!r} where it is not associated with a value"
            raise UserError(UnboundLocalError(text))
        return value

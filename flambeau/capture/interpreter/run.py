"""The interpreter: one object that the operations, calls and attributes of a capture share."""

from __future__ import annotations

import types
from typing import Any

from flambeau.capture.attributes import Attributes
from flambeau.capture.breaks import GraphBreak, UserError, foreign
from flambeau.capture.interpreter import containers, control, operations, operators, tensor_calls
from flambeau.capture.interpreter.builtin_calls import FRAME_HANDLERS, HANDLERS
from flambeau.capture.interpreter.calls import Calls
from flambeau.capture.interpreter.data import Data, is_active
from flambeau.capture.interpreter.frame import Frame
from flambeau.capture.interpreter.generators import Generator
from flambeau.capture.session import Session
from flambeau.capture.values import MISSING, InstanceDict, static

CODE_HANDLERS: dict[types.CodeType, Any] = {}
"""The interpreter's version of Python functions, by their code: called as (run, *args)."""

OPERATION_FILES = (containers, control, operations, operators, tensor_calls)


class Stop(BaseException):
    """The outermost frame has reached the instruction at which the capture was told to stop."""


class Interpreter(Calls, Data):
    """Interprets one outermost frame and everything that it calls."""

    def __init__(self, session: Session, stop_before: int | None = None):
        self.session = session
        self.attributes = Attributes(self)
        self.handlers = HANDLERS
        self.frame_handlers = FRAME_HANDLERS
        self.code_handlers = CODE_HANDLERS
        self.stop_before = stop_before

    def before_root_step(self, frame: Frame, at: int) -> None:
        """Count the instructions of the outermost frame; stop where the capture has to."""
        self.session.root_step += 1
        if self.session.root_step == self.stop_before:
            frame.pc = at
            raise Stop

    def text_of(self, value: Any, convert: Any = str) -> str:
        """`str(value)` or `repr(value)`."""
        if self.session.tensors.is_tensor(value):
            raise GraphBreak("a tensor is turned into text", "Print it outside.")
        value = self.index(value)
        for name in ("__str__", "__repr__") if convert is str else ("__repr__",):
            if convert is str and name == "__repr__":
                own = static(type(value), "__str__")
                if own is not None and own is not object.__str__:
                    break
            method = self.python_special(value, name)
            if method is not None:
                text = self.call(method, ())
                if not isinstance(text, str):
                    raise UserError(TypeError(f"{name} returned non-string"))
                return text
        self._check_text(self.session.whole(value), 0)
        return foreign(convert, value)

    def _check_text(self, value: Any, depth: int) -> None:
        """C code will print the value: nothing in it may be Python code, a tensor or unread."""
        if isinstance(value, (InstanceDict, Generator)) or self.session.tensors.is_tensor(value):
            raise GraphBreak("a value is turned into text", "Print it outside.")
        if isinstance(value, (list, tuple, dict, set, frozenset)) and depth < 10:
            elements = (*value, *value.values()) if isinstance(value, dict) else value
            for element in elements:
                self._check_text(element, depth + 1)
            return
        kind = type(value)
        if kind.__flags__ & (1 << 9) and not isinstance(value, (type, BaseException)):
            plain = static(kind, "__repr__") is object.__repr__
            if plain or is_active(value) or not isinstance(value, (int, float, str)):
                raise GraphBreak(f"a {kind.__name__} object is turned into text")

    def iterator_for_c(self, value: Any) -> Any:
        """An iterable that C code may consume: interpreted ones stay interpreted."""
        iterator = self.iterator(value)
        if self.python_special(iterator, "__next__") is not None:
            return Items(self, iterator)
        return iterator


class Items:
    """A user's iterator, advanced by the interpreter on behalf of C code."""

    __slots__ = ("iterator", "run")

    def __init__(self, run: Interpreter, iterator: Any):
        self.run, self.iterator = run, iterator

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        try:
            item = self.run.next_of(self.iterator)
        except UserError as error:
            raise error.value from None
        if item is MISSING:
            raise StopIteration
        return item

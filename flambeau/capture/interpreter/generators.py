"""Generators of interpreted functions, as objects that C code can consume too."""

from __future__ import annotations

from typing import Any

from flambeau.capture.breaks import GraphBreak, UserError
from flambeau.capture.interpreter.frame import Frame
from flambeau.capture.values import MISSING


class Generator:
    """A suspended frame. `advance` is for the interpreter; the dunder methods are for C code."""

    __slots__ = ("finished", "frame", "running", "started")

    def __init__(self, frame: Frame):
        self.frame = frame
        self.started = self.finished = self.running = False

    def advance(self, value: Any = None, error: BaseException | None = None) -> Any:
        """The next item, MISSING at the end; the program's exceptions pass through."""
        item, result = self.step(value, error)
        return item

    def step(self, value: Any, error: BaseException | None = None) -> tuple[Any, Any]:
        """(item, None), or (MISSING, return value) at the end."""
        if self.finished:
            if error is not None:
                raise UserError(error)
            return MISSING, None
        if self.running:
            raise UserError(ValueError("generator already executing"))
        frame = self.frame
        if error is not None and not self.started:
            self.finished = True
            raise UserError(error)
        if self.started:
            frame.stack.append(value)
        elif value is not None:
            text = "can't send non-None value to a just-started generator"
            raise UserError(TypeError(text))
        else:
            frame.stack.append(None)
        self.running, self.started = True, True
        frame.yielded = MISSING
        try:
            result = frame.throw_in(error) if error is not None else frame.execute()
        except UserError as raised:
            self.finished = True
            if isinstance(raised.value, StopIteration):
                text = "generator raised StopIteration"
                made = RuntimeError(text)
                made.__cause__ = raised.value
                raise UserError(made) from None
            raise
        except BaseException:
            self.finished = True
            raise
        finally:
            self.running = False
        if frame.yielded is MISSING:
            self.finished = True
            return MISSING, result
        return frame.yielded, None

    def __iter__(self) -> Generator:
        return self

    def __next__(self) -> Any:
        try:
            item, result = self.step(None)
        except UserError as error:
            raise error.value from None
        if item is MISSING:
            raise StopIteration(result)
        return item

    def send(self, value: Any) -> Any:
        try:
            item, result = self.step(value)
        except UserError as error:
            raise error.value from None
        if item is MISSING:
            raise StopIteration(result)
        return item

    def throw(self, error: Any, value: Any = None, traceback: Any = None) -> Any:
        if isinstance(error, type):
            error = error() if value is None else value
        try:
            item, result = self.step(None, error)
        except UserError as raised:
            raise raised.value from None
        if item is MISSING:
            raise StopIteration(result)
        return item

    def close(self) -> None:
        if self.finished or not self.started:
            self.finished = True
            return
        try:
            item, _ = self.step(None, GeneratorExit())
        except UserError as raised:
            if isinstance(raised.value, (GeneratorExit, StopIteration)):
                return
            raise raised.value from None
        if item is not MISSING:
            raise GraphBreak("a generator ignored GeneratorExit")

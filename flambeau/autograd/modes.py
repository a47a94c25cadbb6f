"""Switches of gradient recording, per thread: usable as context managers and as decorators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from flambeau.core.context import state


class _Mode:
    """Sets `grad_enabled` inside a `with` block or a decorated function or generator."""

    enabled: bool | None = None

    def __init__(self, orig_func: Callable | None = None):
        self._previous: list[tuple[bool, bool]] = []

    def __new__(cls, orig_func: Any = None, *args, **kwargs):
        if callable(orig_func) and not args and not kwargs:
            return cls()(orig_func)  # `@no_grad` without parentheses
        return object.__new__(cls)

    def __enter__(self) -> None:
        self._previous.append((state.grad_enabled, state.inference))
        self.apply()

    def apply(self) -> None:
        state.grad_enabled = self.enabled

    def __exit__(self, *exc) -> None:
        state.grad_enabled, state.inference = self._previous.pop()

    def clone(self):
        return type(self)()

    def __call__(self, f: Callable) -> Callable:
        if inspect.isclass(f):
            f.__init__ = self(f.__init__)
            return f
        if inspect.isgeneratorfunction(f):
            return self._generator(f)

        @functools.wraps(f)
        def inside(*args, **kwargs):
            with self.clone():
                return f(*args, **kwargs)

        return inside

    def _generator(self, f: Callable) -> Callable:
        """Each resumption runs inside the mode; the code between resumptions does not."""

        @functools.wraps(f)
        def inside(*args, **kwargs):
            generator = f(*args, **kwargs)
            send, value = generator.send, None
            while True:
                try:
                    with self.clone():
                        item = send(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    value, send = (yield item), generator.send
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    value, send = error, generator.throw

        return inside


class no_grad(_Mode):
    """Operations inside are not recorded."""

    enabled = False


class enable_grad(_Mode):
    """Operations inside are recorded, also within `no_grad`."""

    enabled = True


class set_grad_enabled(_Mode):
    """Sets recording on or off at once; as a context manager restores it at the end."""

    def __new__(cls, mode: bool):
        return object.__new__(cls)

    def __init__(self, mode: bool):
        self.enabled = bool(mode)
        self._previous = [(state.grad_enabled, state.inference)]
        state.grad_enabled = self.enabled

    def __enter__(self) -> None:
        state.grad_enabled = self.enabled

    def __call__(self, f: Callable) -> Callable:
        state.grad_enabled, state.inference = self._previous[-1]
        return super().__call__(f)

    def clone(self):
        return type(self)(self.enabled)


class inference_mode(_Mode):
    """`no_grad` whose results may never take part in recorded computation again."""

    def __new__(cls, mode: Any = True):
        if callable(mode):
            return cls()(mode)
        return object.__new__(cls)

    def __init__(self, mode: bool = True):
        self._previous = []
        self.mode = mode

    def apply(self) -> None:
        state.inference = self.mode
        state.grad_enabled = not self.mode and state.grad_enabled

    def clone(self):
        return type(self)(self.mode)


def is_grad_enabled() -> bool:
    return state.grad_enabled


def is_inference_mode_enabled() -> bool:
    return state.inference

"""Symbolic numbers: Python numbers that change from call to call without a new capture."""

from __future__ import annotations

from typing import Any

from flambeau.capture.sources import Source


class Scalars:
    """Numbers of one capture."""

    def __init__(self, session: Any):
        self.session = session

    def input(self, value: Any, source: Source) -> Any:
        self.session.guard(source, "equals", value)
        return value

    def type_of(self, value: Any) -> type:
        return type(value)

    def is_symbolic(self, value: Any) -> bool:
        return False

    def any(self, values: Any) -> bool:
        return False

    def concrete(self, value: Any) -> Any:
        return value

    def text(self, value: Any, writer: Any) -> str:
        return repr(value)

    def for_native(self, values: Any) -> Any:
        return values

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        return function(*args, **kwargs)

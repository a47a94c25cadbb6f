"""Failure: an exception on its way from a worker to the program."""

from __future__ import annotations

import os
import pickle
import traceback
from types import TracebackType
from typing import Any

_HERE = os.path.dirname(__file__)


class _Verbatim(str):
    """KeyError shows the repr of its argument; this one's repr keeps the lines of a traceback."""

    def __repr__(self) -> str:
        return str(self)


class Failure:
    """The class of an exception and the text of its traceback, both fit for pickling."""

    def __init__(self, error: BaseException, where: str):
        self.kind: type[BaseException] = type(error)
        text = "".join(traceback.format_exception(self.kind, error, _from_users_code(error)))
        self.text = f"Caught {self.kind.__name__} in {where}.\nOriginal {text}"
        if isinstance(error, StopIteration) or not _travels(self.kind):
            self.kind = RuntimeError  # a StopIteration would end the program's loop silently

    def reraise(self) -> None:
        """Raise the same class with the worker's traceback as its text."""
        text: Any = _Verbatim(self.text) if issubclass(self.kind, KeyError) else self.text
        try:
            error = self.kind(text)
        except Exception:  # a constructor that wants something else
            error = RuntimeError(text)
        try:
            raise error
        finally:
            del error  # the traceback's frame would hold it, and it the iterator's workers


def _from_users_code(error: BaseException) -> TracebackType | None:
    """The traceback without our own frames at its start; all of it where there are only those."""
    rest = error.__traceback__
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(_HERE):
        rest = rest.tb_next
    return rest or error.__traceback__


def _travels(kind: type) -> bool:
    try:
        return pickle.loads(pickle.dumps(kind)) is kind
    except Exception:
        return False

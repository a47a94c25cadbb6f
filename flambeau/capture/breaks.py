"""How an attempt to capture ends early.

All of these derive from BaseException so that no `except Exception` in interpreted or library code
swallows them.
"""

from __future__ import annotations


class GraphBreak(BaseException):
    """This instruction must run as plain Python."""

    def __init__(self, reason: str, hint: str = ""):
        super().__init__(reason)
        self.reason, self.hint = reason, hint
        self.where = ""


class SkipFrame(BaseException):
    """The whole frame must run as plain Python."""


class NeedGradients(BaseException):
    """The frame reads `.grad`: capture it again with the gradients as inputs."""


class UserError(BaseException):
    """An exception that the user's program raises, as opposed to a fault of the capture."""

    def __init__(self, value: BaseException):
        super().__init__(value)
        self.value = value


CONTROL = (GraphBreak, SkipFrame, NeedGradients, UserError)


def foreign(function, *args, **kwargs):
    """Run code that belongs to the user's program; what it raises is the program's."""
    try:
        return function(*args, **kwargs)
    except CONTROL:
        raise
    except BaseException as error:
        raise UserError(error) from None


def native_side(function, *args, **kwargs):
    """The reverse of `foreign`, for interpreted code that C code calls."""
    try:
        return function(*args, **kwargs)
    except UserError as error:
        raise error.value from None

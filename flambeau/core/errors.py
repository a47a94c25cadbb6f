"""Every exception flambeau raises on purpose. Imports nothing.

Each class also derives from the builtin that PyTorch raises, so users' `except` clauses keep
working. The text is always `<op>: <what must hold>; got <facts>. <what to do>`.
"""

from __future__ import annotations


class FlambeauError(Exception):
    """Base class of the errors below."""


class ShapeError(FlambeauError, RuntimeError):
    """Operand sizes do not fit together."""


class DtypeError(FlambeauError, RuntimeError):
    """An operand has a dtype that the op does not accept."""


class DeviceError(FlambeauError, RuntimeError):
    """Operands are on devices that do not fit together."""


class NoDeviceError(DeviceError, AssertionError):
    """A device is not present. PyTorch raises AssertionError for it, and RuntimeError elsewhere."""


class DimError(FlambeauError, IndexError):
    """A dimension is out of range."""


class IndexOutOfRange(FlambeauError, IndexError):
    """An index points outside of its dimension."""


class ArgumentError(FlambeauError, TypeError):
    """An argument has a type that the op does not accept."""


class ValueRangeError(FlambeauError, ValueError):
    """An argument has the right type and a value that makes no sense."""


class OpError(FlambeauError, RuntimeError):
    """Any other rule of an op is broken."""


class LinAlgError(FlambeauError, RuntimeError):
    """A matrix is singular, not positive definite, or an iteration did not converge."""


class AutogradError(FlambeauError, RuntimeError):
    """A rule of automatic differentiation is broken."""


class UnsupportedError(FlambeauError, NotImplementedError):
    """PyTorch refuses this as well, with NotImplementedError."""


class OutOfMemoryError(FlambeauError, RuntimeError, MemoryError):
    """Memory could not be allocated. RuntimeError is PyTorch's class, MemoryError Python's."""


def complaint(op: str, must: str, got: dict | None = None, hint: str = "") -> str:
    """`<op>: <must>; got <facts>. <hint>`, the only form of our messages."""
    facts = ", ".join(f"{k}={v}" for k, v in (got or {}).items())
    head = f"{op}: {must}" + (f"; got {facts}." if facts else ".")
    return head + (f" {hint}" if hint else "")

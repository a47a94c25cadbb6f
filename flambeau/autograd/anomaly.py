"""Anomaly mode: where NaNs come from, forward and backward."""

from __future__ import annotations

import traceback

import numpy as np

from flambeau.core.errors import AutogradError, complaint
from flambeau.tensor.tensor import Tensor

enabled = False
check_nan = True
backward_passes = 0  # under way: what they compute is checked gradient by gradient


def user_traceback() -> str:
    """The stack of the forward call that recorded a node."""
    return "".join(traceback.format_stack()[:-5])


def has_nan(t) -> bool:
    return (isinstance(t, Tensor) and t._array is not None
            and t._spec.dtype.category >= 2 and bool(np.isnan(t._array).any()))


def check_forward(primitive, args: tuple, out) -> None:
    """Raise at the first NaN that an op makes from operands without one."""
    outs = out if isinstance(out, tuple) else (out,)
    looking = check_nan and not backward_passes
    if looking and any(map(has_nan, outs)) and not any(map(has_nan, args)):
        raise AutogradError(complaint(
            primitive.name, "the forward pass made NaN from inputs without NaN",
            dict(shapes=[list(a.shape) for a in args if isinstance(a, Tensor)]),
            "The traceback of this error shows the operation."))


def check_backward(node, grads) -> None:
    """Raise at the first gradient that is NaN, with the forward call that recorded it."""
    for i, g in enumerate(grads):
        if check_nan and has_nan(g):
            where = getattr(node, "traceback", "(recorded outside of anomaly mode)")
            raise AutogradError(complaint(
                "backward", f"Function '{node.name()}' returned nan values in its {i}th output",
                None, f"The forward call that recorded it:\n{where}"))


class set_detect_anomaly:
    """Switch anomaly mode; as a context manager, restore it at the end."""

    def __init__(self, mode: bool, check_nan: bool = True):
        global enabled
        self.previous = (enabled, globals()["check_nan"])
        enabled, globals()["check_nan"] = bool(mode), bool(check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        global enabled, check_nan
        enabled, check_nan = self.previous


class detect_anomaly(set_detect_anomaly):
    """Within the block, NaNs of forward and backward raise where they arise."""

    def __init__(self, check_nan: bool = True):
        super().__init__(True, check_nan)


def is_anomaly_enabled() -> bool:
    return enabled


def is_anomaly_check_nan_enabled() -> bool:
    return check_nan


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode."""
    set_detect_anomaly(mode, check_nan)

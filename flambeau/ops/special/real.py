"""How a special function becomes a primitive: computed in float64, rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flambeau.core.dtype import COMPLEX
from flambeau.ops.elementwise import pointwise
from flambeau.ops.registry import Primitive


def special(name: str, f: Callable, *, vjp=None, low: float = -2.0, high: float = 2.0,
            names=None, **info) -> Primitive:
    """A pointwise primitive of real operands from `f`, which takes and gives float64 arrays."""
    names = names or "xyzw"[:f.__code__.co_argcount]

    def ref(*operands):
        kind = np.result_type(*(x for x in operands if isinstance(x, np.ndarray)))
        wide = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in operands))
        shape = wide[0].shape
        if not shape:  # so that `f` may assign to elements
            wide = [x.reshape(1) for x in wide]
        return np.asarray(f(*wide)).astype(kind).reshape(shape)

    return pointwise(name, ref, vjp=vjp, rule="float", low=low, high=high, names=names,
                     refuses=(COMPLEX,), **info)


def polynomial(x: np.ndarray, coefficients) -> np.ndarray:
    """Horner's scheme, highest power first."""
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total *= x
        total += c
    return total


def piecewise(x: np.ndarray, *pieces) -> np.ndarray:
    """Each (mask, f): f of those x where mask holds; NaN where none does."""
    out = np.full(x.shape, np.nan)
    for mask, f in pieces:
        if mask.all():
            return f(x)
        if mask.any():
            out[mask] = f(x[mask])
    return out

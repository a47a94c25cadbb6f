"""Pointwise formulas of three and more operands: what optimisers are made of."""

from __future__ import annotations

import numpy as np

from flambeau.core.dtype import COMPLEX, FLOAT
from flambeau.loops.api import unary
from flambeau.loops.api import where as select
from flambeau.ops.elementwise import pointwise
from flambeau.ops.pointwise import conj

# `value` is an operand and not a parameter, so that a changing step size needs no new plan.


def addcmul_ref(x, a, b, value):
    return x + _scaled(a * b, value)


def addcmul_into(out, x, a, b, value) -> None:
    np.add(x, _scaled(a * b, value), out=out)


def addcdiv_ref(x, a, b, value):
    return x + _scaled(a / b, value)


def addcdiv_into(out, x, a, b, value) -> None:
    np.add(x, _scaled(a / b, value), out=out)


def _scaled(fresh, value):
    """value * fresh, in the memory of `fresh` where it is an array."""
    if value == 1:
        return fresh
    if isinstance(fresh, np.ndarray) and fresh.ndim:
        fresh *= value
        return fresh
    return fresh * value


def fused_samples(rng):
    for shape in [(), (3,), (2, 3), (0,)]:
        operands = tuple(rng.uniform(0.5, 2, shape) for _ in range(3))
        yield (*operands, 0.7), {}


NAMES = ("x", "a", "b", "value")
addcmul = pointwise(
    "addcmul",
    addcmul_ref,
    names=NAMES,
    into=addcmul_into,
    samples=fused_samples,
    scalar=lambda x, a, b, value: x + a * b * value,
    vjp=dict(
        x=lambda ct: ct,
        a=lambda ct, b, value: ct * conj(b * value),
        b=lambda ct, a, value: ct * conj(a * value),
    ),
)
addcdiv = pointwise(
    "addcdiv",
    addcdiv_ref,
    names=NAMES,
    into=addcdiv_into,
    samples=fused_samples,
    scalar=lambda x, a, b, value: x + a / b * value,
    rule="float",
    vjp=dict(
        x=lambda ct: ct,
        a=lambda ct, b, value: ct * conj(value / b),
        b=lambda ct, a, b, value: -ct * conj(value * a / (b * b)),
    ),
)


def weighted_sum_into(out, x, y, a, b) -> None:
    np.add(x * a, y * b, out=out)


def weighted_sum_samples(rng):
    for shape in [(), (3,), (2, 3), (0,)]:
        yield (rng.normal(size=shape), rng.normal(size=shape), 0.7, 0.2), {}


weighted_sum = pointwise(
    "weighted_sum",
    lambda x, y, a, b: x * a + y * b,
    names=("x", "y", "a", "b"),
    into=weighted_sum_into,
    samples=weighted_sum_samples,
    scalar=lambda x, y, a, b: x * a + y * b,
    vjp=dict(x=lambda ct, a: ct * conj(a), y=lambda ct, b: ct * conj(b)),
)


def lerp_ref(x, end, weight):
    """x + weight (end - x), from whichever end is nearer, so that weight 1 gives `end`."""
    if not isinstance(weight, np.ndarray):
        near = np.abs(weight) < 0.5
        return x + weight * (end - x) if near else end - (end - x) * (1 - weight)
    span = end - x
    return np.where(np.abs(weight) < 0.5, x + weight * span, end - span * (1 - weight))


def lerp_form(x, end, weight):
    span = end - x
    return select(unary("abs", weight) < 0.5, x + weight * span, end - span * (1 - weight))


def lerp_into(out, x, end, weight) -> None:
    if isinstance(weight, np.ndarray) or np.abs(weight) >= 0.5:
        out[...] = lerp_ref(x, end, weight)
        return
    step = end - x
    step = step * weight
    np.add(x, step, out=out)


def lerp_samples(rng):
    for shape in [(), (3,), (2, 3), (0,)]:
        x, y = rng.normal(size=shape), rng.normal(size=shape)
        yield (x, y, 0.3), {}
        yield (x, y, rng.uniform(0, 1, shape)), {}


lerp = pointwise(
    "lerp",
    lerp_ref,
    names=("x", "end", "weight"),
    into=lerp_into,
    samples=lerp_samples,
    scalar=lerp_form,
    takes=(FLOAT, COMPLEX),
    vjp=dict(
        x=lambda ct, weight: ct * conj(1 - weight),
        end=lambda ct, weight: ct * conj(weight),
        weight=lambda ct, x, end: ct * conj(end - x),
    ),
)

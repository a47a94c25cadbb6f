"""Softmax and its logarithm along one dimension, with the row's maximum taken out first."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import UnsupportedError, complaint
from flambeau.core.spec import Spec
from flambeau.loops.api import nest, reduce, unary, widened
from flambeau.ops.registry import primitive


def softmax_meta(x: Spec, *, dim) -> Spec:
    if not x.dtype.is_floating_point:
        raise UnsupportedError(
            complaint(
                "softmax",
                "the input must be floating point",
                dict(dtype=x.dtype),
                "Pass dtype=torch.float32.",
            )
        )
    return x.preserved()


def shifted(x: np.ndarray, dim: int) -> np.ndarray:
    """x minus its maximum along dim; rows of -inf alone give NaN, as they must."""
    if x.ndim == 0 or x.shape[dim] == 0:
        return x - x
    return x - x.max(axis=dim, keepdims=True)


def summed(x: np.ndarray, dim: int):
    """The sum along dim; a scalar is a row of one."""
    return x.sum(axis=dim, keepdims=True) if x.ndim else x


def softmax_ref(x, *, dim):
    e = np.exp(shifted(x, dim))
    return e / summed(e, dim)


def softmax_vjp(ct, out, dim):
    """y (ct - sum(ct y))."""
    return softmax_backward(ct, out, dim=dim)


def row_samples(rng):
    for shape, dim in [((3,), 0), ((2, 3), 1), ((2, 3), 0), ((2, 0), 1), ((2, 3, 2), 1)]:
        yield (rng.normal(size=shape),), dict(dim=dim)


def row(x, i, dim: int):
    """r -> the element of x's row through i at place r of dim."""
    return lambda r: x[(*i[:dim], *r, *i[dim + 1 :])]


def softmax_lower(outs, x, *, dim):
    """Maximum, sum of exponentials (at least 1), product with its reciprocal: a row in cache."""
    n = x.shape[dim]

    def body(i):
        top = reduce("max", (n,), lambda r: widened(row(x, i, dim)(r)))
        total = reduce("add", (n,), lambda r: unary("exp", widened(row(x, i, dim)(r)) - top))
        return unary("exp", widened(x[i]) - top) * (1.0 / total)

    return nest(x.shape, body, out=outs[0])


def log_softmax_lower(outs, x, *, dim):
    n = x.shape[dim]

    def body(i):
        top = reduce("max", (n,), lambda r: widened(row(x, i, dim)(r)))
        total = reduce("add", (n,), lambda r: unary("exp", widened(row(x, i, dim)(r)) - top))
        return widened(x[i]) - top - unary("log", total)

    return nest(x.shape, body, out=outs[0])


def softmax_backward_lower(outs, ct, y, *, dim):
    n = y.shape[dim]

    def body(i):
        g, p = row(ct, i, dim), row(y, i, dim)
        total = reduce("add", (n,), lambda r: widened(g(r)) * widened(p(r)))
        return (widened(ct[i]) - total) * widened(y[i])

    return nest(y.shape, body, out=outs[0])


def log_softmax_backward_lower(outs, ct, y, *, dim):
    n = y.shape[dim]

    def body(i):
        total = reduce("add", (n,), lambda r: widened(row(ct, i, dim)(r)))
        return widened(ct[i]) - unary("exp", widened(y[i])) * total

    return nest(y.shape, body, out=outs[0])


softmax = primitive(
    "softmax",
    meta=softmax_meta,
    ref=softmax_ref,
    vjp=dict(x=softmax_vjp),
    lower=softmax_lower,
    samples=row_samples,
)


def log_softmax_ref(x, *, dim):
    z = shifted(x, dim)
    return z - np.log(summed(np.exp(z), dim))


log_softmax = primitive(
    "log_softmax",
    meta=softmax_meta,
    ref=log_softmax_ref,
    vjp=dict(x=lambda ct, out, dim: log_softmax_backward(ct, out, dim=dim)),
    lower=log_softmax_lower,
    samples=row_samples,
)


# The backward passes, as primitives so that each is one kernel ---------------------------------


def backward_meta(ct: Spec, y: Spec, *, dim) -> Spec:
    return y.preserved()


def softmax_backward_ref(ct, y, *, dim):
    g = ct * y
    return g - y * summed(g, dim)


def softmax_backward_decomposed(ct, y, *, dim):
    g = ct * y
    return g - y * g.sum(dim, keepdim=True)


def log_softmax_backward_ref(ct, y, *, dim):
    return ct - np.exp(y) * summed(ct, dim)


def log_softmax_backward_decomposed(ct, y, *, dim):
    return ct - y.exp() * ct.sum(dim, keepdim=True)


def backward_samples(rng):
    for (x,), params in row_samples(rng):
        yield (rng.normal(size=x.shape), x), params


softmax_backward = primitive(
    "softmax_backward",
    meta=backward_meta,
    ref=softmax_backward_ref,
    vjp="decompose",
    decompose=softmax_backward_decomposed,
    lower=softmax_backward_lower,
    samples=backward_samples,
)
log_softmax_backward = primitive(
    "log_softmax_backward",
    meta=backward_meta,
    ref=log_softmax_backward_ref,
    vjp="decompose",
    decompose=log_softmax_backward_decomposed,
    lower=log_softmax_backward_lower,
    samples=backward_samples,
)

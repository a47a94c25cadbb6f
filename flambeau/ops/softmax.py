"""Softmax and its logarithm along one dimension, with the row's maximum taken out first."""

from __future__ import annotations

import numpy as np

from flambeau.core.dtype import float32
from flambeau.core.errors import UnsupportedError, complaint
from flambeau.core.spec import Spec
from flambeau.loops.api import cast, nest, reduce, unary
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


def softmax_ref(x, *, dim):
    e = shifted(x, dim)
    np.exp(e, out=e) if isinstance(e, np.ndarray) else None
    e = np.asarray(e)
    return e / e.sum(axis=dim, keepdims=True) if e.ndim else np.ones_like(e) * (x == x)


def softmax_vjp(ct, out, dim):
    """y (ct - sum(ct y))."""
    return softmax_backward(ct, out, dim=dim)


def row_samples(rng):
    for shape, dim in [((3,), 0), ((2, 3), 1), ((2, 3), 0), ((2, 0), 1), ((2, 3, 2), 1)]:
        yield (rng.normal(size=shape),), dict(dim=dim)


def row(x, i, dim: int):
    """r -> the element of x's row through i at place r of dim."""
    return lambda r: x[(*i[:dim], *r, *i[dim + 1 :])]


def wide(value):
    """Narrow floats compute in float32."""
    return cast(value, float32) if value.dtype.is_narrow_float else value


def softmax_lower(outs, x, *, dim):
    """Maximum, sum of exponentials (at least 1), product with its reciprocal: a row in cache."""
    n = x.shape[dim]

    def body(i):
        top = reduce("max", (n,), lambda r: wide(row(x, i, dim)(r)))
        total = reduce("add", (n,), lambda r: unary("exp", wide(row(x, i, dim)(r)) - top))
        return unary("exp", wide(x[i]) - top) * (1.0 / total)

    return nest(x.shape, body, out=outs[0])


def log_softmax_lower(outs, x, *, dim):
    n = x.shape[dim]

    def body(i):
        top = reduce("max", (n,), lambda r: wide(row(x, i, dim)(r)))
        total = reduce("add", (n,), lambda r: unary("exp", wide(row(x, i, dim)(r)) - top))
        return wide(x[i]) - top - unary("log", total)

    return nest(x.shape, body, out=outs[0])


def softmax_backward_lower(outs, ct, y, *, dim):
    n = y.shape[dim]

    def body(i):
        g, p = row(ct, i, dim), row(y, i, dim)
        total = reduce("add", (n,), lambda r: wide(g(r)) * wide(p(r)))
        return (wide(ct[i]) - total) * wide(y[i])

    return nest(y.shape, body, out=outs[0])


def log_softmax_backward_lower(outs, ct, y, *, dim):
    n = y.shape[dim]

    def body(i):
        total = reduce("add", (n,), lambda r: wide(row(ct, i, dim)(r)))
        return wide(ct[i]) - unary("exp", wide(y[i])) * total

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
    z = np.asarray(shifted(x, dim))
    if z.ndim == 0:
        return z
    return z - np.log(np.exp(z).sum(axis=dim, keepdims=True))


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
    return g - y * g.sum(axis=dim, keepdims=True) if g.ndim else g - g


def softmax_backward_decomposed(ct, y, *, dim):
    g = ct * y
    return g - y * g.sum(dim, keepdim=True)


def log_softmax_backward_ref(ct, y, *, dim):
    return ct - np.exp(y) * ct.sum(axis=dim, keepdims=True) if ct.ndim else ct - ct


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

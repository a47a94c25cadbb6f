"""Negative log-likelihood of class indices, with class weights and an ignored index."""

from __future__ import annotations

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.bounds import out_of_range
from flambeau.core.errors import DtypeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import cast, check, const, equal, nest, not_equal, reduce, where, widened
from flambeau.ops.registry import primitive


def nll_meta(x: Spec, target: Spec, weight: Spec | None, *, ignore_index, reduction) -> Spec:
    """x (N, C, *), target (N, *)."""
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise DtypeError(complaint("nll_loss", "expected target dtype to be Long or Byte",
                                   dict(dtype=target.dtype), "Convert it with `.long()`."))
    return spec(x.dtype, target.shape if reduction == "none" else (), None, x.device)


def class_weights(target, weight, ignore_index, classes: int, kind):
    """(target with ignored places set to 0, weight of each place)."""
    kept = target != ignore_index
    safe = np.where(kept, target, 0)
    if safe.size and (safe.min() < 0 or safe.max() >= classes):
        bad = safe[(safe < 0) | (safe >= classes)].flat[0]
        raise out_of_range("nll_loss", bad, classes)
    each = np.ones((), kind) if weight is None else weight[safe]
    return safe, np.where(kept, each, np.zeros((), kind))


def nll_ref(x, target, weight, *, ignore_index, reduction):
    safe, each = class_weights(target, weight, ignore_index, x.shape[1], x.dtype)
    picked = np.take_along_axis(x, np.expand_dims(safe.astype(np.int64), 1), axis=1)[:, 0]
    loss = np.where(each != 0, -picked * each, 0).astype(x.dtype, copy=False)
    if reduction == "none":
        return loss
    total = loss.sum()
    return total / each.sum() if reduction == "mean" else total


def picked(target, weight, ignore_index, classes: int, dtype):
    """place -> (class there, its weight, whether it counts), as `class_weights` has them."""

    def at(place: tuple):
        t = cast(target[place], dtypes.int64)
        kept = not_equal(t, ignore_index)
        safe = check(where(kept, t, 0), classes, "nll_loss")
        each = where(kept, const(1, dtype) if weight is None else cast(weight[safe], dtype),
                     const(0, dtype))
        return safe, each, not_equal(each, const(0, dtype))

    return at


def nll_lower(outs, x, target, weight, *, ignore_index, reduction):
    wide = x.dtype.wide
    at = picked(target, weight, ignore_index, x.shape[1], wide)

    def loss(i):
        safe, each, counts = at(i)
        return where(counts, -widened(x[(i[0], safe, *i[1:])]) * each, const(0, wide))

    if reduction == "none":
        return nest(target.shape, loss, out=outs[0])

    def whole(_):
        total = reduce("add", target.shape, loss)
        if reduction == "sum":
            return total
        return total / reduce("add", target.shape, lambda r: at(r)[1])

    return nest((), whole, out=outs[0])


def nll_vjp(ct, _x, target, weight, ignore_index, reduction, needs):
    g = nll_backward(ct, target, weight, shape=tuple(_x.shape), ignore_index=ignore_index,
                     reduction=reduction) if needs[0] else None
    return g, None, None


def nll_samples(rng):
    for shape in [(3, 4), (2, 3, 2)]:
        target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
        target.flat[0] = -100
        for reduction in ("none", "sum", "mean"):
            for weight in (None, rng.uniform(0.5, 1, shape[1])):
                yield ((rng.normal(size=shape), target, weight),
                       dict(ignore_index=-100, reduction=reduction))


nll = primitive("nll", meta=nll_meta, ref=nll_ref, vjp=nll_vjp, lower=nll_lower,
                samples=nll_samples)


def nll_backward_meta(g: Spec, target: Spec, weight: Spec | None, *, shape, ignore_index,
                      reduction) -> Spec:
    return spec(g.dtype, shape, None, g.device)


def nll_backward_ref(g, target, weight, *, shape, ignore_index, reduction):
    """-weight at the target class, zero elsewhere, times the cotangent."""
    safe, each = class_weights(target, weight, ignore_index, shape[1], g.dtype)
    scale = -each * g
    if reduction == "mean":
        scale = scale / each.sum()
    out = np.zeros(shape, g.dtype)
    place = np.expand_dims(safe.astype(np.int64), 1)
    np.put_along_axis(out, place, np.expand_dims(np.where(each != 0, scale, 0), 1).astype(
        g.dtype, copy=False), axis=1)
    return out


def nll_backward_lower(outs, g, target, weight, *, shape, ignore_index, reduction):
    wide = g.dtype.wide
    at = picked(target, weight, ignore_index, shape[1], wide)

    def body(i):
        place = (i[0], *i[2:])
        safe, each, counts = at(place)
        scale = -each * widened(g[place if reduction == "none" else ()])
        if reduction == "mean":
            scale = scale / reduce("add", target.shape, lambda r: at(r)[1])
        return where(equal(i[1], safe), where(counts, scale, const(0, wide)), const(0, wide))

    return nest(shape, body, out=outs[0])


def nll_backward_vjp(ct, _g, target, weight, ignore_index, reduction, needs):
    """Linear in g: the same selection of ct."""
    if not needs[0]:
        return None, None, None
    return (nll(ct, target, weight, ignore_index=ignore_index, reduction=reduction), None, None)


def nll_backward_samples(rng):
    for (x, target, weight), params in nll_samples(rng):
        shape = target.shape if params["reduction"] == "none" else ()
        yield (rng.normal(size=shape), target, weight), dict(params, shape=x.shape)


nll_backward = primitive("nll_backward", meta=nll_backward_meta, ref=nll_backward_ref,
                         vjp=nll_backward_vjp, lower=nll_backward_lower,
                         samples=nll_backward_samples)

"""Rows of a table at integer positions, with the gradient scattered back to the rows."""

from __future__ import annotations

import numpy as np

from flambeau.core.bounds import out_of_range
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import check, const, equal, nest, store, where
from flambeau.ops.gathering import add_at
from flambeau.ops.registry import primitive


def embedding_meta(w: Spec, i: Spec, *, padding, by_frequency) -> Spec:
    return spec(w.dtype, (*i.shape, *w.shape[1:]), None, w.device)


def checked(i: np.ndarray, rows: int) -> np.ndarray:
    if i.size and (i.min() < 0 or i.max() >= rows):
        bad = i[(i < 0) | (i >= rows)].flat[0]
        raise out_of_range("embedding", bad, rows)
    return i


def embedding_ref(w, i, *, padding, by_frequency):
    return np.take(w, checked(i, w.shape[0]), axis=0)


def embedding_lower(outs, w, i, *, padding, by_frequency):
    rank = len(i.shape)

    def body(p):
        row = check(i[p[:rank]], w.shape[0], "embedding")
        return w[(row, *p[rank:])]

    return nest(outs[0].shape, body, out=outs[0])


def embedding_vjp(ct, _w, i, padding, by_frequency):
    return embedding_backward(ct, i, rows=_w.shape[0], padding=padding, by_frequency=by_frequency)


def embedding_samples(rng):
    for i in (np.array([0, 2, 2]), np.array([[1, 0], [3, 1]]), np.zeros((0,), np.int64)):
        yield (rng.normal(size=(4, 3)), i), dict(padding=-1, by_frequency=False)


embedding = primitive("embedding", meta=embedding_meta, ref=embedding_ref, exact=True,
                      lower=embedding_lower, vjp=dict(w=embedding_vjp), samples=embedding_samples)


def backward_meta(g: Spec, i: Spec, *, rows, padding, by_frequency) -> Spec:
    return spec(g.dtype, (rows, *g.shape[i.ndim:]), None, g.device)


def backward_ref(g, i, *, rows, padding, by_frequency):
    """Sum of the cotangents of each row, in order; row `padding` stays zero."""
    out = np.zeros((rows, *g.shape[i.ndim:]), g.dtype)
    flat, values = i.reshape(-1), g.reshape(i.size, *g.shape[i.ndim:])
    if padding >= 0:
        keep = flat != padding
        flat, values = flat[keep], values[keep]
    if by_frequency and flat.size:
        counts = np.bincount(flat, minlength=rows)[flat]
        values = values / counts.reshape(-1, *(1 for _ in g.shape[i.ndim:])).astype(g.dtype)
    add_at(out, (flat,), values)
    return out


def backward_lower(outs, g, i, *, rows, padding, by_frequency):
    """Zeros, then each row's cotangents added in their order."""
    (out,) = outs
    if by_frequency or out.dtype.is_narrow_float:
        return None
    rank = len(i.shape)
    zeros = nest(out.shape, lambda p: const(0, out.dtype), out=out)

    def body(p):
        row = check(i[p[:rank]], rows, "embedding")
        value = g[p]
        if padding >= 0:
            value = where(equal(row, padding), const(0, out.dtype), value)
        return store(out, (row, *p[rank:]), value, "add")

    return zeros, nest(g.shape, body)


def backward_vjp(ct, i, rows, padding, by_frequency):
    """Linear in the cotangent: the same rows, weighted alike."""
    g = embedding(ct, i, padding=padding, by_frequency=by_frequency)
    if padding >= 0:
        g = g.masked_fill((i == padding).unsqueeze(-1), 0.0)
    return g / (i.reshape(-1, 1) == i.reshape(1, -1)).sum(1).reshape((*i.shape, 1)) \
        if by_frequency else g


def backward_samples(rng):
    for (_, i), _ in embedding_samples(rng):
        yield (rng.normal(size=(*i.shape, 3)), i), dict(rows=4, padding=2, by_frequency=False)


embedding_backward = primitive("embedding_backward", meta=backward_meta, ref=backward_ref,
                               vjp=dict(g=backward_vjp), lower=backward_lower,
                               samples=backward_samples)

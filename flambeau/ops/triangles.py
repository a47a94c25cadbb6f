"""Parts of matrices by the sign of column - row."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec
from flambeau.loops.api import const, nest, where
from flambeau.ops.registry import primitive


def triangle_meta(x: Spec, *, diagonal) -> Spec:
    if x.ndim < 2:
        raise ShapeError(complaint("tril", "input tensor must have at least 2 dimensions",
                                   dict(shape=list(x.shape))))
    return x.like(shape=tuple(x.shape))


def triangle(name: str, ref, below: bool):
    """`ref` is numpy's tril, which keeps what is below the diagonal, or triu."""
    def computed(x, *, diagonal):
        return ref(x, diagonal)

    def lower(outs, x, *, diagonal):
        """Zero where column - row is on the other side of the diagonal."""
        (out,) = outs

        def body(i):
            kept = i[-1] - i[-2] <= diagonal if below else i[-1] - i[-2] >= diagonal
            return where(kept, x[i], const(0, out.dtype))

        return nest(x.shape, body, out=out)

    def vjp(ct, diagonal):
        return op(ct, diagonal=diagonal)

    def samples(rng):
        for shape in [(3, 3), (2, 3, 4), (0, 2)]:
            for diagonal in (0, 1, -1):
                yield (rng.normal(size=shape),), dict(diagonal=diagonal)

    op = primitive(name, meta=triangle_meta, ref=computed, vjp=dict(x=vjp), lower=lower,
                   samples=samples, exact=True)
    return op


tril, triu = triangle("tril", np.tril, True), triangle("triu", np.triu, False)

"""Parts of matrices by the sign of column - row."""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec
from flambeau.ops.registry import primitive


def triangle_meta(x: Spec, *, diagonal) -> Spec:
    if x.ndim < 2:
        raise ShapeError(complaint("tril", "input tensor must have at least 2 dimensions",
                                   dict(shape=list(x.shape))))
    return x.like(shape=tuple(x.shape))


def triangle(name: str, ref):
    """`ref` is numpy's tril or triu."""
    def computed(x, *, diagonal):
        return ref(x, diagonal)

    def vjp(ct, diagonal):
        return op(ct, diagonal=diagonal)

    def samples(rng):
        for shape in [(3, 3), (2, 3, 4), (0, 2)]:
            for diagonal in (0, 1, -1):
                yield (rng.normal(size=shape),), dict(diagonal=diagonal)

    op = primitive(name, meta=triangle_meta, ref=computed, vjp=dict(x=vjp), samples=samples,
                   exact=True)
    return op


tril, triu = triangle("tril", np.tril), triangle("triu", np.triu)

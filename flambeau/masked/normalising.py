"""Softmax and scaling to unit norm over selected elements."""

from __future__ import annotations

import math

from flambeau.masked.masks import filled, floating_dtype
from flambeau.masked.reducing import masked
from flambeau.masked.spreads import norm


@masked
def softmax(input, dim, *, dtype=None, mask=None):
    """exp(x) over its sum; 0 where the mask does not select."""
    x = input.to(floating_dtype("masked.softmax", input, dtype))
    return filled("masked.softmax", x, mask, -math.inf).softmax(dim)


@masked
def log_softmax(input, dim, *, dtype=None, mask=None):
    """The logarithm of softmax."""
    x = input.to(floating_dtype("masked.log_softmax", input, dtype))
    return filled("masked.log_softmax", x, mask, -math.inf).log_softmax(dim)


@masked
def softmin(input, dim, *, dtype=None, mask=None):
    """softmax(-x)."""
    x = input.to(floating_dtype("masked.softmin", input, dtype))
    return (-filled("masked.softmin", x, mask, math.inf)).softmax(dim)


@masked
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """x over its norm along `dim`, which counts as at least eps."""
    x = input.to(floating_dtype("masked.normalize", input, dtype))
    size = norm(x, ord, dim, keepdim=True, mask=mask).clamp(min=eps)
    return filled("masked.normalize", x, mask, 0) / size

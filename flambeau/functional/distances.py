"""Distances between rows."""

from __future__ import annotations

from flambeau.core.errors import OpError, complaint
from flambeau.functional.register import functional
from flambeau.tensor.contractions import distance
from flambeau.tensor.public import FUNCTIONS


@functional(toplevel=True)
def pdist(input, p=2.0):
    """p-norm distances of every pair of rows, in the order of an upper triangle."""
    if input.ndim != 2:
        raise OpError(complaint("pdist", "only supports 2D tensors", dict(ndim=input.ndim)))
    if p < 0:
        raise OpError(complaint("pdist", "only supports non-negative p values", dict(p=p)))
    rows, columns = FUNCTIONS[""]["triu_indices"](input.shape[0], input.shape[0], 1)
    return distance(input[rows] - input[columns], p)

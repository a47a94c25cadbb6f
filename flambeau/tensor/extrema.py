"""Largest and smallest elements, and where they are."""

from __future__ import annotations

from flambeau.core.errors import OpError, complaint
from flambeau.ops import reductions
from flambeau.ops.dims import normal_dim
from flambeau.tensor import return_types
from flambeau.tensor.choosing import maximum, minimum
from flambeau.tensor.forms import ordered
from flambeau.tensor.public import public
from flambeau.tensor.reducing import reduced_dims
from flambeau.tensor.tensor import Tensor


def check_not_empty(op: str, x: Tensor, dim) -> None:
    if x.numel() == 0 and dim in ((), None, []):
        raise OpError(complaint(
            op, "Expected reduction dim to be specified for input.numel() == 0",
            dict(shape=list(x.shape)), "Specify the reduction dim with the 'dim' argument."))


@public
def amax(input, dim=(), keepdim=False):
    """The largest element over `dim`; ties share the gradient."""
    ordered("amax", input)
    check_not_empty("amax", input, dim)
    return reductions.amax(input, dim=reduced_dims("amax", input, dim), keepdim=bool(keepdim))


@public
def amin(input, dim=(), keepdim=False):
    """The smallest element over `dim`; ties share the gradient."""
    ordered("amin", input)
    check_not_empty("amin", input, dim)
    return reductions.amin(input, dim=reduced_dims("amin", input, dim), keepdim=bool(keepdim))


@public
def argmax(input, dim=None, keepdim=False):
    """The first position of the largest element; NaN counts as the largest."""
    return position(reductions.argmax, input, dim, keepdim)


@public
def argmin(input, dim=None, keepdim=False):
    """The first position of the smallest element; NaN counts as the smallest."""
    return position(reductions.argmin, input, dim, keepdim)


def position(primitive, x: Tensor, dim, keepdim) -> Tensor:
    ordered(primitive.name, x, bools=False)
    if dim is not None:
        dim = normal_dim(primitive.name, dim, x.ndim)
    return primitive(x, dim=dim, keepdim=bool(keepdim))


def extremum(name: str, full, along, pairwise, result_type):
    """`name(input)`, `name(input, dim, keepdim)` and `name(input, other)`."""

    def function(input, dim=None, keepdim=False, *, other=None):
        ordered(name, input)
        if isinstance(dim, Tensor) or other is not None:
            return pairwise(input, dim if other is None else other)
        if dim is None:
            check_not_empty(name, input, dim)
            return full(input, dim=tuple(range(input.ndim)), keepdim=False)
        return result_type(*along(input, dim=normal_dim(name, dim, input.ndim),
                                  keepdim=bool(keepdim)))

    function.__name__ = name
    function.__doc__ = f"The {name}imum: of all elements, along `dim`, or of two tensors."
    return public(function, name=name)


max = extremum("max", reductions.amax, reductions.max_along, maximum, return_types.max)
min = extremum("min", reductions.amin, reductions.min_along, minimum, return_types.min)

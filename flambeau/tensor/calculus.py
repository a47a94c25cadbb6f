"""Differences, integrals and derivatives of sampled functions."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.ops.dims import normal_dim, normal_dims
from flambeau.tensor.factories import arange
from flambeau.tensor.public import FUNCTIONS, public
from flambeau.tensor.tensor import Tensor


def part(x: Tensor, dim: int, start, stop) -> Tensor:
    """x[start:stop] along `dim`."""
    return x[(slice(None),) * dim + (slice(start, stop),)]


def joined(tensors: list[Tensor], dim: int) -> Tensor:
    return FUNCTIONS[""]["cat"](tensors, dim)


@public
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The n-th differences along `dim`."""
    if not input.ndim:
        raise OpError(complaint("diff", "diff expects input to be at least one-dimensional"))
    if n < 0:
        raise OpError(complaint("diff", "order must be non-negative", dict(n=n)))
    if n == 0:
        return input.clone()
    d = normal_dim("diff", dim, input.ndim)
    pieces = [t for t in (prepend, input, append) if t is not None]
    for t in pieces:
        if t.ndim != input.ndim:
            raise OpError(complaint("diff", "diff expects prepend or append to be the same "
                                    "dimension as input", dict(input=input.ndim, got=t.ndim)))
    x = joined(pieces, d) if len(pieces) > 1 else input
    for _ in range(min(n, x.shape[d])):
        later, earlier = part(x, d, 1, None), part(x, d, None, -1)
        x = later ^ earlier if x.dtype is dtypes.bool else later - earlier
    return x


# Integrals -----------------------------------------------------------------------------------


def widths(op: str, y: Tensor, x, dx, d: int):
    """Distances between sample points, shaped to go with slices of y along d."""
    if x is None:
        return dx
    if x.ndim == 1:
        if x.shape[0] != y.shape[d]:
            raise OpError(complaint(op, "There must be one x value for each sample point", dict(
                x=x.shape[0], y=y.shape[d])))
        return diff(x).reshape([-1 if k == d else 1 for k in range(y.ndim)])
    lead = [1] * (y.ndim - x.ndim)
    x = x.reshape((*lead, *x.shape))
    if x.shape[d] != y.shape[d] and x.shape[d] != 1:
        raise OpError(complaint(op, "There must be one x value for each sample point", dict(
            x=list(x.shape), y=list(y.shape))))
    return diff(x, dim=d)


def trapezoids(op: str, y: Tensor, x, dx, dim) -> Tensor:
    """Areas between neighbouring sample points."""
    d = normal_dim(op, dim, y.ndim)
    if isinstance(x, (int, float)) or isinstance(dx, Tensor):
        raise OpError(complaint(op, "x must be a tensor and dx a number", dict(x=x, dx=dx)))
    sums = part(y, d, None, -1) + part(y, d, 1, None)
    return sums * widths(op, y, x, dx, d) / 2.0


def check_dx(op: str, dx) -> None:
    if isinstance(dx, (complex, bool)):
        raise OpError(complaint(op, "Currently, we only support dx as a real number",
                                dict(dx=dx)))


@public(out=False, method=False, aliases=("trapz",))
def trapezoid(y, x=None, *, dx=1, dim=-1):
    """The integral of y along `dim` by the trapezoidal rule."""
    check_dx("trapezoid", dx)
    if y.shape[dim] == 0:
        return y.sum(dim) * 0.0
    return trapezoids("trapezoid", y, x, dx, dim).sum(dim)


@public(out=False, method=False)
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """The running integral of y along `dim` by the trapezoidal rule."""
    check_dx("cumulative_trapezoid", dx)
    return trapezoids("cumulative_trapezoid", y, x, dx, dim).cumsum(dim)


# Derivatives ---------------------------------------------------------------------------------


@public(out=False, method=False)
def gradient(input, *, spacing=None, dim=None, edge_order=1):
    """Derivatives along each of `dim` by central differences; one tensor per dimension."""
    if edge_order not in (1, 2):
        raise OpError(complaint("gradient", "edge_order must be 1 or 2",
                                dict(edge_order=edge_order)))
    dims = normal_dims("gradient", dim, input.ndim) if dim is None or isinstance(dim, int) else (
        tuple(normal_dim("gradient", d, input.ndim) for d in dim))
    if len(set(dims)) != len(dims):
        raise OpError(complaint("gradient", "each dim may appear once", dict(dim=dim)))
    steps = spacings(input, spacing, dims)
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise OpError(complaint("gradient", "each dimension needs at least edge_order + 1 "
                                    "elements", dict(shape=list(input.shape), dim=d)))
    return [derivative(input, d, h, edge_order) for d, h in zip(dims, steps)]


def spacings(x: Tensor, spacing, dims: tuple) -> list:
    """Per dimension a number, or the coordinates as a tensor."""
    if spacing is None:
        return [1] * len(dims)
    if isinstance(spacing, (list, tuple)):
        if len(spacing) != len(dims):
            raise OpError(complaint("gradient", "spacing needs one entry per dimension", dict(
                spacing=len(spacing), dims=len(dims))))
        for d, h in zip(dims, spacing):
            if isinstance(h, Tensor) and h.ndim and (h.ndim != 1 or h.shape[0] != x.shape[d]):
                raise OpError(complaint("gradient", "coordinates must match the dimension", dict(
                    coordinates=list(h.shape), size=x.shape[d])))
        return list(spacing)
    return [spacing] * len(dims)


def derivative(x: Tensor, d: int, h, edge_order: int) -> Tensor:
    if isinstance(h, Tensor) and h.ndim:
        h = diff(h).reshape([-1 if k == d else 1 for k in range(x.ndim)])
    else:
        h = x.new_ones([x.shape[d] - 1 if k == d else 1 for k in range(x.ndim)]) * h
    slope = diff(x, dim=d) / h
    before, after = part(h, d, None, -1), part(h, d, 1, None)
    left, right = part(slope, d, None, -1), part(slope, d, 1, None)
    inner = (left * after + right * before) / (before + after)
    if edge_order == 1:
        return joined([part(slope, d, 0, 1), inner, part(slope, d, -1, None)], d)
    return joined([edge(slope, h, d, 0, 1), inner, edge(slope, h, d, -1, -2)], d)


def edge(slope: Tensor, h: Tensor, d: int, outer: int, inner: int) -> Tensor:
    """Second-order slope at an end, from the two outermost intervals."""
    s0, s1 = (part(slope, d, k, k + 1 or None) for k in (outer, inner))
    h0, h1 = (part(h, d, k, k + 1 or None) for k in (outer, inner))
    return s0 + (s0 - s1) * h0 / (h0 + h1)


@public(method=False, out=False)
def vander(x, N=None, increasing=False):
    """Row i holds the powers of x[i], the highest first unless increasing."""
    if x.ndim != 1:
        raise OpError(complaint("vander", "x must be one-dimensional", dict(shape=list(x.shape))))
    count = x.shape[0] if N is None else N
    powers = arange(count) if increasing else arange(count - 1, -1, -1)
    return x.unsqueeze(-1) ** powers

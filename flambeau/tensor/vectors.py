"""Products: cross, vecdot, multi_dot, powers, Vandermonde matrices."""

from __future__ import annotations

from itertools import pairwise

from flambeau.core.errors import OpError, ShapeError, complaint
from flambeau.ops.dims import normal_dim
from flambeau.tensor.public import public
from flambeau.tensor.rearranging import broadcast_tensors


@public(module="linalg")
def cross(input, other, *, dim=-1):
    """The vector product along a dimension of size three."""
    if input.ndim != other.ndim:
        raise OpError(complaint("linalg.cross", "inputs must have the same number of dimensions",
                                dict(input=input.ndim, other=other.ndim)))
    d = normal_dim("linalg.cross", dim, input.ndim)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise OpError(complaint("linalg.cross", f"inputs dimension {dim} must have length 3", dict(
            input=list(input.shape), other=list(other.shape))))
    x, y = broadcast_tensors(input, other)
    return x.roll(-1, d) * y.roll(-2, d) - x.roll(-2, d) * y.roll(-1, d)


@public(module="linalg")
def vecdot(x, y, *, dim=-1):
    """Sum of conj(x) y along dim."""
    return (x.conj() * y).sum(dim)


@public(module="linalg", name="matmul")
def linalg_matmul(input, other):
    """torch.matmul."""
    return input @ other


@public(module="linalg")
def multi_dot(tensors):
    """The product of matrices, in the order of fewest multiplications."""
    tensors = list(tensors)
    if len(tensors) < 2:
        raise OpError(complaint("multi_dot", "expected at least 2 tensors", dict(got=len(tensors))))
    first, last = tensors[0], tensors[-1]
    row, column = first.ndim == 1, last.ndim == 1
    chain = [first.unsqueeze(0) if row else first, *tensors[1:-1],
             last.unsqueeze(1) if column else last]
    for x in chain:
        if x.ndim != 2:
            raise OpError(complaint("multi_dot", "inner tensors must be 2D, the ends 1D or 2D",
                                    dict(shape=list(x.shape))))
    for x, y in pairwise(chain):
        if x.shape[1] != y.shape[0]:
            raise ShapeError(complaint("multi_dot", "the tensors cannot be multiplied", dict(
                left=list(x.shape), right=list(y.shape))))
    y = ordered_product(chain)
    y = y.squeeze(0) if row else y
    return y.squeeze(-1) if column else y


def ordered_product(chain: list):
    """Dynamic programming over split points (Cormen et al., 15.2)."""
    sizes = [chain[0].shape[0], *(x.shape[1] for x in chain)]
    n = len(chain)
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            best = min((cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                       for k in range(i, j))
            cost[i][j], split[i][j] = best

    def product(i: int, j: int):
        if i == j:
            return chain[i]
        return product(i, split[i][j]) @ product(split[i][j] + 1, j)

    return product(0, n - 1)


@public(module="linalg")
def vander(x, N=None):
    """Rows of powers 0 .. N - 1."""
    from flambeau.tensor.joining import cat

    x = x if x.ndim else x.reshape((1,))
    n = x.shape[-1] if N is None else N
    if n <= 0:
        raise OpError(complaint("linalg.vander", "N must be positive", dict(N=N)))
    column = x.unsqueeze(-1)
    ones = column * 0 + 1 if n else column
    rest = column.expand((*x.shape, n - 1)).cumprod(-1)
    return cat([ones, rest.to(ones.dtype)], -1)

"""Sums of products: the addmm family, outer products, einsum, tensordot, distances."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from flambeau.core import dtype as dtypes
from flambeau.core.errors import DtypeError, OpError, ShapeError, complaint
from flambeau.ops.dims import normal_dim
from flambeau.tensor.products import matmul, ranked
from flambeau.tensor.public import public
from flambeau.tensor.rearranging import broadcast_tensors
from flambeau.tensor.shaping import reshape
from flambeau.tensor.tensor import Tensor
from flambeau.tensor.vectors import cross as linalg_cross
from flambeau.tensor.vectors import multi_dot


def combined(op: str, input: Tensor, product: Tensor, beta, alpha) -> Tensor:
    """beta input + alpha product; beta 0 ignores input, NaN and all."""
    if input.dtype is not product.dtype:
        raise DtypeError(
            complaint(
                op,
                "self and the matrices must have the same dtype",
                dict(self=input.dtype, product=product.dtype),
            )
        )
    if input.dtype.category <= dtypes.INTEGER:
        beta, alpha = int(beta), int(alpha)
    shape = tuple(product.shape)
    if beta == 0:
        return product if alpha == 1 else product * alpha
    base = input if tuple(input.shape) == shape else input.expand(shape)
    base = base if beta == 1 else base * beta
    return base + (product if alpha == 1 else product * alpha)


def adding(name: str, ranks: tuple[int, int], doc: str, sum_batch: bool = False) -> None:
    def add_product(input, left, right, *, beta=1, alpha=1):
        ranked(name, ranks[0], left)
        ranked(name, ranks[1], right)
        dtype = left.dtype
        if dtype.is_narrow_float and input.dtype is dtype and right.dtype is dtype:
            # Rounded once, at the end, as PyTorch does.
            wide = add_product(input.float(), left.float(), right.float(), beta=beta, alpha=alpha)
            return wide.to(dtype)
        product = matmul(left, right)
        return combined(name, input, product.sum(0) if sum_batch else product, beta, alpha)

    add_product.__doc__ = doc
    names = {
        "addmm": ("mat1", "mat2"),
        "addmv": ("mat", "vec"),
        "baddbmm": ("batch1", "batch2"),
        "addbmm": ("batch1", "batch2"),
    }[name]
    public(renamed(add_product, names), name=name, inplace=True)


def renamed(f, names: tuple[str, str]):
    """Accept the two operands by PyTorch's names."""

    def call(input, *args, **kwargs):
        args = (*args, *(kwargs.pop(n) for n in names[len(args) :] if n in kwargs))
        return f(input, *args, **kwargs)

    call.__doc__ = f.__doc__
    return call


adding("addmm", (2, 2), "beta input + alpha (mat1 @ mat2).")
adding("addmv", (2, 1), "beta input + alpha (mat @ vec).")
adding("baddbmm", (3, 3), "beta input + alpha (batch1 @ batch2).")
adding(
    "addbmm", (3, 3), "beta input + alpha times the sum over the batch of batch1 @ batch2.", True
)


@public(aliases=("ger",))
def outer(input, vec2):
    """(n), (m) -> (n, m)."""
    ranked("outer", 1, input, vec2)
    return reshape(input, (-1, 1)) * vec2


@public(inplace=True)
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """beta input + alpha outer(vec1, vec2)."""
    ranked("addr", 1, vec1, vec2)
    product = outer(vec1, vec2)
    shape = tuple(product.shape)
    if (
        input.dtype.category <= dtypes.INTEGER
        and product.dtype.category <= dtypes.INTEGER
        and (isinstance(beta, float) or isinstance(alpha, float))
    ):
        raise OpError(
            complaint(
                "addr",
                "for integral input tensors, beta and alpha must not be floating point numbers",
                dict(beta=beta, alpha=alpha),
            )
        )
    kind = (input * product).dtype if input.dtype is not product.dtype else input.dtype
    if beta == 0:
        return (product * alpha).to(kind)
    if input.dtype is dtypes.bool:
        return (input.expand(shape) | product) if alpha else input.expand(shape).clone()
    return input.expand(shape) * beta + product * alpha


@public
def vdot(input, other):
    """Sum of conj(input) other."""
    ranked("vdot", 1, input, other)
    return input.conj().dot(other)


@public
def inner(input, other):
    """Sum of products over the last dimension of both."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(
            complaint(
                "inner",
                "the last dimension must match on both input tensors",
                dict(input=list(input.shape), other=list(other.shape)),
            )
        )
    return tensordot(input, other, ((-1,), (-1,)))


@public
def kron(input, other):
    """The Kronecker product."""
    rank = max(input.ndim, other.ndim)
    a = (1,) * (rank - input.ndim) + tuple(input.shape)
    b = (1,) * (rank - other.ndim) + tuple(other.shape)
    left = reshape(input, tuple(n for k in a for n in (k, 1)))
    right = reshape(other, tuple(n for k in b for n in (1, k)))
    return reshape(left * right, tuple(n * m for n, m in zip(a, b)))


@public(method=False)
def tensordot(a, b, dims=2):
    """Sum of products over paired dimensions."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if hasattr(dims, "__index__"):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise OpError(
                complaint("tensordot", "expects dims >= 0 and at most the ranks", dict(dims=dims))
            )
        pairs = (range(a.ndim - dims, a.ndim), range(dims))
    else:
        pairs = tuple((d,) if hasattr(d, "__index__") else tuple(d) for d in dims)
    left, right = ([normal_dim("tensordot", d, x.ndim) for d in p] for x, p in zip((a, b), pairs))
    if len(left) != len(right) or any(
        a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]) for i, j in zip(left, right)
    ):
        raise ShapeError(
            complaint(
                "tensordot",
                "contracted dimensions need to match",
                dict(a=list(a.shape), b=list(b.shape), dims=(left, right)),
            )
        )
    for i, j in zip(left, right):
        if a.shape[i] != b.shape[j]:
            if a.shape[i] == 1:
                b = b.sum(j, keepdim=True)
            else:
                a = a.sum(i, keepdim=True)
    keep_a = [d for d in range(a.ndim) if d not in left]
    keep_b = [d for d in range(b.ndim) if d not in right]
    inside = math.prod(a.shape[d] for d in left)
    rows = a.permute(*keep_a, *left).reshape((math.prod(a.shape[d] for d in keep_a), inside))
    columns = b.permute(*right, *keep_b).reshape((inside, math.prod(b.shape[d] for d in keep_b)))
    return (rows @ columns).reshape(
        tuple(a.shape[d] for d in keep_a) + tuple(b.shape[d] for d in keep_b)
    )


# einsum --------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def parsed(equation: str, ranks: Sequence[int]) -> tuple[list[list], list]:
    """Labels of each operand and of the output; ellipsis dimensions get ints as labels."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise OpError(
            complaint(
                "einsum",
                "the number of operands must be that of the subscripts",
                dict(equation=equation, operands=len(ranks)),
            )
        )
    given = [labels_of(t, rank, equation) for t, rank in zip(terms, ranks)]
    hidden = sorted({x for labels in given for x in labels if isinstance(x, int)}, reverse=True)
    if arrow:
        before, dots, after = right.partition("...")
        output = [*before, *(hidden if dots else []), *after]
    else:
        flat = [x for labels in given for x in labels if isinstance(x, str)]
        output = hidden + sorted(x for x in set(flat) if flat.count(x) == 1)
    known = {x for labels in given for x in labels}
    for x in output:
        if x not in known or output.count(x) > 1:
            raise OpError(
                complaint(
                    "einsum",
                    f"output subscript {x} must appear once and in an input",
                    dict(equation=equation),
                )
            )
    return given, output


def labels_of(term: str, rank: int, equation: str) -> list:
    before, dots, after = term.partition("...")
    letters = before + after
    if not all(c.isalpha() and c.isascii() for c in letters):
        raise OpError(
            complaint("einsum", "subscripts must be letters in [a-zA-Z]", dict(equation=equation))
        )
    extra = rank - len(letters)
    if extra < 0 or (extra and not dots):
        raise OpError(
            complaint(
                "einsum",
                "the number of subscripts must match the number of dimensions",
                dict(subscripts=term, dimensions=rank),
            )
        )
    return [*before, *range(extra, 0, -1), *after] if dots else list(letters)


@public(method=False, out=False)
def einsum(equation, *operands):
    """Sums of products in Einstein's notation; operands are contracted from left to right."""
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        raise OpError(complaint("einsum", "the first argument must be the equation"))
    if not operands:
        raise OpError(complaint("einsum", "at least one operand must be provided"))
    given, output = parsed(equation, tuple(x.ndim for x in operands))
    sizes: dict = {}
    for x, labels in zip(operands, given):
        for n, label in zip(x.shape, labels):
            if sizes.get(label, 1) != 1 and n not in (1, sizes[label]):
                raise ShapeError(
                    complaint(
                        "einsum",
                        f"subscript {label} has size {n} which does "
                        f"not broadcast with previously seen size {sizes[label]}",
                        dict(equation=equation),
                    )
                )
            sizes[label] = max(sizes.get(label, 1), n) if n and sizes.get(label, 1) else 0
    ready = [diagonalised(x, labels) for x, labels in zip(operands, given)]
    total, labels = ready[0]
    for k in range(1, len(ready)):
        later = {x for _, ls in ready[k + 1 :] for x in ls} | set(output)
        total, labels = contracted(total, labels, *ready[k], later)
    return arranged(total, labels, output, sizes)


def diagonalised(x: Tensor, labels: list) -> tuple[Tensor, list]:
    """Repeated labels of one operand become its diagonal."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = x.diagonal(0, first, second)
            labels = [c for i, c in enumerate(labels) if i not in (first, second)] + [label]
    return x, labels


def contracted(a: Tensor, la: list, b: Tensor, lb: list, later: set) -> tuple[Tensor, list]:
    """One batched matrix product over the labels that nobody needs afterwards."""
    a, la = summed(a, la, set(lb) | later)
    b, lb = summed(b, lb, set(la) | later)
    both = [x for x in la if x in lb]
    batch = [x for x in both if x in later or a.shape[la.index(x)] != b.shape[lb.index(x)]]
    inside = [x for x in both if x not in batch]
    only_a, only_b = [x for x in la if x not in lb], [x for x in lb if x not in la]
    wanted = [x for x in batch if x not in later]
    left = a.permute(*[la.index(x) for x in batch + only_a + inside])
    right = b.permute(*[lb.index(x) for x in batch + inside + only_b])
    n = len(batch)
    shape_a, shape_b = left.shape, right.shape
    k = math.prod(shape_a[n + len(only_a) :])
    left = left.reshape((*shape_a[:n], math.prod(shape_a[n : n + len(only_a)]), k))
    right = right.reshape((*shape_b[:n], k, math.prod(shape_b[n + len(inside) :])))
    y = matmul(left, right)
    y = y.reshape((*y.shape[:n], *shape_a[n : n + len(only_a)], *shape_b[n + len(inside) :]))
    labels = batch + only_a + only_b
    return summed(y, labels, later) if wanted else (y, labels)


def summed(x: Tensor, labels: list, keep: set) -> tuple[Tensor, list]:
    """Sum over the labels that are not kept."""
    dims = tuple(d for d, label in enumerate(labels) if label not in keep)
    return (x.sum(dims) if dims else x), [c for c in labels if c in keep]


def arranged(x: Tensor, labels: list, output: list, sizes: dict) -> Tensor:
    x, labels = summed(x, labels, set(output))
    x = x.permute(*[labels.index(c) for c in output]) if output else x
    shape = tuple(sizes[c] for c in output)
    return x.expand(shape) if tuple(x.shape) != shape else x


@public(method=False)
def chain_matmul(*matrices):
    """The product of matrices, in the cheapest order."""
    return multi_dot(list(matrices))


# Distances -----------------------------------------------------------------------------------


@public(method=False, out=False)
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """p-norm distances between the rows of two batches of points."""
    if x1.ndim < 2 or x2.ndim < 2:
        raise OpError(
            complaint("cdist", "only supports at least 2D tensors", dict(x1=x1.ndim, x2=x2.ndim))
        )
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            complaint(
                "cdist",
                "X1 and X2 must have the same number of columns",
                dict(x1=x1.shape[-1], x2=x2.shape[-1]),
            )
        )
    if p < 0:
        raise OpError(complaint("cdist", "only supports non-negative p values", dict(p=p)))
    gaps = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return distance(gaps, p)


def distance(gaps: Tensor, p: float) -> Tensor:
    """p-norm over the last dimension, with gradient zero at distance zero."""
    if gaps.shape[-1] == 0:
        return gaps.sum(-1)
    if p == 0:
        return gaps.sign().abs().sum(-1)  # zero, not missing, is its gradient
    if p == 1:
        return gaps.abs().sum(-1)
    if p == math.inf:
        return gaps.abs().amax(-1)
    return gaps.norm(p, -1)


@public
def dist(input, other, p=2):
    """p-norm of input - other over all elements."""
    x, y = broadcast_tensors(input, other)
    return (x - y).norm(p)


@public
def cross(input, other, dim=None):
    """The vector product along a dimension of size three."""
    if dim is None:
        dim = next((d for d, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise OpError(
                complaint("cross", "no dimension of size 3 in input", dict(shape=list(input.shape)))
            )
        if other.ndim == input.ndim and other.shape != input.shape:
            raise OpError(
                complaint(
                    "cross",
                    "inconsistent sizes",
                    dict(input=list(input.shape), other=list(other.shape)),
                )
            )
    return linalg_cross(input, other, dim=dim)

"""Pooling over windows."""

from __future__ import annotations

from flambeau.core.errors import OpError, ShapeError, complaint
from flambeau.functional.convolution import per_dim
from flambeau.functional.register import functional
from flambeau.ops import pooling


def check_rank(op: str, input, rank: int) -> None:
    if input.ndim not in (rank + 1, rank + 2):
        raise ShapeError(complaint(op, f"expected {rank + 1}D or {rank + 2}D input",
                                   dict(input=list(input.shape))))


def windows(op: str, rank: int, kernel_size, stride, padding) -> tuple:
    kernel = per_dim(op, "kernel_size", kernel_size, rank)
    step = kernel if stride is None or stride == [] else per_dim(op, "stride", stride, rank)
    pad = per_dim(op, "padding", padding, rank)
    if any(k <= 0 for k in kernel) or any(s <= 0 for s in step):
        raise OpError(complaint(op, "kernel size and stride should be greater than zero",
                                dict(kernel_size=kernel_size, stride=stride)))
    if any(p < 0 or 2 * p > k for p, k in zip(pad, kernel)):
        raise OpError(complaint(op, "pad should be at most half of effective kernel size",
                                dict(padding=padding, kernel_size=kernel_size)))
    return kernel, step, pad


def max_pool_nd(op: str, rank: int, input, kernel_size, stride, padding, dilation, ceil_mode):
    check_rank(op, input, rank)
    kernel, step, pad = windows(op, rank, kernel_size, stride, padding)
    return pooling.max_pool(input, kernel=kernel, stride=step, padding=pad,
                            dilation=per_dim(op, "dilation", dilation, rank),
                            ceil_mode=bool(ceil_mode))


def max_pool_function(rank: int) -> None:
    name = f"max_pool{rank}d"

    def with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                     return_indices=False):
        return max_pool_nd(name, rank, input, kernel_size, stride, padding, dilation, ceil_mode)

    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
                 return_indices=False):
        both = max_pool_nd(name, rank, input, kernel_size, stride, padding, dilation, ceil_mode)
        return both if return_indices else both[0]

    max_pool.__doc__ = f"Maximum over {rank}-dimensional windows."
    functional(max_pool, name=name, toplevel=True)
    functional(with_indices, name=f"{name}_with_indices")


for _rank in (1, 2, 3):
    max_pool_function(_rank)


@functional
def adaptive_avg_pool2d(input, output_size):
    """Mean over windows that divide the input into output_size parts."""
    return adaptive_average("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_average(op: str, rank: int, input, output_size):
    """One dimension at a time: a mean over parts is a mean of means of equal counts."""
    check_rank(op, input, rank)
    sizes = (output_size,) * rank if hasattr(output_size, "__index__") or output_size is None \
        else tuple(output_size)
    have = input.shape[-rank:]
    sizes = tuple(n if s is None else int(s) for s, n in zip(sizes, have))
    if all(s == 1 for s in sizes):
        return input.mean(tuple(range(-rank, 0)), keepdim=True)
    if all(n % s == 0 for s, n in zip(sizes, have)):
        kernel = tuple(n // s for s, n in zip(sizes, have))
        total = 1
        for k in kernel:
            total *= k
        return pooling.sum_pool(input, kernel=kernel, stride=kernel, padding=(0,) * rank,
                                ceil_mode=False) / total
    for d, s in zip(range(-rank, 0), sizes):
        input = averaged_parts(input, input.ndim + d, s)
    return input


def averaged_parts(x, dim: int, count: int):
    """Part i covers floor(i n / count) .. ceil((i + 1) n / count)."""
    n = x.shape[dim]
    parts = [x.narrow(dim, i * n // count, -(-(i + 1) * n // count) - i * n // count)
             .mean(dim, keepdim=True) for i in range(count)]
    from flambeau.tensor.joining import cat

    return cat(parts, dim)

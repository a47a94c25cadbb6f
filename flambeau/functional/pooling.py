"""Pooling over windows."""

from __future__ import annotations

from flambeau.core.errors import OpError, ShapeError, ValueRangeError, complaint
from flambeau.functional.convolution import per_dim
from flambeau.functional.formats import in_format_of
from flambeau.functional.register import functional
from flambeau.ops import pooling
from flambeau.random.primitives import uniform
from flambeau.tensor.joining import cat
from flambeau.tensor.public import public


def check_rank(op: str, input, rank: int) -> None:
    if input.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            complaint(
                op, f"expected {rank + 1}D or {rank + 2}D input", dict(input=list(input.shape))
            )
        )


def windows(op: str, rank: int, kernel_size, stride, padding) -> tuple:
    kernel = per_dim(op, "kernel_size", kernel_size, rank)
    step = kernel if stride is None or stride in ([], ()) else per_dim(op, "stride", stride, rank)
    pad = per_dim(op, "padding", padding, rank)
    if any(k <= 0 for k in kernel) or any(s <= 0 for s in step):
        raise OpError(
            complaint(
                op,
                "kernel size and stride should be greater than zero",
                dict(kernel_size=kernel_size, stride=stride),
            )
        )
    if any(p < 0 or 2 * p > k for p, k in zip(pad, kernel)):
        raise OpError(
            complaint(
                op,
                "pad should be at most half of effective kernel size",
                dict(padding=padding, kernel_size=kernel_size),
            )
        )
    return kernel, step, pad


def max_pool_nd(op: str, rank: int, input, kernel_size, stride, padding, dilation, ceil_mode):
    check_rank(op, input, rank)
    if any(n == 0 for n in input.shape[-rank - 1 :]):
        raise ShapeError(
            complaint(
                op,
                "expected input to have non-zero size for non-batch dimensions",
                dict(input=list(input.shape)),
            )
        )
    kernel, step, pad = windows(op, rank, kernel_size, stride, padding)
    return pooling.max_pool(
        input,
        kernel=kernel,
        stride=step,
        padding=pad,
        dilation=per_dim(op, "dilation", dilation, rank),
        ceil_mode=bool(ceil_mode),
    )


def max_pool_function(rank: int) -> None:
    name = f"max_pool{rank}d"

    def with_indices(
        input,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode=False,
        return_indices=False,
    ):
        return max_pool_nd(name, rank, input, kernel_size, stride, padding, dilation, ceil_mode)

    def max_pool(
        input,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode=False,
        return_indices=False,
    ):
        both = max_pool_nd(name, rank, input, kernel_size, stride, padding, dilation, ceil_mode)
        return both if return_indices else both[0]

    max_pool.__doc__ = f"Maximum over {rank}-dimensional windows."
    functional(max_pool, name=name, toplevel=True)
    functional(with_indices, name=f"{name}_with_indices")


for _rank in (1, 2, 3):
    max_pool_function(_rank)


def adaptive_average(op: str, rank: int, input, output_size):
    """One dimension at a time: a mean over parts is a mean of means of equal counts."""
    sizes = part_counts(op, rank, input, output_size)
    have = input.shape[-rank:]
    if all(s == 1 for s in sizes):
        return in_format_of(input, input.mean(tuple(range(-rank, 0)), keepdim=True))
    if all(n % s == 0 for s, n in zip(sizes, have)):
        kernel = tuple(n // s for s, n in zip(sizes, have))
        return pooling.sum_pool(
            input,
            kernel=kernel,
            stride=kernel,
            padding=(0,) * rank,
            ceil_mode=False,
            divisor=0,
            count_padding=True,
        )
    for d, s in zip(range(-rank, 0), sizes):
        input = in_format_of(input, averaged_parts(input, input.ndim + d, s))
    return input


def part_counts(op: str, rank: int, input, output_size) -> tuple[int, ...]:
    """output_size for every dimension; None keeps a dimension's size."""
    if input.ndim < rank + 1:
        raise ShapeError(
            complaint(
                op, f"expected {rank + 1}D or {rank + 2}D input", dict(input=list(input.shape))
            )
        )
    check_rank(op, input, rank)
    sizes = (
        (output_size,) * rank
        if hasattr(output_size, "__index__") or output_size is None
        else tuple(output_size)
    )
    if len(sizes) != rank or any(s is not None and s < 0 for s in sizes):
        raise OpError(
            complaint(
                op,
                f"output_size must be {rank} sizes that are not negative",
                dict(output_size=output_size),
            )
        )
    return tuple(n if s is None else int(s) for s, n in zip(sizes, input.shape[-rank:]))


def averaged_parts(x, dim: int, count: int):
    """Part i covers floor(i n / count) .. ceil((i + 1) n / count)."""
    n = x.shape[dim]
    parts = [
        x.narrow(dim, i * n // count, -(-(i + 1) * n // count) - i * n // count).mean(
            dim, keepdim=True
        )
        for i in range(count)
    ]
    return cat(parts, dim)


# Averages ------------------------------------------------------------------------------------


def avg_pool_nd(
    op: str,
    rank: int,
    input,
    kernel_size,
    stride,
    padding,
    ceil_mode,
    count_include_pad,
    divisor_override,
):
    check_rank(op, input, rank)
    kernel, step, pad = windows(op, rank, kernel_size, stride, padding)
    if divisor_override == 0:
        raise OpError(complaint(op, "divisor must be not zero"))
    return pooling.sum_pool(
        input,
        kernel=kernel,
        stride=step,
        padding=pad,
        ceil_mode=bool(ceil_mode),
        divisor=int(divisor_override or 0),
        count_padding=bool(count_include_pad),
    )


def avg_pool_function(rank: int) -> None:
    name = f"avg_pool{rank}d"

    if rank == 1:

        def avg_pool(
            input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
        ):
            return avg_pool_nd(
                name, rank, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None
            )
    else:

        def avg_pool(
            input,
            kernel_size,
            stride=None,
            padding=0,
            ceil_mode=False,
            count_include_pad=True,
            divisor_override=None,
        ):
            return avg_pool_nd(
                name,
                rank,
                input,
                kernel_size,
                stride,
                padding,
                ceil_mode,
                count_include_pad,
                divisor_override,
            )

    def adaptive(input, output_size):
        return adaptive_average(f"adaptive_avg_pool{rank}d", rank, input, output_size)

    avg_pool.__doc__ = f"Mean over {rank}-dimensional windows."
    adaptive.__doc__ = "Mean over windows that divide the input into output_size parts."
    functional(avg_pool, name=name, toplevel=rank == 1, out=rank > 1)
    functional(adaptive, name=f"adaptive_avg_pool{rank}d", toplevel=rank == 1)


for _rank in (1, 2, 3):
    avg_pool_function(_rank)


# Powers --------------------------------------------------------------------------------------


def lp_pool_function(rank: int) -> None:
    def lp_pool(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        kernel, step, pad = windows(f"lp_pool{rank}d", rank, kernel_size, stride, 0)
        total = pooling.sum_pool(
            input.pow(norm_type),
            kernel=kernel,
            stride=step,
            padding=pad,
            ceil_mode=bool(ceil_mode),
            divisor=1,
            count_padding=True,
        )
        return (total.sign() * total.abs().relu()).pow(1.0 / norm_type)

    lp_pool.__doc__ = "(sum of input^p)^(1/p) over windows."
    functional(lp_pool, name=f"lp_pool{rank}d")


for _rank in (1, 2, 3):
    lp_pool_function(_rank)


# Maximum over parts ---------------------------------------------------------------------------


def adaptive_maximum(op: str, rank: int, input, output_size):
    """(values, flat positions): part i of a dimension as in averaged_parts."""
    sizes = part_counts(op, rank, input, output_size)
    if any(n == 0 for n in input.shape[-rank:]):
        raise ShapeError(
            complaint(
                op,
                "expected input to have non-zero size for non-batch dimensions",
                dict(input=list(input.shape)),
            )
        )
    place = pooling.part_argmax(input.detach(), sizes=sizes)
    value = pooling.pool_gather(input, place, rank=rank)
    return in_format_of(input, value), in_format_of(input, place)


def adaptive_max_function(rank: int) -> None:
    name = f"adaptive_max_pool{rank}d"

    def with_indices(input, output_size, return_indices=False):
        return adaptive_maximum(name, rank, input, output_size)

    def adaptive(input, output_size, return_indices=False):
        both = adaptive_maximum(name, rank, input, output_size)
        return both if return_indices else both[0]

    adaptive.__doc__ = "Maximum over windows that divide the input into output_size parts."
    functional(adaptive, name=name)
    functional(with_indices, name=f"{name}_with_indices")
    if rank == 1:
        public(with_indices, name=name, method=False, out=False)


for _rank in (1, 2, 3):
    adaptive_max_function(_rank)


# Undoing the maximum --------------------------------------------------------------------------


def unpool_function(rank: int) -> None:
    name = f"max_unpool{rank}d"

    def max_unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel, step, pad = windows(name, rank, kernel_size, stride, padding)
        default = [
            (n - 1) * s - 2 * p + k for n, s, p, k in zip(input.shape[-rank:], step, pad, kernel)
        ]
        sizes = default if output_size is None else list(output_size)[-rank:]
        for size, usual, s in zip(sizes, default, step):
            if output_size is not None and not usual - s < size < usual + s:
                raise ValueRangeError(
                    complaint(
                        name,
                        "invalid output_size",
                        dict(output_size=list(output_size), default=default),
                    )
                )
        if indices.shape != input.shape:
            raise ShapeError(
                complaint(
                    name,
                    "indices must have the shape of input",
                    dict(input=list(input.shape), indices=list(indices.shape)),
                )
            )
        return pooling.pool_place(input, indices, sizes=tuple(int(n) for n in sizes))

    max_unpool.__doc__ = "Values back at the positions that max_pool took them from."
    functional(max_unpool, name=name)


for _rank in (1, 2, 3):
    unpool_function(_rank)


# Windows of random place ----------------------------------------------------------------------


def fractional_function(rank: int) -> None:
    name = f"fractional_max_pool{rank}d"

    def with_indices(
        input,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        if output_size is None and output_ratio is None:
            raise ValueRangeError(
                complaint(name, "requires specifying either an output_size or an output_ratio")
            )
        kernel = per_dim(name, "kernel_size", kernel_size, rank)
        if output_size is None:
            ratio = (
                (output_ratio,) * rank if isinstance(output_ratio, (int, float)) else output_ratio
            )
            output_size = tuple(int(n * r) for n, r in zip(input.shape[-rank:], ratio))
        sizes = per_dim(name, "output_size", output_size, rank)
        x = input if input.ndim == rank + 2 else input.unsqueeze(0)
        samples = _random_samples
        if samples is None:
            samples = uniform(shape=(*x.shape[:2], rank), dtype=x.dtype, low=0.0, high=1.0)
        place = pooling.fractional_argmax(x.detach(), samples, kernel=kernel, sizes=sizes)
        y = pooling.pool_gather(x, place, rank=rank)
        return (y, place) if input.ndim == rank + 2 else (y.squeeze(0), place.squeeze(0))

    def fractional(
        input,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        both = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return both if return_indices else both[0]

    fractional.__doc__ = "Maximum over windows of pseudo-random place (Graham 2014)."
    functional(fractional, name=name)
    functional(with_indices, name=f"{name}_with_indices")


for _rank in (2, 3):
    fractional_function(_rank)

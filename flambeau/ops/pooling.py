"""Windows that slide over trailing dimensions: maximum and sum.

`max_pool` gives the maximum and its position in the flattened input plane (PyTorch's indices);
`pool_gather` and `pool_scatter` move values to and from those positions. Padding counts as -inf
for the maximum and as zero for the sum.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, ShapeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.loops.api import const, equal, guarded, nest, not_equal, where, widened
from flambeau.ops.convolution import layout_like
from flambeau.ops.registry import primitive


def pooled_sizes(spatial, kernel, stride, padding, dilation, ceil_mode) -> tuple[int, ...]:
    """Output sizes; with ceil_mode a last window must still start inside input or left padding."""
    sizes = []
    for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation):
        room = n + 2 * p - d * (k - 1) - 1
        size = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (size - 1) * s >= n + p:
            size -= 1
        sizes.append(size)
    return tuple(sizes)


def window_offsets(kernel):
    return itertools.product(*map(range, kernel))


def window_slices(at, sizes, stride, dilation) -> tuple[slice, ...]:
    """Where, in the padded input, offset `at` of every window lies."""
    return tuple(
        slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilation, sizes, stride)
    )


def padded(x: np.ndarray, sizes, kernel, stride, padding, dilation, value) -> np.ndarray:
    """Pad the trailing dimensions so that every window is inside."""
    rank = len(kernel)
    spatial = x.shape[-rank:]
    ends = [
        max(0, (n - 1) * s + d * (k - 1) + 1 - p - have)
        for n, s, d, k, p, have in zip(sizes, stride, dilation, kernel, padding, spatial)
    ]
    if not any(padding) and not any(ends):
        return x
    width = [(0, 0)] * (x.ndim - rank) + list(zip(padding, ends))
    return np.pad(x, width, constant_values=value)


# max_pool ------------------------------------------------------------------------------------


def max_pool_meta(x: Spec, *, kernel, stride, padding, dilation, ceil_mode):
    rank = len(kernel)
    sizes = pooled_sizes(x.shape[-rank:], kernel, stride, padding, dilation, ceil_mode)
    if any(n < 1 for n in sizes):
        raise ShapeError(
            complaint(
                "max_pool",
                "output size is too small",
                dict(input=list(x.shape), kernel=list(kernel), output=list(sizes)),
            )
        )
    shape = (*x.shape[:-rank], *sizes)
    strides = layout_like((x,), shape)
    return (spec(x.dtype, shape, strides, x.device), spec(dtypes.int64, shape, strides, x.device))


def max_pool_ref(x, *, kernel, stride, padding, dilation, ceil_mode):
    """The first maximum of each window in row-major order; NaN wins."""
    rank = len(kernel)
    spatial = x.shape[-rank:]
    sizes = pooled_sizes(spatial, kernel, stride, padding, dilation, ceil_mode)
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    wide = padded(x, sizes, kernel, stride, padding, dilation, least)
    best = np.full((*x.shape[:-rank], *sizes), least, x.dtype)
    place = np.zeros(best.shape, np.int64)
    first = np.ones(best.shape, bool)
    for at in window_offsets(kernel):
        value = wide[(..., *window_slices(at, sizes, stride, dilation))]
        here, inside = positions(at, spatial, sizes, stride, padding, dilation)
        better = ((value > best) | (value != value) & (best == best) | first) & inside
        best = np.where(better, value, best)
        place = np.where(better, here, place)
        first &= ~inside
    return best, place


def positions(at, spatial, sizes, stride, padding, dilation):
    """Flat input position of offset `at` of every window, and whether it is inside."""
    flat, inside = np.zeros((), np.int64), np.ones((), bool)
    for d, (a, n, size, s, p, t) in enumerate(zip(at, spatial, sizes, stride, padding, dilation)):
        i = np.arange(size) * s + a * t - p
        shape = [-1 if k == d else 1 for k in range(len(sizes))]
        flat = flat * n + i.reshape(shape)
        inside = inside & ((i >= 0) & (i < n)).reshape(shape)
    return flat, inside


def inside_of(positions: tuple, sizes: tuple):
    """The condition that every position is within its dimension; None where it always holds."""
    condition = None
    for p, n in zip(positions, sizes):
        here = (p >= 0) & (p < n)
        condition = here if condition is None else condition & here
    return condition


def max_pool_lower(outs, x, *, kernel, stride, padding, dilation, ceil_mode):
    """Each window's elements in row-major order; the first maximum stays, NaN wins."""
    rank = len(kernel)
    lead, spatial = len(x.shape) - rank, tuple(x.shape[-rank:])
    exact = not any(padding) and not ceil_mode
    least = (
        const(-math.inf, x.dtype)
        if x.dtype.is_floating_point
        else const(int(np.iinfo(x.dtype.numpy).min), x.dtype)
    )

    def body(i):
        best, place = least, None
        for at in window_offsets(kernel):
            position = tuple(
                o * s + a * d - p for o, s, a, d, p in zip(i[lead:], stride, at, dilation, padding)
            )
            flat = position[0]
            for p, n in zip(position[1:], spatial[1:]):
                flat = flat * n + p
            index = (*i[:lead], *position)
            if exact:
                value, better = x[index], None
            else:
                better = inside_of(position, spatial)
                value = guarded(better, x, index, least)
            wins = (value > best) | not_equal(value, value)
            if place is not None:
                wins = wins if better is None else wins & better
                best, place = where(wins, value, best), where(wins, flat, place)
            else:
                best, place = value, flat if better is None else where(better, flat, -1)
                first = better
                continue
            if first is not None:
                place = where(equal(place, -1) & better, flat, place)
        return best, place

    return nest(outs[0].shape, body, out=outs)


def max_pool_vjp(cts, _x, out1, kernel, stride, padding, dilation):
    rank = len(kernel)
    if cts[0] is None:
        return (None,)
    return (
        max_pool_backward(
            cts[0],
            out1,
            sizes=tuple(_x.shape[-rank:]),
            kernel=kernel,
            stride=stride,
            padding=padding,
            dilation=dilation,
        ),
    )


def max_pool_samples(rng):
    for shape, how in [
        ((1, 2, 6), dict(kernel=(2,), stride=(2,), padding=(0,), dilation=(1,))),
        ((2, 5, 5), dict(kernel=(3, 2), stride=(2, 1), padding=(1, 1), dilation=(1, 2))),
    ]:
        for ceil_mode in (False, True):
            yield (
                (rng.permutation(math.prod(shape)).reshape(shape).astype(float),),
                dict(how, ceil_mode=ceil_mode),
            )


max_pool = primitive(
    "max_pool",
    meta=max_pool_meta,
    ref=max_pool_ref,
    vjp=max_pool_vjp,
    lower=max_pool_lower,
    samples=max_pool_samples,
    reads_operands=True,
)


# moving values to and from positions ---------------------------------------------------------


def scatter_meta(src: Spec, place: Spec, *, sizes) -> Spec:
    shape = (*src.shape[: src.ndim - len(sizes)], *sizes)
    return spec(src.dtype, shape, layout_like((src,), shape), src.device)


def flat_rows(a: np.ndarray, rank: int) -> np.ndarray:
    at = a.ndim - rank
    return np.ascontiguousarray(a).reshape(math.prod(a.shape[:at]), math.prod(a.shape[at:]))


def scatter_ref(src, place, *, sizes):
    """Zeros of the given trailing sizes with each value added at its position."""
    rank = len(sizes)
    values, at = flat_rows(src, rank), flat_rows(place, rank)
    total = math.prod(sizes)
    if at.size and (at.min() < 0 or at.max() >= total):
        raise OpError(complaint("max_pool", f"positions must be in [0, {total})"))
    at = at + np.arange(len(at))[:, None] * total
    out = (
        np.bincount(at.reshape(-1), values.reshape(-1), minlength=len(values) * total)
        if values.dtype.kind == "f"
        else _add_at(at, values, len(values) * total)
    )
    return out.astype(src.dtype, copy=False).reshape(*src.shape[: src.ndim - rank], *sizes)


def _add_at(at: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    out = np.zeros(count, values.dtype)
    np.add.at(out, at.reshape(-1), values.reshape(-1))
    return out


def scatter_samples(rng):
    for (x,), params in max_pool_samples(rng):
        y, place = max_pool_ref(x, **params)
        yield (y, place), dict(sizes=x.shape[-len(params["kernel"]) :])


pool_scatter = primitive(
    "pool_scatter",
    meta=scatter_meta,
    ref=scatter_ref,
    vjp=dict(src=lambda ct, place, sizes: pool_gather(ct, place, rank=len(sizes))),
    samples=scatter_samples,
)


def gather_meta(x: Spec, place: Spec, *, rank) -> Spec:
    return spec(x.dtype, place.shape, None, x.device)


def gather_ref(x, place, *, rank):
    values, at = flat_rows(x, rank), flat_rows(place, rank)
    return np.take_along_axis(values, at, axis=1).reshape(place.shape)


def gather_vjp(ct, place, _x, rank):
    return pool_scatter(ct, place, sizes=tuple(_x.shape[_x.ndim - rank :]))


def gather_samples(rng):
    for (y, place), params in scatter_samples(rng):
        rank = len(params["sizes"])
        x = rng.normal(size=(*y.shape[: y.ndim - rank], *params["sizes"]))
        yield (x, place), dict(rank=rank)


pool_gather = primitive(
    "pool_gather",
    meta=gather_meta,
    ref=gather_ref,
    vjp=dict(x=gather_vjp),
    samples=gather_samples,
    exact=True,
)


# max_pool_backward: pool_scatter for the positions of a max_pool, each element asking the windows
# that may have chosen it


def max_pool_backward_meta(
    src: Spec, place: Spec, *, sizes, kernel, stride, padding, dilation
) -> Spec:
    return scatter_meta(src, place, sizes=sizes)


def max_pool_backward_ref(src, place, *, sizes, kernel, stride, padding, dilation):
    return scatter_ref(src, place, sizes=sizes)


def max_pool_backward_lower(outs, src, place, *, sizes, kernel, stride, padding, dilation):
    rank = len(kernel)
    lead, counts = len(src.shape) - rank, tuple(src.shape[-rank:])
    if any(d != 1 for d in dilation):
        return None
    reach = [-(-k // s) for k, s in zip(kernel, stride)]

    def body(i):
        flat = i[lead]
        for p, n in zip(i[lead + 1 :], sizes[1:]):
            flat = flat * n + p
        total = None
        for back in itertools.product(*map(range, reach)):
            window = tuple((p + q) // s - b for p, q, s, b in zip(i[lead:], padding, stride, back))
            inside = inside_of(window, counts)
            index = (*i[:lead], *window)
            chosen = equal(guarded(inside, place, index, -1), flat)
            value = widened(guarded(chosen & inside, src, index, 0))
            total = value if total is None else total + value
        return total

    return nest(outs[0].shape, body, out=outs[0])


def max_pool_backward_samples(rng):
    for (x,), params in max_pool_samples(rng):
        params = dict(params)
        y, place = max_pool_ref(x, **params)
        params.pop("ceil_mode")
        yield (y, place), dict(params, sizes=x.shape[-len(params["kernel"]) :])


max_pool_backward = primitive(
    "max_pool_backward",
    meta=max_pool_backward_meta,
    ref=max_pool_backward_ref,
    lower=max_pool_backward_lower,
    samples=max_pool_backward_samples,
    vjp=dict(src=lambda ct, place, sizes: pool_gather(ct, place, rank=len(sizes))),
)


# sum_pool: the sum of each window over `divisor`; a divisor of 0 counts each window's elements,
# with or without those of the padding


def window_counts(spatial, sizes, kernel, stride, padding, count_padding: bool) -> np.ndarray:
    """Elements that each window averages over, broadcast against the output's sizes."""
    counts = np.ones((), np.int64)
    for d, (n, size, k, s, p) in enumerate(zip(spatial, sizes, kernel, stride, padding)):
        start = np.arange(size) * s - p
        stop = np.minimum(start + k, n + p)
        if not count_padding:
            start, stop = np.maximum(start, 0), np.minimum(stop, n)
        shape = [-1 if i == d else 1 for i in range(len(sizes))]
        counts = counts * (stop - start).reshape(shape)
    return counts


def divided(sums: np.ndarray, spatial, sizes, kernel, stride, padding, divisor, count_padding):
    """Values of windows over their divisors; integers are truncated towards zero."""
    if divisor == 1:
        return sums
    by = divisor or window_counts(spatial, sizes, kernel, stride, padding, count_padding)
    if sums.dtype.kind in "iu":
        quotient = np.abs(sums) // np.abs(by) * np.sign(sums) * np.sign(by)
        return quotient.astype(sums.dtype)
    return (sums / by).astype(sums.dtype)


def sum_pool_meta(x: Spec, *, kernel, stride, padding, ceil_mode, divisor, count_padding) -> Spec:
    rank = len(kernel)
    sizes = pooled_sizes(x.shape[-rank:], kernel, stride, padding, (1,) * rank, ceil_mode)
    if any(n < 1 for n in sizes):
        raise ShapeError(
            complaint(
                "avg_pool",
                "output size is too small",
                dict(input=list(x.shape), kernel=list(kernel), output=list(sizes)),
            )
        )
    shape = (*x.shape[:-rank], *sizes)
    return spec(x.dtype, shape, layout_like((x,), shape), x.device)


def sum_pool_ref(x, *, kernel, stride, padding, ceil_mode, divisor, count_padding):
    rank = len(kernel)
    ones, spatial = (1,) * rank, x.shape[-rank:]
    sizes = pooled_sizes(spatial, kernel, stride, padding, ones, ceil_mode)
    wide = padded(x, sizes, kernel, stride, padding, ones, 0)
    out = np.zeros((*x.shape[:-rank], *sizes), x.dtype)
    for at in window_offsets(kernel):
        out += wide[(..., *window_slices(at, sizes, stride, ones))]
    return divided(out, spatial, sizes, kernel, stride, padding, divisor, count_padding)


def sum_pool_vjp(ct, _x, kernel, stride, padding, divisor, count_padding):
    return sum_unpool(
        ct,
        sizes=tuple(_x.shape[-len(kernel) :]),
        kernel=kernel,
        stride=stride,
        padding=padding,
        divisor=divisor,
        count_padding=count_padding,
    )


def sum_pool_samples(rng):
    for number, ((x,), params) in enumerate(max_pool_samples(rng)):
        params = {k: v for k, v in params.items() if k != "dilation"}
        for divisor, count_padding in ((1, True), (0, number % 2 == 0)):
            more = dict(divisor=divisor, count_padding=count_padding)
            yield (rng.normal(size=x.shape),), params | more


sum_pool = primitive(
    "sum_pool",
    meta=sum_pool_meta,
    ref=sum_pool_ref,
    vjp=dict(x=sum_pool_vjp),
    samples=sum_pool_samples,
    reads_operands=True,
)


def sum_unpool_meta(g: Spec, *, sizes, kernel, stride, padding, divisor, count_padding) -> Spec:
    shape = (*g.shape[: g.ndim - len(sizes)], *sizes)
    return spec(g.dtype, shape, layout_like((g,), shape), g.device)


def sum_unpool_ref(g, *, sizes, kernel, stride, padding, divisor, count_padding):
    """The adjoint of sum_pool: every window's value, divided, added to all of its elements."""
    rank = len(kernel)
    ones, counts = (1,) * rank, g.shape[g.ndim - rank :]
    g = divided(g, sizes, counts, kernel, stride, padding, divisor, count_padding)
    reach = [
        max((n - 1) * s + k, p + have)
        for n, s, k, p, have in zip(counts, stride, kernel, padding, sizes)
    ]
    wide = np.zeros((*g.shape[: g.ndim - rank], *reach), g.dtype)
    for at in window_offsets(kernel):
        wide[(..., *window_slices(at, counts, stride, ones))] += g
    return wide[(..., *(slice(p, p + n) for p, n in zip(padding, sizes)))]


def sum_unpool_vjp(ct, _g, kernel, stride, padding, divisor, count_padding):
    """The windows that the cotangent's pooling has and `_g` lacks are cut off."""
    rank = len(kernel)
    y = sum_pool(
        ct,
        kernel=kernel,
        stride=stride,
        padding=padding,
        ceil_mode=True,
        divisor=divisor,
        count_padding=count_padding,
    )
    want = tuple(_g.shape[-rank:])
    return y[(..., *(slice(0, n) for n in want))] if tuple(y.shape[-rank:]) != want else y


def sum_unpool_samples(rng):
    for (x,), params in sum_pool_samples(rng):
        y = sum_pool_ref(x, **params)
        ceil = params.pop("ceil_mode")
        if not ceil:
            yield (rng.normal(size=y.shape),), dict(params, sizes=x.shape[-len(params["kernel"]) :])


sum_unpool = primitive(
    "sum_unpool",
    meta=sum_unpool_meta,
    ref=sum_unpool_ref,
    vjp=dict(g=sum_unpool_vjp),
    samples=sum_unpool_samples,
)


# max over given windows -----------------------------------------------------------------------


def argmax_in(x: np.ndarray, bounds: list[list[tuple[int, int]]]) -> np.ndarray:
    """Flat position of the maximum in every box; `bounds[d][i]` is part i of dimension d."""
    rank = len(bounds)
    spatial = x.shape[x.ndim - rank :]
    out = np.empty((*x.shape[: x.ndim - rank], *map(len, bounds)), np.int64)
    flat = np.arange(math.prod(spatial)).reshape(spatial)
    for at in itertools.product(*map(range, out.shape[x.ndim - rank :])):
        box = tuple(slice(*bounds[d][i]) for d, i in enumerate(at))
        inside = x[(..., *box)]
        rows = inside.reshape(*x.shape[: x.ndim - rank], math.prod(inside.shape[-rank:]))
        best = rows.argmax(-1)
        out[(..., *at)] = flat[box].reshape(-1)[best]
    return out


def part_meta(x: Spec, *, sizes) -> Spec:
    return spec(dtypes.int64, (*x.shape[: x.ndim - len(sizes)], *sizes), None, x.device)


def part_ref(x, *, sizes):
    """Part i of n elements in s parts covers floor(i n / s) .. ceil((i + 1) n / s)."""
    bounds = [
        [(i * n // s, -(-(i + 1) * n // s)) for i in range(s)]
        for n, s in zip(x.shape[x.ndim - len(sizes) :], sizes)
    ]
    return argmax_in(x, bounds)


def part_samples(rng):
    yield (rng.normal(size=(2, 5)),), dict(sizes=(3,))
    yield (rng.normal(size=(1, 4, 5)),), dict(sizes=(2, 3))


part_argmax = primitive("part_argmax", meta=part_meta, ref=part_ref, samples=part_samples)


def fractional_meta(x: Spec, u: Spec, *, kernel, sizes) -> Spec:
    for n, k, size in zip(x.shape[2:], kernel, sizes):
        if size + k - 1 > n:
            raise ShapeError(
                complaint(
                    "fractional_max_pool",
                    "the pool is too large for the input",
                    dict(input=list(x.shape), kernel=kernel, output=sizes),
                )
            )
    return spec(dtypes.int64, (*x.shape[:2], *sizes), None, x.device)


def fractional_starts(u: float, n: int, k: int, size: int) -> list[tuple[int, int]]:
    """Window starts floor((i + u) alpha) - floor(u alpha); the last one ends with the input."""
    if size == 1:
        return [(n - k, n)]
    alpha = (n - k) / (size - 1)
    starts = [int((i + u) * alpha) - int(u * alpha) for i in range(size - 1)] + [n - k]
    return [(s, s + k) for s in starts]


def fractional_ref(x, u, *, kernel, sizes):
    rank = len(kernel)
    out = np.empty((*x.shape[:2], *sizes), np.int64)
    for n, c in np.ndindex(*x.shape[:2]):
        # the last spatial dimension takes the first sample
        bounds = [
            fractional_starts(float(u[n, c, rank - 1 - d]), x.shape[2 + d], kernel[d], sizes[d])
            for d in range(rank)
        ]
        out[n, c] = argmax_in(x[n, c], bounds)
    return out


def fractional_samples(rng):
    yield (
        (rng.normal(size=(1, 2, 6, 7)), rng.uniform(0, 1, (1, 2, 2))),
        dict(kernel=(2, 3), sizes=(3, 2)),
    )


fractional_argmax = primitive(
    "fractional_argmax", meta=fractional_meta, ref=fractional_ref, samples=fractional_samples
)


# placing --------------------------------------------------------------------------------------


def place_ref(src, place, *, sizes):
    """As pool_scatter, but of several values for one position the last stays."""
    rank = len(sizes)
    values, at = flat_rows(src, rank), flat_rows(place, rank)
    total = math.prod(sizes)
    if at.size and (at.min() < 0 or at.max() >= total):
        raise OpError(
            complaint(
                "max_unpool",
                f"found an invalid max index: indices must be in [0, {total})",
                dict(min=at.min(), max=at.max()),
            )
        )
    out = np.zeros((len(values), total), src.dtype)
    np.put_along_axis(out, at, values, 1)
    return out.reshape(*src.shape[: src.ndim - rank], *sizes)


def place_samples(rng):
    """Each position at most once: of several values only one would have a gradient."""
    for shape, total in [((2, 3), 6), ((1, 2, 2), 8)]:
        at = np.stack([rng.permutation(total)[: math.prod(shape[1:])] for _ in range(shape[0])])
        sizes = (total,) if len(shape) == 2 else (2, total // 2)
        yield (rng.normal(size=shape), at.reshape(shape)), dict(sizes=sizes)


pool_place = primitive(
    "pool_place",
    meta=scatter_meta,
    ref=place_ref,
    exact=True,
    vjp=dict(src=lambda ct, place, sizes: pool_gather(ct, place, rank=len(sizes))),
    samples=place_samples,
)

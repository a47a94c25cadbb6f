"""Convolutions in one, two and three dimensions, and their transposes."""

from __future__ import annotations

from flambeau.core.errors import OpError, ShapeError, complaint
from flambeau.functional.padding import pad
from flambeau.functional.register import functional
from flambeau.ops import convolution


def per_dim(op: str, name: str, value, rank: int) -> tuple[int, ...]:
    """One int per spatial dimension; a single one serves them all."""
    values = (value,) if hasattr(value, "__index__") else tuple(value)
    if len(values) == 1:
        values *= rank
    if len(values) != rank:
        raise OpError(complaint(op, f"{name} must be an int or {rank} ints", {name: value}))
    return tuple(int(v) for v in values)


def batched(op: str, input, rank: int):
    """(input with a batch dimension, whether one was added)."""
    if input.ndim == rank + 2:
        return input, False
    if input.ndim == rank + 1:
        return input.unsqueeze(0), True
    raise ShapeError(complaint(op, f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) "
                               f"input to {op}", dict(input=list(input.shape))))


def settings(op: str, rank: int, stride, padding, dilation, groups) -> dict:
    found = dict(stride=per_dim(op, "stride", stride, rank),
                 padding=per_dim(op, "padding", padding, rank),
                 dilation=per_dim(op, "dilation", dilation, rank), groups=int(groups))
    if any(n <= 0 for n in found["stride"]) or any(n <= 0 for n in found["dilation"]):
        raise OpError(complaint(op, "non-positive stride or dilation is not supported", dict(
            stride=stride, dilation=dilation)))
    if any(n < 0 for n in found["padding"]):
        raise OpError(complaint(op, "negative padding is not supported", dict(padding=padding)))
    if found["groups"] <= 0:
        raise OpError(complaint(op, "non-positive groups is not supported", dict(groups=groups)))
    return found


def same_padding(op: str, input, weight, stride, dilation, rank: int):
    """Pad so that sizes stay; an odd total leaves the extra element at the end."""
    if any(s != 1 for s in per_dim(op, "stride", stride, rank)):
        raise OpError(complaint(op, "padding='same' is not supported for strided convolutions",
                                dict(stride=stride)))
    totals = [d * (k - 1) for d, k in zip(per_dim(op, "dilation", dilation, rank),
                                          weight.shape[2:])]
    if all(t % 2 == 0 for t in totals):
        return input, tuple(t // 2 for t in totals)
    widths = []
    for t in reversed(totals):
        widths += [0, t % 2]
    return pad(input, widths), tuple(t // 2 for t in totals)


def convolution_nd(op: str, rank: int, input, weight, bias, stride, padding, dilation, groups):
    x, added = batched(op, input, rank)
    if weight.ndim != rank + 2:
        raise ShapeError(complaint(op, f"expected {rank + 2}-dimensional weight", dict(
            weight=list(weight.shape))))
    if padding == "valid":
        padding = 0
    elif padding == "same":
        x, padding = same_padding(op, x, weight, stride, dilation, rank)
    elif isinstance(padding, str):
        raise OpError(complaint(op, "padding must be an int, ints, 'same' or 'valid'", dict(
            padding=repr(padding))))
    y = convolution.conv(convolution.dense(x), convolution.dense(weight), bias,
                         **settings(op, rank, stride, padding, dilation, groups))
    return y.squeeze(0) if added else y


@functional(toplevel=True)
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """(N, C, L) with weight (K, C / groups, k)."""
    return convolution_nd("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@functional(toplevel=True)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """(N, C, H, W) with weight (K, C / groups, kh, kw)."""
    return convolution_nd("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@functional(toplevel=True)
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """(N, C, D, H, W) with weight (K, C / groups, kd, kh, kw)."""
    return convolution_nd("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


# Transposed ----------------------------------------------------------------------------------


def transposed_nd(op: str, rank: int, input, weight, bias, stride, padding, output_padding, groups,
                  dilation):
    """weight (C, K / groups, *kernel): the adjoint of the convolution from K to C channels."""
    x, added = batched(op, input, rank)
    how = settings(op, rank, stride, padding, dilation, groups)
    extra = per_dim(op, "output_padding", output_padding, rank)
    if weight.ndim != rank + 2 or x.shape[1] != weight.shape[0]:
        raise ShapeError(complaint(
            op, f"given transposed=1, weight of size {list(weight.shape)}, expected input "
            f"{list(x.shape)} to have {weight.shape[0]} channels"))
    if any(e >= max(s, d) for e, s, d in zip(extra, how["stride"], how["dilation"])):
        raise OpError(complaint(op, "output padding must be smaller than either stride or dilation",
                                dict(output_padding=output_padding)))
    sizes = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in zip(
        x.shape[2:], how["stride"], how["padding"], how["dilation"], weight.shape[2:], extra))
    if any(n < 1 for n in sizes):
        raise OpError(complaint(op, "output size is too small", dict(output=list(sizes))))
    shape = (x.shape[0], weight.shape[1] * how["groups"], *sizes)
    x, weight = convolution.dense(x), convolution.dense(weight)
    y = convolution.conv_input(x, weight, shape=shape, **how)
    if bias is not None:
        if tuple(bias.shape) != (shape[1],):
            raise ShapeError(complaint(op, f"expected bias to have {shape[1]} elements",
                                       dict(bias=list(bias.shape))))
        y = y + bias.reshape((-1, *(1 for _ in sizes)))
    return y.squeeze(0) if added else y


def transposed_function(rank: int) -> None:
    name = f"conv_transpose{rank}d"

    def conv_transpose(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1,
                       dilation=1):
        return transposed_nd(name, rank, input, weight, bias, stride, padding, output_padding,
                             groups, dilation)

    conv_transpose.__doc__ = f"The adjoint of conv{rank}d with respect to its input."
    functional(conv_transpose, name=name, toplevel=True)


for _rank in (1, 2, 3):
    transposed_function(_rank)


@functional(toplevel=True)
def conv_tbc(input, weight, bias, pad=0):
    """One-dimensional convolution of (time, batch, channel) with weight (kernel, in, out)."""
    y = conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return y.permute(2, 0, 1)

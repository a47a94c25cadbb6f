"""Moving pixels: shuffles, patches, resizing and sampling."""

from __future__ import annotations

import math

from flambeau.core.errors import OpError, ShapeError, UnsupportedError, ValueRangeError, complaint
from flambeau.functional.convolution import per_dim
from flambeau.functional.formats import in_format_of
from flambeau.functional.register import functional
from flambeau.functional.sampling import sample
from flambeau.ops import patches
from flambeau.tensor.factories import arange
from flambeau.tensor.joining import stack


@functional(toplevel=True)
def pixel_shuffle(input, upscale_factor):
    """(*, C r^2, H, W) -> (*, C, H r, W r)."""
    r = upscale_factor
    if input.ndim < 3 or r <= 0 or input.shape[-3] % (r * r):
        raise OpError(complaint("pixel_shuffle", "expects its input's channel dimension to be "
                                "divisible by the square of upscale_factor", dict(
                                    input=list(input.shape), upscale_factor=r)))
    *lead, c, h, w = input.shape
    n = len(lead)
    x = input.reshape((*lead, c // (r * r), r, r, h, w))
    x = x.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return in_format_of(input, x.reshape((*lead, c // (r * r), h * r, w * r)))


@functional(toplevel=True)
def pixel_unshuffle(input, downscale_factor):
    """(*, C, H r, W r) -> (*, C r^2, H, W)."""
    r = downscale_factor
    if input.ndim < 3 or r <= 0 or input.shape[-2] % r or input.shape[-1] % r:
        raise OpError(complaint("pixel_unshuffle", "expects height and width to be divisible by "
                                "downscale_factor", dict(
                                    input=list(input.shape), downscale_factor=r)))
    *lead, c, h, w = input.shape
    n = len(lead)
    x = input.reshape((*lead, c, h // r, r, w // r, r))
    x = x.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return in_format_of(input, x.reshape((*lead, c * r * r, h // r, w // r)))


@functional(toplevel=True)
def channel_shuffle(input, groups):
    """Interleave the channels of the groups."""
    if input.ndim < 3 or groups <= 0 or input.shape[1] % groups:
        raise OpError(complaint("channel_shuffle", "number of channels must be divisible by "
                                "groups, which must be positive", dict(
                                    input=list(input.shape), groups=groups)))
    n, c, *rest = input.shape
    x = input.reshape((n, groups, c // groups, *rest)).transpose(1, 2)
    return in_format_of(input, x.reshape(tuple(input.shape)))


# Patches -------------------------------------------------------------------------------------


@functional
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Windows as columns: (N, C, H, W) -> (N, C kh kw, L)."""
    how = patch_settings("unfold", kernel_size, dilation, padding, stride)
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise ShapeError(complaint("unfold", "Expected 3D or 4D (batch mode) tensor with non-zero "
                                   "dimensions", dict(input=list(input.shape))))
    x = input if input.ndim == 4 else input.unsqueeze(0)
    y = patches.unfold(x, **how)
    return y if input.ndim == 4 else y.squeeze(0)


def patch_settings(op: str, kernel_size, dilation, padding, stride) -> dict:
    how = dict(kernel=per_dim(op, "kernel_size", kernel_size, 2),
               dilation=per_dim(op, "dilation", dilation, 2),
               padding=per_dim(op, "padding", padding, 2), stride=per_dim(op, "stride", stride, 2))
    if any(n <= 0 for k in ("kernel", "dilation", "stride") for n in how[k]) or any(
            n < 0 for n in how["padding"]):
        raise OpError(complaint(op, "kernel_size, dilation and stride must be greater than zero, "
                                "padding non-negative", how))
    return how


@functional
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns back into windows, overlaps added: (N, C kh kw, L) -> (N, C, H, W)."""
    how = patch_settings("fold", kernel_size, dilation, padding, stride)
    sizes = per_dim("fold", "output_size", output_size, 2)
    if input.ndim not in (2, 3):
        raise ShapeError(complaint("fold", "Input Error: Only unbatched (2D) or batched (3D) input "
                                   "Tensors are supported", dict(input=list(input.shape))))
    x = input if input.ndim == 3 else input.unsqueeze(0)
    y = patches.fold(x, sizes=sizes, **how)
    return y if input.ndim == 3 else y.squeeze(0)


# Resizing ------------------------------------------------------------------------------------


def target_sizes(input, size, scale_factor, rank: int, recompute: bool):
    """(output sizes, scale per dimension or None)."""
    if (size is None) == (scale_factor is None):
        raise ValueRangeError(complaint("interpolate", "either size or scale_factor should be "
                                        "defined, and not both"))
    if size is not None:
        sizes = (size,) * rank if hasattr(size, "__index__") else tuple(int(n) for n in size)
        if len(sizes) != rank:
            raise ValueRangeError(complaint("interpolate", "size must have one entry per spatial "
                                            "dimension", dict(size=size, dimensions=rank)))
        return sizes, (None,) * rank
    scales = (scale_factor,) * rank if not isinstance(scale_factor, (tuple, list)) else tuple(
        scale_factor)
    if len(scales) != rank:
        raise ValueRangeError(complaint("interpolate", "scale_factor must have one entry per "
                                        "spatial dimension", dict(scale_factor=scale_factor)))
    sizes = tuple(math.floor(n * float(s)) for n, s in zip(input.shape[2:], scales))
    return sizes, (None,) * rank if recompute else tuple(map(float, scales))


MODES = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "linear": (1,), "bilinear": (2,),
         "bicubic": (2,), "trilinear": (3,), "area": (1, 2, 3)}


@functional
def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,
                recompute_scale_factor=None, antialias=False):
    """Resize the spatial dimensions of (N, C, *spatial)."""
    rank = input.ndim - 2
    if mode not in MODES or rank not in MODES[mode]:
        raise UnsupportedError(complaint(
            "interpolate", "the mode must fit the input: nearest, nearest-exact and area for 3D to "
            "5D, linear for 3D, bilinear and bicubic for 4D, trilinear for 5D",
            dict(mode=mode, input=list(input.shape))))
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueRangeError(complaint("interpolate", "align_corners option can only be set with "
                                        "the interpolating modes: linear, bilinear, bicubic, "
                                        "trilinear", dict(mode=mode)))
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueRangeError(complaint("interpolate", "antialias option is supported for bilinear "
                                        "and bicubic modes", dict(mode=mode)))
    sizes, scales = target_sizes(input, size, scale_factor, rank, bool(recompute_scale_factor))
    if any(n < 1 for n in sizes) or 0 in input.shape[1:]:
        raise OpError(complaint("interpolate", "Input and output sizes should be greater than 0",
                                dict(input=list(input.shape), output=list(sizes))))
    if mode == "area":
        from flambeau.functional.pooling import adaptive_average

        return adaptive_average("interpolate", rank, input, sizes)
    x = input
    for d, (n, s) in enumerate(zip(sizes, scales)):
        x = resized(x, d + 2, n, s, mode, bool(align_corners), antialias)
    return in_format_of(input, x)


def resized(x, dim: int, size: int, scale, mode: str, corners: bool, antialias: bool):
    """One dimension: a fixed sparse matrix applied along it."""
    if mode.startswith("nearest"):
        return patches.pick_along(x, patches.nearest_positions(
            x.shape[dim], size, scale, exact=mode == "nearest-exact"), dim)
    kind = "cubic" if mode == "bicubic" else "linear"
    return patches.resample(x, dim=dim, size=size, scale=scale, kind=kind, corners=corners,
                            antialias=antialias, transposed=False)


@functional
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """interpolate, under its old name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@functional
def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate with mode nearest."""
    return interpolate(input, size, scale_factor, "nearest")


@functional
def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate with mode bilinear and aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


# Sampling at coordinates ----------------------------------------------------------------------


@functional
def affine_grid(theta, size, align_corners=None):
    """Sampling coordinates of affine maps: theta (N, 2, 3) or (N, 3, 4)."""
    if theta.ndim != 3 or tuple(theta.shape[1:]) not in ((2, 3), (3, 4)):
        raise ValueRangeError(complaint("affine_grid", "Expected a batch of 2D or 3D affine "
                                        "matrices", dict(theta=list(theta.shape))))
    spatial = tuple(size)[2:]
    axes = []
    for n in reversed(spatial):
        steps = arange(n, dtype=theta.dtype) * 2 + (0 if align_corners else 1)
        axes.append(steps / max(n - 1, 1) - 1 if align_corners else steps / n - 1)
    rank = len(spatial)
    columns = [a.reshape(tuple(-1 if d == rank - 1 - k else 1 for d in range(rank))).expand(spatial)
               for k, a in enumerate(axes)]
    base = stack([*columns, columns[0] * 0 + 1], -1).reshape((1, -1, rank + 1))
    grid = base.expand((theta.shape[0], *base.shape[1:])) @ theta.transpose(1, 2)
    return grid.reshape((theta.shape[0], *spatial, rank))


@functional
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Values of input (N, C, *spatial) at grid (N, *output, rank), coordinates in [-1, 1]."""
    rank = input.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in (
            "zeros", "border", "reflection"):
        raise ValueRangeError(complaint("grid_sample", "mode must be bilinear, nearest or bicubic, "
                                        "padding_mode zeros, border or reflection",
                                        dict(mode=mode, padding_mode=padding_mode)))
    if rank not in (2, 3) or grid.shape[-1] != rank or grid.shape[0] != input.shape[0] or (
            grid.ndim != input.ndim) or 0 in input.shape[2:]:
        raise OpError(complaint("grid_sample", "expected grid to have size input.dim() - 2 in its "
                                "last dimension and the batch size of input", dict(
                                    input=list(input.shape), grid=list(grid.shape))))
    if mode == "bicubic" and rank == 3:
        raise OpError(complaint("grid_sample", "bicubic interpolation only supports 4D input"))
    return sample(input, grid, mode, padding_mode, bool(align_corners))



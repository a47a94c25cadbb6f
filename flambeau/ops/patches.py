"""Patches of images, and linear maps along one dimension (resizing)."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.ops.convolution import columns, output_sizes
from flambeau.ops.gathering import index
from flambeau.ops.registry import primitive

# unfold and fold -----------------------------------------------------------------------------


def unfold_meta(x: Spec, *, kernel, dilation, padding, stride) -> Spec:
    sizes = output_sizes(x.shape[2:], kernel, stride, padding, dilation)
    if any(n < 1 for n in sizes):
        raise ShapeError(complaint("unfold", "the calculated shape of the array of sliding blocks "
                                   "must be positive", dict(input=list(x.shape), blocks=sizes)))
    return spec(x.dtype, (x.shape[0], x.shape[1] * math.prod(kernel), math.prod(sizes)), None,
                x.device)


def unfold_ref(x, *, kernel, dilation, padding, stride):
    sizes = output_sizes(x.shape[2:], kernel, stride, padding, dilation)
    if not x.shape[0]:
        return np.zeros((0, x.shape[1] * math.prod(kernel), math.prod(sizes)), x.dtype)
    return columns(x, kernel, sizes, stride, padding, dilation, 1)[:, 0]


def unfold_vjp(ct, _x, kernel, dilation, padding, stride):
    return fold(ct, sizes=tuple(_x.shape[2:]), kernel=kernel, dilation=dilation, padding=padding,
                stride=stride)


HOWS = [dict(kernel=(2, 2), dilation=(1, 1), padding=(0, 1), stride=(1, 2)),
        dict(kernel=(3, 1), dilation=(1, 2), padding=(1, 0), stride=(2, 1))]


def unfold_samples(rng):
    for how in HOWS:
        yield (rng.normal(size=(2, 2, 4, 5)),), how


unfold = primitive("im2col", meta=unfold_meta, ref=unfold_ref, vjp=dict(x=unfold_vjp),
                   samples=unfold_samples, exact=True)


def fold_meta(x: Spec, *, sizes, kernel, dilation, padding, stride) -> Spec:
    window = math.prod(kernel)
    blocks = output_sizes(sizes, kernel, stride, padding, dilation)
    if x.shape[1] % window:
        raise ShapeError(complaint("fold", "Expected size of input's dimension 1 to be divisible "
                                   "by the product of kernel_size", dict(
                                       input=list(x.shape), kernel_size=kernel)))
    if any(n < 1 for n in blocks) or x.shape[2] != math.prod(blocks):
        raise ShapeError(complaint("fold", "expected size of input's dimension 2 to match the "
                                   f"number of sliding blocks {blocks}", dict(input=list(x.shape))))
    return spec(x.dtype, (x.shape[0], x.shape[1] // window, *sizes), None, x.device)


def fold_ref(x, *, sizes, kernel, dilation, padding, stride):
    blocks = output_sizes(sizes, kernel, stride, padding, dilation)
    cols = x.reshape(x.shape[0], x.shape[1] // math.prod(kernel), *kernel, *blocks)
    out = np.zeros((*cols.shape[:2], *(n + 2 * p for n, p in zip(sizes, padding))), x.dtype)
    for at in itertools.product(*map(range, kernel)):
        where = tuple(slice(a * d, a * d + (n - 1) * s + 1, s)
                      for a, d, n, s in zip(at, dilation, blocks, stride))
        out[(slice(None), slice(None), *where)] += cols[(slice(None), slice(None), *at)]
    return out[(slice(None), slice(None), *(slice(p, p + n) for p, n in zip(padding, sizes)))]


def fold_samples(rng):
    for how in HOWS:
        x = unfold_ref(rng.normal(size=(2, 2, 4, 5)), **how)
        yield (rng.normal(size=x.shape),), dict(how, sizes=(4, 5))


fold = primitive("col2im", meta=fold_meta, ref=fold_ref, samples=fold_samples, vjp=dict(
    x=lambda ct, kernel, dilation, padding, stride: unfold(
        ct, kernel=kernel, dilation=dilation, padding=padding, stride=stride)))


# resizing ------------------------------------------------------------------------------------


def nearest_positions(n: int, size: int, scale, exact: bool) -> np.ndarray:
    """Input position of every output element, computed in float32 as PyTorch does."""
    step = np.float32(1 / scale if scale else n / size)
    i = np.arange(size, dtype=np.float32)
    at = (i + np.float32(0.5)) * step if exact else i * step
    return np.minimum(np.floor(at).astype(np.int64), n - 1)


def pick_along(x, positions: np.ndarray, dim: int):
    from flambeau.ops.creation import constant

    return index(x, constant(positions), dims=(dim,))


def linear_taps(x: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1 - np.abs(x))


def cubic_taps(x: np.ndarray, a: float) -> np.ndarray:
    """Keys' kernel (1981) with parameter a."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


@functools.lru_cache(maxsize=256)
def resize_matrix(n: int, size: int, scale, kind: str, corners: bool,
                  antialias: bool) -> np.ndarray:
    """(size, n): each output element as a weighted sum of input elements."""
    i = np.arange(size)
    if corners:
        step = (n - 1) / (size - 1) if size > 1 else 0.0
        at = i * step
    else:
        step = 1 / scale if scale else n / size
        at = (i + 0.5) * step - 0.5
        if kind == "linear" and not antialias:
            at = np.maximum(at, 0.0)
    if antialias:
        return _antialiased(n, size, step, kind, corners)
    low = np.floor(at).astype(np.int64)
    matrix = np.zeros((size, n))
    reach = range(-1, 3) if kind == "cubic" else range(2)
    for k in reach:
        weight = cubic_taps(at - (low + k), -0.75) if kind == "cubic" else linear_taps(
            at - (low + k))
        np.add.at(matrix, (i, np.clip(low + k, 0, n - 1)), weight)
    return matrix


def _antialiased(n: int, size: int, step: float, kind: str, corners: bool) -> np.ndarray:
    """Taps stretched by the step when shrinking, normalised to sum to one."""
    reach = 2.0 if kind == "cubic" else 1.0
    stretch = max(step, 1.0)
    matrix = np.zeros((size, n))
    for i in range(size):
        centre = step * (i + 0.5)
        low = max(int(centre - reach * stretch + 0.5), 0)
        high = min(int(centre + reach * stretch + 0.5), n)
        x = (np.arange(low, high) + 0.5 - centre) / stretch
        taps = cubic_taps(x, -0.5) if kind == "cubic" else linear_taps(x)
        matrix[i, low:high] = taps / taps.sum()
    return matrix


def resample_meta(x: Spec, *, dim, size, scale, kind, corners, antialias, transposed=False):
    shape = [size if d == dim else n for d, n in enumerate(x.shape)]
    from flambeau.ops.convolution import layout_like

    return spec(x.dtype, shape, layout_like((x,), shape), x.device)


def resample_ref(x, *, dim, size, scale, kind, corners, antialias, transposed=False):
    """transposed: the adjoint, from the resized back to the original size."""
    if transposed:
        matrix = resize_matrix(size, x.shape[dim], scale, kind, corners, antialias).T
    else:
        matrix = resize_matrix(x.shape[dim], size, scale, kind, corners, antialias)
    wide = x.dtype if x.dtype.kind in "fc" else np.float64
    rows = np.moveaxis(x, dim, -1).astype(wide, copy=False)
    done = np.moveaxis(rows @ matrix.T.astype(wide), -1, dim)
    if x.dtype.kind not in "fc":
        info = np.iinfo(x.dtype)
        done = np.clip(np.rint(done), info.min, info.max).astype(x.dtype)
    return np.ascontiguousarray(done)


def adjoint_rule(ct, _x, dim, scale, kind, corners, antialias, transposed):
    return resample(ct, dim=dim, size=_x.shape[dim], scale=scale, kind=kind, corners=corners,
                    antialias=antialias, transposed=not transposed)


def resample_samples(rng):
    for kind in ("linear", "cubic"):
        for corners, antialias in [(False, False), (True, False), (False, True)]:
            for size in (3, 9):
                yield (rng.normal(size=(1, 2, 5)),), dict(
                    dim=2, size=size, scale=None, kind=kind, corners=corners, antialias=antialias,
                    transposed=False)


resample = primitive("resample", meta=resample_meta, ref=resample_ref,
                     vjp=dict(x=adjoint_rule), samples=resample_samples)

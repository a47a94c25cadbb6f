"""Reading an image at fractional coordinates: grid_sample, as gathers of the neighbours."""

from __future__ import annotations

import itertools

from flambeau.core.dtype import float32
from flambeau.ops import choice
from flambeau.tensor.factories import arange


def unnormalised(x, n: int, corners: bool):
    """[-1, 1] to pixels: -1 and 1 are the centres (corners) or the edges of the end pixels."""
    return (x + 1) * ((n - 1) / 2) if corners else ((x + 1) * n - 1) / 2


def reflected(x, low: float, high: float):
    """x folded back into [low, high] as often as needed."""
    if high <= low:
        return x * 0
    span = high - low
    x = (x - low).abs()
    turns = (x.detach() / span).floor()
    rest = x - turns * span
    return choice.where(turns % 2 == 0, rest + low, span - rest + low)


def clipped(x, n: int, padding_mode: str, corners: bool):
    """Coordinates brought inside by the padding mode."""
    if padding_mode == "border":
        return x.clamp(0, n - 1)
    if padding_mode == "reflection":
        x = reflected(x, 0, n - 1) if corners else reflected(x, -0.5, n - 0.5)
        return x.clamp(0, n - 1)
    return x


def fetched(image, places: list, padding_mode: str):
    """image (N, C, *spatial) at integer places, each (N, *output); zero where outside."""
    sizes = image.shape[2:]
    inside, flat = None, None
    for i, n in zip(places, sizes):
        here = (i >= 0) & (i < n)
        inside = here if inside is None else inside & here
        at = i.clamp(0, n - 1)
        flat = at if flat is None else flat * n + at
    n, c = image.shape[:2]
    rows = arange(n).reshape((n, *(1 for _ in range(flat.ndim - 1)))) * sizes.numel()
    table = image.movedim(1, -1).reshape((-1, c))
    values = table[(flat + rows).reshape((-1,))].reshape((*flat.shape, c)).movedim(-1, 1)
    return values * inside.unsqueeze(1).to(values.dtype)


def sample(image, grid, mode: str, padding_mode: str, corners: bool):
    narrow = image.dtype.is_narrow_float
    if narrow:
        kind = image.dtype
        return sample(image.to(float32), grid.to(float32), mode, padding_mode, corners).to(kind)
    sizes = image.shape[2:]
    rank = len(sizes)
    # the last coordinate of the grid belongs to the first spatial dimension
    at = [unnormalised(grid[..., rank - 1 - d], n, corners) for d, n in enumerate(sizes)]
    if mode == "bicubic":
        return bicubic(image, at, padding_mode, corners)
    at = [clipped(x, n, padding_mode, corners) for x, n in zip(at, sizes)]
    if mode == "nearest":
        return fetched(image, [x.detach().round().long() for x in at], padding_mode)
    low = [x.detach().floor() for x in at]
    rest = [x - b for x, b in zip(at, low)]
    total = None
    for corner in itertools.product((0, 1), repeat=rank):
        weight = None
        for k, r in zip(corner, rest):
            w = r if k else 1 - r
            weight = w if weight is None else weight * w
        value = fetched(image, [(b + k).long() for b, k in zip(low, corner)], padding_mode)
        part = value * weight.unsqueeze(1)
        total = part if total is None else total + part
    return total


def cubic_weights(t):
    """Keys' kernel with a = -0.75 at the four neighbours of fraction t."""
    a = -0.75

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def bicubic(image, at: list, padding_mode: str, corners: bool):
    sizes = image.shape[2:]
    low = [x.detach().floor() for x in at]
    weights = [cubic_weights(x - b) for x, b in zip(at, low)]
    total = None
    for i, j in itertools.product(range(4), repeat=2):
        places = [clipped(b + (k - 1), n, padding_mode, corners).round().long()
                  for b, k, n in zip(low, (i, j), sizes)]
        part = fetched(image, places, padding_mode) * (weights[0][i] * weights[1][j]).unsqueeze(1)
        total = part if total is None else total + part
    return total

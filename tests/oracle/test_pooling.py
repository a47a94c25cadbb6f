"""Pooling at sizes that generated kernels take, against PyTorch: values, positions, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

MAXIMA = [  # rank, shape, (kernel, stride, padding, dilation, ceil_mode)
    (1, (3, 7, 301), (3, 2, 1, 1, False)),
    (2, (2, 5, 41, 57), (2, None, 0, 1, False)),
    (2, (2, 5, 41, 57), (3, 2, 1, 1, True)),
    (2, (2, 16, 20, 33), ((3, 2), (1, 2), (1, 0), (2, 1), False)),
    (2, (8, 40, 37), (3, 1, 1, 1, False)),
    (3, (2, 4, 12, 10, 11), (2, 2, 0, 1, False)),
]


def layouts(rank: int, shape: tuple) -> list[bool]:
    return [False, True] if rank == 2 and len(shape) == 4 else [False]


def run(package, function: str, a: np.ndarray, last: bool, kind: str, *args, **how):
    x = package.from_numpy(a).to(getattr(package, kind))
    if last:
        x = x.contiguous(memory_format=package.channels_last)
    x.requires_grad_(True)
    y = getattr(package.nn.functional, function)(x, *args, **how)
    first = y[0] if isinstance(y, tuple) else y
    weight = package.arange(first.numel()).reshape(first.shape).to(first.dtype) % 7 - 3
    (first * weight).sum().backward()
    outs = [*y] if isinstance(y, tuple) else [y]
    return [t.detach().float().numpy() for t in (*outs, x.grad)], first.stride(), x.grad.stride()


def agree(function: str, a: np.ndarray, last: bool, kind: str, *args, **how) -> None:
    mine = run(flambeau, function, a, last, kind, *args, **how)
    theirs = run(torch, function, a, last, kind, *args, **how)
    for got, want in zip(mine[0][:-1], theirs[0][:-1], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    tolerance = 0.1 if kind == "bfloat16" else 1e-5  # PyTorch rounds every share of a gradient
    np.testing.assert_allclose(mine[0][-1], theirs[0][-1], rtol=tolerance, atol=tolerance)
    assert mine[1:] == theirs[1:]


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("rank", "shape", "how"), MAXIMA)
def test_maxima(rank, shape, how, kind):
    a = np.round(np.random.default_rng(0).normal(size=shape) * 2)
    for last in layouts(rank, shape):
        kernel, stride, padding, dilation, ceil = how
        agree(f"max_pool{rank}d", a, last, kind, kernel, stride, padding, dilation, ceil,
              return_indices=True)


def test_windows_of_minus_infinity():
    a = np.full((2, 16, 20, 20), -np.inf)
    for last in (False, True):
        agree("max_pool2d", a, last, "float32", 3, 2, 1, return_indices=True)


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("rank", "shape", "how"), [m for m in MAXIMA if m[2][3] == 1])
@pytest.mark.parametrize("include", [False, True])
def test_averages(rank, shape, how, kind, include):
    if kind == "bfloat16" and rank == 3:
        pytest.skip("PyTorch has no such average")
    a = np.random.default_rng(1).normal(size=shape)
    for last in layouts(rank, shape):
        kernel, stride, padding, _, ceil = how
        agree(f"avg_pool{rank}d", a, last, kind, kernel, stride, padding, ceil, include)


def test_averages_of_integers():
    a = np.random.default_rng(3).integers(-50, 50, (2, 4, 11, 13))
    for how in ((3, 2, 1), (2,), (3, 1, 1, True, False), (3, 1, 0, False, True, 7)):
        got, want = (
            p.nn.functional.avg_pool2d(p.from_numpy(a), *how)
            for p in (flambeau, torch)
        )
        assert got.tolist() == want.tolist()


def test_gradients_of_each_sample():
    a = np.random.default_rng(4).normal(size=(3, 2, 8, 8)).astype(np.float32)
    for name in ("max_pool2d", "avg_pool2d"):
        grads = []
        for p in (flambeau, torch):
            pooled = getattr(p.nn.functional, name)
            gradient = p.func.grad(lambda x, pooled=pooled: pooled(x, 2).sin().sum())
            grads.append(p.func.vmap(gradient)(p.from_numpy(a)).numpy())
        np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 4, (6, 8), (5, 7)])
@pytest.mark.parametrize("last", [False, True])
def test_adaptive_averages(size, last):
    agree("adaptive_avg_pool2d", np.random.default_rng(2).normal(size=(3, 16, 24, 16)), last,
          "float32", size)

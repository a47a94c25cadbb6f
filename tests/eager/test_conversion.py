"""Conversions large enough for kernels give NumPy's values, infinities and NaN included."""

import numpy as np
import pytest

import flambeau as torch

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
OTHERS = [torch.bool, torch.uint8, torch.int32, torch.int64]


def column(count: int) -> np.ndarray:
    a = np.random.default_rng(0).normal(size=count) * 100
    a[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40]
    return a


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", FLOATS + OTHERS)
def test_to_floats(source, target):
    a = column(20_011) if source in FLOATS else np.abs(column(20_011)[6:])
    few = torch.from_numpy(a).to(source)
    want = [few[i : i + 1000].to(target) for i in range(0, len(a), 1000)]  # too few for a kernel
    got = few.to(target)
    assert got.dtype is target
    assert got.double().tolist() == pytest.approx(torch.cat(want).double().tolist(), 0, 0, True)


@pytest.mark.parametrize("target", OTHERS)
def test_compiled_truncation_among_loops(target):
    x = torch.from_numpy(column(20_011)[6:].astype(np.float32))

    def step(x):
        return ((x * 2).to(target).to(torch.float32) + 1).sum()

    assert torch.compile(step)(x).item() == step(x).item()

"""Softmax where exponentials overflow or vanish: infinities, NaN, rows of -inf, no dimensions."""

import math

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

ROWS = {
    "finite": [0.0, 1.0, -2.0], "huge": [3e38, 1.0, -3e38], "one inf": [math.inf, 1.0, 0.0],
    "one -inf": [-math.inf, 1.0, 0.0], "all -inf": [-math.inf] * 3, "nan": [math.nan, 1.0, 0.0],
    **{f"no dimensions {x}": x for x in (0.0, -5.0, math.inf, -math.inf, math.nan)},
}


@pytest.mark.parametrize("repeats", [1, 2000], ids=["small", "large"])
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("row", ROWS)
def test_values_and_gradients_are_those_of_pytorch(row, name, kind, repeats):
    found = []
    for lib in (torch, flambeau):
        x = lib.tensor(ROWS[row], dtype=getattr(lib, kind))
        if x.ndim:
            x = x.repeat(repeats, 1)
        x.requires_grad_()
        y = getattr(lib.nn.functional, name)(x, -1)
        (y * lib.linspace(1, 2, 3)[:x.shape[-1] if x.ndim else 1].squeeze()).sum().backward()
        found.append([np.asarray(t.detach().double().numpy()) for t in (y, x.grad)])
    tolerance = 2e-2 if kind == "bfloat16" else 1e-6  # both round: the gradient is a difference
    for want, got in zip(*found):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)

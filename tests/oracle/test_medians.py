"""Medians along dimensions and of everything: ties, NaN, layouts, gradients."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(5)
NAN = RNG.normal(size=(40, 61)).astype("f4")
NAN[RNG.random(NAN.shape) < 0.1] = np.nan
NAN[3] = np.nan
ARRAYS = dict(
    plain=RNG.normal(size=(60, 91)).astype("f4"),
    even=RNG.normal(size=(33, 64)),
    ties=RNG.integers(0, 4, (50, 70)).astype("f4"),
    whole=RNG.integers(-9, 9, (50, 70)),
    nan=NAN,
    one=RNG.normal(size=(1, 5)),
    deep=RNG.normal(size=(4, 9, 130)).astype("f4"),
)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("how", ["median", "nanmedian"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_values_places_and_gradients(name, how, keepdim):
    for dim in range(ARRAYS[name].ndim):
        found = []
        for t in (torch, flambeau):
            x = t.tensor(ARRAYS[name])
            x.requires_grad_(x.is_floating_point())
            values, places = getattr(x, how)(dim, keepdim)
            assert places.dtype is t.int64 and values.shape == places.shape
            if x.requires_grad:
                (values.nan_to_num() * 2).sum().backward()
            picked = x.detach().gather(dim, places if keepdim else places.unsqueeze(dim))
            # of equal elements PyTorch takes any
            found.append((values.detach().numpy(), picked.numpy(), values.shape))
            if x.requires_grad and name not in ("ties", "nan"):
                found[-1] += (x.grad.numpy(),)
        for a, b in zip(*found, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("how", ["median", "nanmedian"])
def test_of_all_elements(name, how):
    a, b = (getattr(t.tensor(ARRAYS[name]), how)().item() for t in (torch, flambeau))
    np.testing.assert_array_equal(a, b)

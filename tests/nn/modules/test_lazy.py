"""Modules that learn their shapes from the first input."""

import pytest

import flambeau as fb
from flambeau import nn

CASES = [
    (nn.LazyLinear(3), (2, 4), nn.Linear, "in_features", 4),
    (nn.LazyConv1d(3, 2), (2, 4, 5), nn.Conv1d, "in_channels", 4),
    (nn.LazyConv2d(6, 2, groups=2), (2, 4, 5, 5), nn.Conv2d, "in_channels", 4),
    (nn.LazyConvTranspose2d(3, 2), (4, 5, 5), nn.ConvTranspose2d, "in_channels", 4),
    (nn.LazyBatchNorm1d(), (2, 4), nn.BatchNorm1d, "num_features", 4),
    (nn.LazyBatchNorm2d(affine=False), (2, 4, 3, 3), nn.BatchNorm2d, "num_features", 4),
    (nn.LazyInstanceNorm1d(affine=True), (4, 3), nn.InstanceNorm1d, "num_features", 4),
]


@pytest.mark.parametrize(("module", "shape", "becomes", "name", "size"), CASES)
def test_the_first_call_makes_an_ordinary_module(module, shape, becomes, name, size):
    module(fb.ones(*shape))
    assert type(module) is becomes and getattr(module, name) == size
    again = module(fb.ones(*shape))
    assert bool(again.isfinite().all())


def test_optimizers_and_casts_before_the_first_call():
    module = nn.LazyLinear(3).double()
    assert module.weight.dtype is fb.float64
    module(fb.ones(2, 4, dtype=fb.float64))
    assert module.weight.dtype is fb.float64 and tuple(module.weight.shape) == (3, 4)


def test_bad_inputs():
    with pytest.raises(RuntimeError, match="3 or 4 dimensions"):
        nn.LazyConv2d(3, 2)(fb.ones(4))
    with pytest.raises(RuntimeError, match="divisible by groups"):
        nn.LazyConv2d(4, 2, groups=2)(fb.ones(1, 3, 4, 4))

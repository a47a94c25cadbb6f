"""Three-dimensional convolutions over planes against the definition, forward and both gradients."""

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.core.spec import spec
from flambeau.eager.native import volumes
from flambeau.ops import convolution

CASES = [  # x, w, stride, padding, dilation, groups
    ((2, 4, 5, 6, 7), (6, 4, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((3, 4, 5, 6, 7), (6, 2, 3, 2, 3), (1, 1, 1), (1, 1, 1), (2, 2, 2), 2),
    ((2, 4, 7, 6, 7), (6, 4, 2, 3, 3), (2, 1, 2), (0, 1, 1), (3, 1, 2), 1),
    ((2, 8, 8, 9, 9), (8, 8, 1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ((5, 8, 9, 9, 9), (8, 1, 3, 3, 3), (3, 3, 3), (2, 2, 2), (1, 1, 1), 8),
]


def normal(seed, shape, kind):
    return np.random.default_rng(seed).normal(size=shape).astype(kind)


def close(got, wanted, kind):
    np.testing.assert_allclose(
        got.detach().numpy(), wanted, rtol=0, atol=np.abs(wanted).max() * 30 * np.finfo(kind).eps
    )


@pytest.fixture(params=["one group", "several groups"])
def grouping(request, monkeypatch):
    if request.param == "several groups":
        monkeypatch.setattr(volumes, "MOST_BYTES", 1)
        for primitive in (convolution.conv, convolution.conv_input, convolution.conv_weight):
            monkeypatch.setattr(primitive, "plans", {})


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("shape, weight, stride, padding, dilation, groups", CASES)
def test_values_and_gradients(shape, weight, stride, padding, dilation, groups, kind, grouping):
    x, w, b = normal(0, shape, kind), normal(1, weight, kind), normal(2, weight[:1], kind)
    how = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    leaves = [torch.from_numpy(a.copy()).requires_grad_() for a in (x, w, b)]
    y = F.conv3d(*leaves, **how)
    close(y, convolution.conv_ref(x, w, b, **how), kind)
    close(F.conv3d(*leaves[:2], **how), convolution.conv_ref(x, w, None, **how), kind)
    ct = normal(3, tuple(y.shape), kind)
    gx, gw, gb = torch.autograd.grad(y, leaves, torch.from_numpy(ct))
    close(gx, convolution.input_ref(ct, w, shape=shape, **how), kind)
    close(gw, convolution.weight_ref(ct, x, shape=weight, **how), kind)
    close(gb, ct.sum((0, 2, 3, 4)), kind)


def test_the_plan_is_native():
    x, w, y = (spec(torch.float32, s) for s in ((2, 4, 5, 6, 7), (6, 4, 3, 3, 3), (2, 6, 5, 6, 7)))
    how = dict(stride=(1, 1, 1), padding=(1, 1, 1), dilation=(1, 1, 1), groups=1)
    assert volumes.volume_plan(convolution.conv, [x, w, None], how, y) is not None


def test_bfloat16_is_rounded_once():
    x, w = (
        torch.from_numpy(normal(k, s, "float32")).bfloat16()
        for k, s in enumerate([(2, 4, 5, 6, 7), (6, 4, 3, 3, 3)])
    )
    got = F.conv3d(x, w, padding=1)
    wanted = F.conv3d(x.float(), w.float(), padding=1)
    assert got.dtype is torch.bfloat16
    assert (got.float() - wanted).abs().max() <= 2**-7 * wanted.abs().max()

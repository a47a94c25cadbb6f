"""Convolution, batch norm in evaluation and relu as one kernel of a program."""

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau.aot import trace
from flambeau.compile.native.normalised import with_normalised


class Block(torch.nn.Module):
    def __init__(self, inside=3, outside=20, kernel=3, **how):
        super().__init__()
        self.conv = torch.nn.Conv2d(inside, outside, kernel, bias=False, **how)
        self.norm = torch.nn.BatchNorm2d(outside)
        torch.nn.init.normal_(self.norm.weight)
        torch.nn.init.normal_(self.norm.bias)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


def names(function, *inputs):
    return [e.name for e in with_normalised(trace(function, *inputs).graph).equations]


def picture(channels=3, side=21):
    return torch.randn(2, channels, side, side)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "how",
    [
        dict(),
        dict(stride=2, padding=1),
        dict(inside=20, outside=37, padding=1),
        dict(inside=20, outside=37, kernel=1),
        dict(inside=18, outside=18, groups=18),
        dict(kernel=7, stride=2, padding=3),
    ],
    ids=str,
)
def test_values(how, last):
    block = Block(**how).eval()
    x = picture(how.get("inside", 3))
    if last:
        x = x.contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        wanted, got = block(x), torch.compile(block)(x)
    assert got.stride() == wanted.stride()
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_statistics_are_read_at_every_call():
    block = Block().eval()
    fast, x = torch.compile(block), picture()
    with torch.no_grad():
        fast(x)
        block.norm.running_mean.add_(1)
        block.norm.weight.mul_(2)
        torch.testing.assert_close(fast(x), block(x), rtol=1e-4, atol=1e-4)


def test_nan_stays():
    block, x = Block().eval(), picture()
    x[0, 0, 0, 0] = float("nan")
    with torch.no_grad():
        assert torch.compile(block)(x).isnan().equal(block(x).isnan())


def chained(x, w, mean, var):
    return F.relu(F.batch_norm(F.conv2d(x, w), mean, var))


def operands():
    return picture(), torch.randn(5, 3, 3, 3), torch.randn(5), torch.rand(5) + 0.5


def test_the_three_become_one():
    assert names(chained, *operands())[-2:] == ["channel_affine", "conv_affine"]


def seen_outside(x, w, mean, var):
    y = F.conv2d(x, w)
    return F.relu(F.batch_norm(y, mean, var)), y


def written_between(x, w, mean, var):
    y = F.conv2d(x, w)
    w.add_(1)
    return F.relu(F.batch_norm(y, mean, var))


def in_float64(x, w, mean, var):
    return chained(*(t.double() for t in (x, w, mean, var)))


@pytest.mark.parametrize("function", [seen_outside, written_between, in_float64])
def test_what_stays_apart(function):
    assert "conv_affine" not in names(function, *operands())

"""Memory layouts and empty batches through the operations of image networks."""

import pytest

import flambeau

torch = pytest.importorskip("torch")


def result(library, function, shape, last):
    x = library.arange(shape[0] * shape[1] * shape[2] * shape[3]).float().reshape(shape)
    x = x.contiguous(memory_format=library.channels_last) if last else x
    x.requires_grad_()
    y = function(library, x)
    (y * 2).sum().backward()
    return y.tolist(), y.stride() if y.numel() else None, tuple(y.shape), x.grad.tolist()


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("function", [
    lambda library, x: library.cat([x, x], 1), lambda library, x: library.cat([x, x, x], 3),
    lambda library, x: library.cat([x, x.contiguous()], 0),
    lambda library, x: library.cat([x, x[:, :1]], 1)])
def test_cat_keeps_channels_last(function, last):
    ours, theirs = (result(m, function, (2, 3, 4, 5), last) for m in (flambeau, torch))
    assert ours == theirs


@pytest.mark.parametrize("function", [
    lambda library, x: library.nn.functional.max_pool2d(x, 2),
    lambda library, x: library.nn.functional.avg_pool2d(x, 2),
    lambda library, x: library.nn.functional.adaptive_max_pool2d(x, 2),
    lambda library, x: library.nn.functional.adaptive_avg_pool2d(x, 2),
    lambda library, x: library.nn.functional.interpolate(x, scale_factor=2),
    lambda library, x: library.nn.functional.pad(x, (1, 1)),
    lambda library, x: library.nn.functional.conv2d(x, library.ones(2, 3, 3, 3))])
@pytest.mark.parametrize("last", [True, False])
def test_no_images_at_all(function, last):
    ours, theirs = (result(m, function, (0, 3, 4, 5), last) for m in (flambeau, torch))
    assert ours == theirs

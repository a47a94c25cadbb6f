"""Large operations run generated kernels: the same numbers as NumPy in float64, for any layout."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.eager import plans
from flambeau.eager.native import address, nests
from flambeau.ops.registry import REGISTRY

F = torch.nn.functional
SIZES = [8191, 8192, 8193, 100_003]


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(got, want, tolerance=2e-6):
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=tolerance, atol=tolerance)


def test_the_address_of_an_array():
    for a in (values(3), values(4, 5)[1:, ::2], np.zeros(())):
        assert address.address(a) == a.__array_interface__["data"][0]


def test_large_operations_do_not_fall_back(monkeypatch):
    def refuse(*args):
        raise AssertionError("the NumPy plan was asked for")

    x = torch.from_numpy(values(123, 457))
    monkeypatch.setattr(plans, "pointwise_plan", refuse)
    monkeypatch.setattr(plans, "general_plan", refuse)
    F.softmax(F.gelu(x + x), -1).sum()


@pytest.mark.parametrize("n", SIZES)
def test_pointwise_around_the_threshold(n):
    a, b = values(n), values(n, seed=1)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    close(x * y + 2.0, a.astype(float) * b + 2)
    close(x.exp().log1p(), np.log1p(np.exp(a.astype(float))), 1e-5)
    assert (x > y).tolist() == (a > b).tolist()


@pytest.mark.parametrize("make", [
    lambda a: a.T, lambda a: a[::2], lambda a: a[:, ::3], lambda a: a[1:, 5:], lambda a: a[0],
    lambda a: np.broadcast_to(a[:1], a.shape)])
def test_any_strides(make):
    a, b = values(301, 97), values(301, 97, seed=1)
    p, q = make(a), make(b)
    x = torch.from_numpy(a)
    y = torch.from_numpy(b)
    views = {id(a): x, id(b): y}
    s, t = (np_view(views[id(k)], make, k) for k in (a, b))
    close(s * t - s, p.astype(float) * q - p)
    close(s.sum(), p.astype(float).sum(), 1e-4)


def np_view(tensor, make, array):
    """The tensor over the same elements as make(array)."""
    view = make(array)
    offset = (view.__array_interface__["data"][0] - array.__array_interface__["data"][0]) // 4
    return tensor.as_strided(view.shape, tuple(s // 4 for s in view.strides), offset)


def test_in_place_where_operands_overlap():
    for n in (10, 20_000):
        a = values(n)
        x = torch.from_numpy(a.copy())
        x[1:].add_(x[:-1])
        want = a.copy()
        want[1:] = a[1:] + a[:-1]
        assert x.numpy().tolist() == want.tolist()
        m = torch.from_numpy(values(150, 150))
        before = m.numpy().copy()
        m.add_(m.t())
        assert m.numpy().tolist() == (before + before.T).tolist()


@pytest.mark.parametrize("shape", [(64, 33), (3, 5000), (1, 9000), (9000, 1)])
def test_rows(shape):
    a = values(*shape).astype(np.float32)
    x = torch.from_numpy(a)
    e = np.exp(a.astype(float) - a.max(-1, keepdims=True))
    close(F.softmax(x, -1), e / e.sum(-1, keepdims=True))
    centred = a.astype(float) - a.mean(-1, keepdims=True)
    want = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5)
    close(F.layer_norm(x, shape[1:]), want, 1e-4)


@pytest.mark.parametrize("m, n, k", [(1, 300, 200), (65, 33, 129), (128, 256, 784), (300, 1, 200)])
def test_products(m, n, k):
    a, b, c = values(m, k), values(n, k, seed=1), values(n, seed=2)
    x, w, bias = map(torch.from_numpy, (a, b, c))
    want = a.astype(float) @ b.T.astype(float)
    close(F.linear(x, w, bias), want + c, 1e-4)
    close(x @ w.t(), want, 1e-4)
    close(torch.from_numpy(np.ascontiguousarray(a.T)).t() @ w.t(), want, 1e-4)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("stride, padding, dilation, groups", [
    (1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (1, 0, 1, 2), (2, 3, 1, 4)])
def test_convolutions_against_their_definition(channels_last, stride, padding, dilation, groups):
    a, b = values(2, 8, 13, 11), values(12, 8 // groups, 3, 3, seed=1)
    x, w = torch.from_numpy(a), torch.from_numpy(b)
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    x.requires_grad_()
    w.requires_grad_()
    how = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    y = F.conv2d(x, w, **how)
    ct = torch.from_numpy(values(*y.shape, seed=2))
    y.backward(ct)
    p, q = (torch.from_numpy(v.astype(np.float64)).requires_grad_() for v in (a, b))
    z = F.conv2d(p, q, **how)
    z.backward(ct.double())
    close(y, z.detach().numpy(), 1e-4)
    close(x.grad, p.grad.numpy(), 1e-3)
    close(w.grad, q.grad.numpy(), 1e-3)


def test_results_do_not_depend_on_the_number_of_threads():
    from flambeau.runtime import pool

    a = values(257, 391)
    before, found = pool.get_num_threads(), []
    try:
        for n in (1, 2):
            pool.set_num_threads(n)
            x = torch.from_numpy(a)
            found.append((F.softmax(x, -1).numpy().tobytes(), x.sum().item(), x.sum(0).tolist()))
    finally:
        pool.set_num_threads(before)
    assert found[0] == found[1]


def test_lowerings_without_a_loop_form_are_left_to_numpy():
    assert nests.has_lowering(REGISTRY["add"])
    z = torch.ones(20_000, dtype=torch.complex64)
    assert (z + z)[0].item() == 2 + 0j

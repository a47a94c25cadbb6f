"""Products and attention in bfloat16: float64's results, rounded once, for any layout."""

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
EPSILON = 2.0**-8  # of bfloat16
SIZES = [(64, 256, 96), (37, 43, 51), (1, 300, 257), (300, 1, 257), (130, 10, 64), (70, 66, 1)]


def narrow(*shape, seed=0):
    """Values that bfloat16 holds exactly, as a tensor and in float64."""
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()
    return x, x.double().numpy()


def close(got, want, scale=1.0):
    """One rounding to bfloat16, of sums in float32."""
    assert got.dtype is torch.bfloat16
    np.testing.assert_allclose(got.double().numpy(), want, rtol=EPSILON, atol=1e-5 * scale)


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("size", SIZES)
def test_products(size, layout):
    m, n, k = size
    a, p = narrow(k, m) if layout[0] == "t" else narrow(m, k)
    b, q = narrow(n, k, seed=1) if layout[1] == "t" else narrow(k, n, seed=1)
    a, p = (a.T, p.T) if layout[0] == "t" else (a, p)
    b, q = (b.T, q.T) if layout[1] == "t" else (b, q)
    close(a @ b, p @ q, k)


@pytest.mark.parametrize("size", SIZES)
def test_linear_with_bias(size):
    m, n, k = size
    (x, p), (w, q), (b, r) = narrow(m, k), narrow(n, k, seed=1), narrow(n, seed=2)
    close(F.linear(x, w, b), p @ q.T + r, k)
    step = torch.compile(lambda x: F.linear(x, w, b).relu())
    close(step(x), np.maximum(p @ q.T + r, 0), k)


def test_batches_and_broadcast_batches():
    (a, p), (b, q) = narrow(5, 33, 40), narrow(5, 40, 50, seed=1)
    close(a @ b, p @ q, 40)
    close(a[:1] @ b, p[:1] @ q, 40)
    close(a.transpose(1, 2)[:, ::1] @ a, p.swapaxes(1, 2) @ p, 40)


def test_threads_do_not_change_bits():
    (a, _), (b, _) = narrow(300, 700), narrow(700, 500, seed=1)
    before = torch.get_num_threads()
    outs = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            outs.append((a @ b).float().numpy())
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*outs)


MASKS = {
    "": lambda n, m: None,
    "bool": lambda n, m: np.random.default_rng(4).random((2, 1, n, m)) > 0.3,
    "float": lambda n, m: narrow(n, m, seed=4)[1],
    "keys": lambda n, m: narrow(2, 1, 1, m, seed=4)[1],
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("size", [(40, 40, 16, 16), (130, 130, 64, 64), (33, 77, 7, 40)])
def test_attention_and_its_gradients(size, mask):
    rows, keys, d, dv = size
    given = MASKS[mask](rows, keys)
    arrays = [narrow(2, 3, n, w, seed=i)[1] for i, (n, w) in enumerate(
        [(rows, d), (keys, d), (keys, dv), (rows, dv)])]

    def run(kind):
        q, k, v, ct = (torch.from_numpy(a).to(kind) for a in arrays)
        m = None if given is None else torch.from_numpy(given)
        m = m.to(kind) if m is not None and m.dtype is torch.float64 else m
        leaves = [x.requires_grad_() for x in (q, k, v)]
        out = F.scaled_dot_product_attention(*leaves, attn_mask=m, is_causal=mask == "")
        out.backward(ct)
        return [x.detach().double().numpy() for x in (out, *(x.grad for x in leaves))]

    for got, want in zip(run(torch.bfloat16), run(torch.float64), strict=True):
        np.testing.assert_allclose(got, want, atol=2 * EPSILON * np.abs(want).max())

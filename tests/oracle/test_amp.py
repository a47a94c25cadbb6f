"""Autocast gives PyTorch's dtypes and values; GradScaler takes PyTorch's decisions."""

import warnings

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")


def make(library, *shape, seed=0, dtype="float32"):
    array = np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype("float32")
    return library.from_numpy(array).to(getattr(library, dtype))


def F(library):
    return library.nn.functional


def long(library, *values):
    return library.tensor(values)


def matrix(t, d):
    return make(t, 4, 4, dtype=d)


def image(t, d):
    return make(t, 1, 2, 8, 8, dtype=d)


def volume(t, d):
    return make(t, 1, 2, 6, 6, 6, dtype=d)


CASES = {
    "matmul": lambda t, d: matrix(t, d) @ matrix(t, d),
    "mm": lambda t, d: t.mm(matrix(t, d), matrix(t, d)),
    "mv": lambda t, d: t.mv(matrix(t, d), make(t, 4, dtype=d)),
    "bmm": lambda t, d: t.bmm(make(t, 2, 4, 4, dtype=d), make(t, 2, 4, 4, dtype=d)),
    "addmm": lambda t, d: t.addmm(matrix(t, d), matrix(t, d), matrix(t, d)),
    "baddbmm": lambda t, d: t.baddbmm(*(make(t, 2, 4, 4, dtype=d) for _ in range(3))),
    "einsum": lambda t, d: t.einsum("ij,jk->ik", matrix(t, d), matrix(t, d)),
    "linear": lambda t, d: F(t).linear(matrix(t, d), matrix(t, d), make(t, 4, dtype=d)),
    "conv1d": lambda t, d: F(t).conv1d(make(t, 2, 4, 6, dtype=d), make(t, 3, 4, 2, dtype=d)),
    "conv2d": lambda t, d: F(t).conv2d(
        image(t, d), make(t, 3, 2, 3, 3, dtype=d), make(t, 3, dtype=d)
    ),
    "conv_transpose2d": lambda t, d: F(t).conv_transpose2d(
        image(t, d), make(t, 2, 3, 3, 3, dtype=d)
    ),
    "attention": lambda t, d: F(t).scaled_dot_product_attention(
        *(make(t, 2, 4, 4, dtype=d) for _ in range(3))
    ),
    "prelu": lambda t, d: F(t).prelu(matrix(t, d), make(t, 1, dtype=d)),
    "add": lambda t, d: matrix(t, d) + matrix(t, "float32"),
    "softmax": lambda t, d: matrix(t, d).softmax(0),
    "layer_norm": lambda t, d: F(t).layer_norm(matrix(t, d), (4,)),
    "batch_norm": lambda t, d: F(t).batch_norm(image(t, d), None, None, training=True),
    "gelu": lambda t, d: F(t).gelu(matrix(t, d)),
    "exp": lambda t, d: matrix(t, d).exp(),
    "sum": lambda t, d: matrix(t, d).sum(),
    "prod": lambda t, d: matrix(t, d).prod(),
    "trace": lambda t, d: matrix(t, d).trace(),
    "embedding": lambda t, d: F(t).embedding(long(t, 0, 1), matrix(t, d)),
    "max_pool2d": lambda t, d: F(t).max_pool2d(image(t, d), 2),
    "max_pool3d": lambda t, d: F(t).max_pool3d(volume(t, d), 2),
    "avg_pool2d": lambda t, d: F(t).avg_pool2d(image(t, d), 2),
    "pad reflect": lambda t, d: F(t).pad(image(t, d), (1, 1, 1, 1), "reflect"),
    "pad replicate": lambda t, d: F(t).pad(image(t, d), (1, 1, 1, 1), mode="replicate"),
    "pad constant": lambda t, d: F(t).pad(image(t, d), (1, 1, 1, 1)),
    "interpolate": lambda t, d: F(t).interpolate(image(t, d), scale_factor=2),
    "mse_loss": lambda t, d: F(t).mse_loss(matrix(t, d), matrix(t, d)),
    "l1_loss": lambda t, d: F(t).l1_loss(matrix(t, d), matrix(t, d), reduction="none"),
    "smooth_l1_loss": lambda t, d: F(t).smooth_l1_loss(matrix(t, d), matrix(t, d)),
    "huber_loss": lambda t, d: F(t).huber_loss(matrix(t, d), matrix(t, d)),
    "kl_div": lambda t, d: F(t).kl_div(matrix(t, d), matrix(t, d), reduction="batchmean"),
    "binary_cross_entropy": lambda t, d: F(t).binary_cross_entropy(matrix(t, d), matrix(t, d)),
    "with_logits": lambda t, d: F(t).binary_cross_entropy_with_logits(matrix(t, d), matrix(t, d)),
    "nll_loss": lambda t, d: F(t).nll_loss(matrix(t, d), long(t, 0, 1, 2, 3)),
    "cross_entropy": lambda t, d: F(t).cross_entropy(matrix(t, d), long(t, 0, 1, 2, 3)),
    "cat": lambda t, d: t.cat([matrix(t, d), matrix(t, "float32")]),
    "stack": lambda t, d: t.stack([matrix(t, d), matrix(t, "bfloat16")]),
    "inverse": lambda t, d: t.inverse(matrix(t, d) + t.eye(4, dtype=getattr(t, d))),
    "fft": lambda t, d: t.fft.rfft(matrix(t, d)),
}
# PyTorch's kernel for these lacks bfloat16, and runs only because autocast widens it.
LOW = {"float32", "bfloat16"}


def name_of(dtype):
    return str(dtype).split(".")[-1]


def array(x):
    x = x.detach()
    return (x.float() if name_of(x.dtype) in ("bfloat16", "float16") else x).numpy()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_dtypes_and_values(name, dtype):
    outs = []
    for lib in (fb, torch):
        with lib.autocast("cpu"):
            outs.append(CASES[name](lib, dtype))
    mine, theirs = outs
    assert name_of(mine.dtype) == name_of(theirs.dtype)
    loose = {"bfloat16", "float16"} & {name_of(theirs.dtype), dtype}
    tolerance = 3e-2 if loose else 1e-4
    np.testing.assert_allclose(array(mine), array(theirs), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["matmul", "linear", "conv2d"])
def test_float16_when_asked(name):
    for lib in (fb, torch):
        with lib.autocast("cpu", dtype=lib.float16):
            assert name_of(CASES[name](lib, "float32").dtype) == "float16"


def test_a_training_step_in_bfloat16():
    def run(lib):
        w = make(lib, 4, 4).requires_grad_()
        b = make(lib, 4, seed=1).requires_grad_()
        with lib.autocast("cpu"):
            y = F(lib).linear(make(lib, 3, 4, seed=2), w, b)
            loss = F(lib).mse_loss(y.relu(), make(lib, 3, 4, seed=3))
        loss.backward()
        return loss, w.grad, b.grad

    for mine, theirs in zip(run(fb), run(torch), strict=True):
        assert name_of(mine.dtype) == name_of(theirs.dtype) == "float32"
        np.testing.assert_allclose(array(mine), array(theirs), rtol=2e-2, atol=1e-2)


SCHEDULE = [1.0, float("inf"), 1.0, 1.0, float("nan"), 1.0, 1.0, 1.0, 1.0]


def test_grad_scaler_follows_the_same_course():
    def run(lib):
        p = make(lib, 3).requires_grad_()
        optimizer = lib.optim.SGD([p], lr=0.1)
        scaler = lib.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        out = []
        for factor in SCHEDULE:
            optimizer.zero_grad()
            scaler.scale((p * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            out.append([scaler.get_scale(), scaler.state_dict(), array(p).tolist()])
        return out

    mine, theirs = run(fb), run(torch)
    for a, b in zip(mine, theirs, strict=True):
        assert a[:2] == b[:2]
        np.testing.assert_allclose(a[2], b[2], rtol=1e-6)


def scaled(lib):
    p = make(lib, 3).requires_grad_()
    scaler = lib.amp.GradScaler("cpu")
    optimizer = lib.optim.SGD([p], lr=0.1)
    scaler.scale(p.sum()).backward()
    return scaler, optimizer


def unscale_twice(lib):
    scaler, optimizer = scaled(lib)
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def step_twice(lib):
    scaler, optimizer = scaled(lib)
    scaler.step(optimizer)
    scaler.step(optimizer)


def step_without_gradients(lib):
    scaler = lib.amp.GradScaler("cpu")
    p = make(lib, 3).requires_grad_()
    scaler.scale(p.sum())
    scaler.step(lib.optim.SGD([p], lr=0.1))


def half_gradients(lib):
    p = make(lib, 3, dtype="float16").requires_grad_()
    scaler = lib.amp.GradScaler("cpu")
    scaler.scale(p.float().sum()).backward()
    scaler.unscale_(lib.optim.SGD([p], lr=0.1))


REFUSED = {
    "update first": (lambda t: t.amp.GradScaler("cpu").update(), AssertionError),
    "growth_factor": (lambda t: t.amp.GradScaler("cpu", growth_factor=0.5), AssertionError),
    "backoff_factor": (lambda t: t.amp.GradScaler("cpu", backoff_factor=1.5), AssertionError),
    "scale a number": (lambda t: t.amp.GradScaler("cpu").scale(3), ValueError),
    "unscale twice": (unscale_twice, RuntimeError),
    "step twice": (step_twice, RuntimeError),
    "no gradients": (step_without_gradients, AssertionError),
    "half gradients": (half_gradients, ValueError),
    "closure": (lambda t: scaled(t)[0].step(scaled(t)[1], closure=lambda: 0), RuntimeError),
    "empty state": (lambda t: t.amp.GradScaler("cpu").load_state_dict({}), RuntimeError),
    "device type": (lambda t: t.autocast("foo"), RuntimeError),
    "device type class": (lambda t: t.autocast(3), ValueError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    act, error = REFUSED[name]
    for lib in (torch, fb):
        with pytest.raises(error):
            act(lib)


@pytest.mark.parametrize(
    "act",
    [
        lambda t: t.autocast("cpu", dtype=t.float32),
        lambda t: t.autocast("cuda"),
        lambda t: t.amp.GradScaler("cuda"),
    ],
)
def test_what_is_not_there_warns_and_does_nothing(act):
    for lib in (torch, fb):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            made = act(lib)
        assert [w.category for w in seen] == [UserWarning]
        assert not made._enabled

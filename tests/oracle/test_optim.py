"""Every optimizer takes the same 20 steps as PyTorch's, and keeps the same state and groups."""

import copy

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

SHAPES = [(3, 4), (5,), (2, 3, 2)]
MATRICES = [(3, 4), (4, 2), (3, 3)]

FLAGS = {
    "SGD": [
        {},
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"lr": 0.1, "maximize": True, "momentum": 0.5},
        {"lr": 0.1, "foreach": True},
        {"lr": 0.1, "momentum": 0.9, "fused": True},
    ],
    "Adam": [
        {},
        {"lr": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "amsgrad": True, "betas": (0.5, 0.6)},
        {"lr": 0.1, "maximize": True, "eps": 1e-3},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.1, "foreach": True},
        {"lr": 0.1, "fused": True},
    ],
    "AdamW": [
        {},
        {"lr": 0.1, "weight_decay": 0.3},
        {"lr": 0.1, "amsgrad": True, "maximize": True},
        {"lr": 0.1, "fused": True},
    ],
    "Adamax": [{}, {"lr": 0.1, "weight_decay": 0.1}, {"lr": 0.1, "maximize": True}],
    "NAdam": [
        {},
        {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.01},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RAdam": [
        {},
        {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1},
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        {"lr": 0.1, "maximize": True, "eps": 1e-3},
    ],
    "RMSprop": [
        {},
        {"lr": 0.05, "alpha": 0.9, "weight_decay": 0.1},
        {"lr": 0.05, "momentum": 0.9},
        {"lr": 0.05, "centered": True, "momentum": 0.5, "maximize": True},
    ],
    "Rprop": [{}, {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (1e-3, 0.2)}, {"maximize": True}],
    "Adagrad": [
        {},
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1},
        {"lr": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-3, "maximize": True},
    ],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}, {"maximize": True}],
    "ASGD": [
        {},
        {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 5, "weight_decay": 0.1},
        {"maximize": True, "t0": 0},
    ],
    "Adafactor": [
        {},
        {"lr": 0.1, "weight_decay": 0.1, "beta2_decay": -0.5},
        {"lr": 0.1, "d": 2.0, "eps": (1e-8, 1e-2), "maximize": True},
    ],
    "Muon": [
        {},
        {"lr": 0.1, "weight_decay": 0.0, "nesterov": False},
        {"lr": 0.1, "momentum": 0.5, "ns_steps": 3, "adjust_lr_fn": "match_rms_adamw"},
    ],
}
CASES = [(name, flags) for name, variants in FLAGS.items() for flags in variants]
REAL_ONLY = {"Adafactor", "Muon"}
TOLERANCE = {"float32": 2e-5, "float64": 1e-10, "complex64": 2e-5, "bfloat16": 4e-2}


def arrays(name, dtype, seed):
    """One array per parameter."""
    rng = np.random.default_rng(seed)
    shapes = MATRICES if name == "Muon" else SHAPES
    out = [rng.standard_normal(shape) for shape in shapes]
    if dtype == "complex64":
        out = [a + 1j * rng.standard_normal(a.shape) for a in out]
    return out


def tensor(library, array, dtype):
    return library.from_numpy(array).to(getattr(library, dtype))


def as_array(x):
    x = x.detach()
    return (x.float() if str(x.dtype).endswith("bfloat16") else x).numpy()


def trained(library, name, flags, dtype, steps=20):
    """The parameters after some steps, and the optimizer."""
    params = [tensor(library, a, dtype).requires_grad_() for a in arrays(name, dtype, 0)]
    optimizer = getattr(library.optim, name)(params, **flags)
    advance(library, optimizer, params, name, dtype, range(steps))
    return params, optimizer


def advance(library, optimizer, params, name, dtype, steps):
    for step in steps:
        for param, grad in zip(params, arrays(name, dtype, step + 1), strict=True):
            param.grad = tensor(library, grad, dtype)
        optimizer.step()


def assert_same(mine, theirs, dtype, factor=1):
    tolerance = TOLERANCE[dtype] * factor
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(as_array(a), as_array(b), rtol=tolerance, atol=tolerance)


def compared(name, flags, dtype):
    mine, my_optimizer = trained(fb, name, flags, dtype)
    theirs, their_optimizer = trained(torch, name, flags, dtype)
    if name == "Muon":
        dtype = "bfloat16"  # what it orthogonalises in, whatever the parameters are
    assert_same(mine, theirs, dtype)
    return my_optimizer, their_optimizer


@pytest.mark.parametrize(("name", "flags"), CASES, ids=str)
def test_20_steps_in_float32(name, flags):
    mine, theirs = compared(name, flags, "float32")
    for my_group, their_group in zip(mine.param_groups, theirs.param_groups, strict=True):
        assert list(my_group) == list(their_group)
    assert repr(mine) == repr(theirs)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "complex64"])
@pytest.mark.parametrize(("name", "flags"), CASES, ids=str)
def test_20_steps_in_other_dtypes(name, flags, dtype):
    if dtype == "complex64" and (name in REAL_ONLY or flags.get("fused")):
        with pytest.raises(RuntimeError):
            trained(fb if name in REAL_ONLY else torch, name, flags, dtype)
        return
    if dtype == "bfloat16" and flags.get("nesterov") is False:
        pytest.skip("PyTorch's Muon scales the momentum itself here, in place")
    compared(name, flags, dtype)


@pytest.mark.parametrize("name", FLAGS)
def test_state_has_the_same_keys_dtypes_and_values(name):
    _, mine = trained(fb, name, FLAGS[name][-1], "float32", 3)
    _, theirs = trained(torch, name, FLAGS[name][-1], "float32", 3)
    my_state, their_state = mine.state_dict()["state"], theirs.state_dict()["state"]
    assert list(my_state) == list(their_state)
    for i, values in their_state.items():
        assert set(my_state[i]) == set(values)
        for key, value in values.items():
            got = my_state[i][key]
            assert str(got.dtype).split(".")[-1] == str(value.dtype).split(".")[-1]
            assert tuple(got.shape) == tuple(value.shape)
            np.testing.assert_allclose(as_array(got), as_array(value), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "flags"), CASES, ids=str)
def test_resuming_from_a_checkpoint_changes_nothing(name, flags):
    whole, _ = trained(fb, name, flags, "float32", 8)
    params, first = trained(fb, name, flags, "float32", 4)
    second = getattr(fb.optim, name)(params, **{**flags, "lr": 0.7})
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    advance(fb, second, params, name, "float32", range(4, 8))
    for a, b in zip(params, whole, strict=True):
        assert np.array_equal(as_array(a), as_array(b))


def quadratic(library, flags, steps=6):
    """LBFGS on Rosenbrock's valley plus a bowl: parameters, losses, state."""
    x = library.tensor([-1.2, 1.0, 0.5], dtype=library.float64, requires_grad=True)
    y = library.tensor([[0.3, -2.0]], dtype=library.float64, requires_grad=True)
    optimizer = library.optim.LBFGS([x, y], **flags)

    def closure():
        optimizer.zero_grad()
        valley = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        loss = valley + (x[2] - 3) ** 4 + (y * y).sum() + (y[0, 0] * y[0, 1] - 1) ** 2
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return [x, y], losses, optimizer


@pytest.mark.parametrize(
    "flags",
    [
        {"lr": 0.01},
        {"lr": 0.02, "max_iter": 5, "history_size": 3},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "max_iter": 4, "history_size": 2, "lr": 0.5},
        {"line_search_fn": "strong_wolfe", "max_eval": 7, "tolerance_grad": 1e-3},
        {"line_search_fn": "strong_wolfe", "tolerance_change": 1e-2},
    ],
    ids=str,
)
def test_lbfgs_takes_the_same_path(flags):
    mine, my_losses, my_optimizer = quadratic(fb, flags)
    theirs, their_losses, their_optimizer = quadratic(torch, flags)
    np.testing.assert_allclose(my_losses, their_losses, rtol=1e-6, atol=1e-12)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(as_array(a), as_array(b), rtol=1e-5, atol=1e-7)
    my_state = my_optimizer.state_dict()["state"][0]
    their_state = their_optimizer.state_dict()["state"][0]
    assert set(their_state) - {"al"} == set(my_state)
    for key in ("func_evals", "n_iter"):
        assert my_state[key] == their_state[key]
    assert repr(my_optimizer) == repr(their_optimizer)


@pytest.mark.parametrize(
    "flags", [{}, {"lr": 0.1, "betas": (0.5, 0.6)}, {"maximize": True}], ids=str
)
def test_sparse_adam_on_a_dense_gradient_with_empty_rows(flags):
    rng = np.random.default_rng(0)
    start = rng.standard_normal((5, 3)).astype("float32")
    grads = rng.standard_normal((20, 5, 3)).astype("float32")
    keep = rng.integers(0, 2, (20, 5, 1)).astype("float32")

    def run(library, sparse):
        p = library.from_numpy(start.copy()).requires_grad_()
        optimizer = library.optim.SparseAdam([p], **flags)
        for grad in grads * keep:
            g = library.from_numpy(grad.copy())
            p.grad = g.to_sparse(1) if sparse else g
            optimizer.step()
        return as_array(p)

    np.testing.assert_allclose(run(fb, False), run(torch, True), rtol=1e-5, atol=1e-6)


BAD = [
    ("SGD", {"lr": -1}, ValueError),
    ("SGD", {"nesterov": True}, ValueError),
    ("SGD", {"momentum": -0.5}, ValueError),
    ("SGD", {"fused": True, "foreach": True}, RuntimeError),
    ("SGD", {"fused": True, "differentiable": True}, RuntimeError),
    ("Adam", {"betas": (1.0, 0.0)}, ValueError),
    ("Adam", {"eps": -1}, ValueError),
    ("Adam", {"weight_decay": -1}, ValueError),
    ("AdamW", {"betas": (0.9, 1.5)}, ValueError),
    ("Adamax", {"betas": (0.0, 1.0)}, ValueError),
    ("NAdam", {"momentum_decay": -0.2}, ValueError),
    ("RAdam", {"weight_decay": -1}, ValueError),
    ("RMSprop", {"alpha": -1}, ValueError),
    ("Rprop", {"etas": (1.0, 0.5)}, ValueError),
    ("Adagrad", {"lr_decay": -0.5}, ValueError),
    ("Adadelta", {"rho": 1.1}, ValueError),
    ("ASGD", {"weight_decay": -0.5}, ValueError),
    ("LBFGS", {"lr": -1}, ValueError),
    ("Adafactor", {"d": 0.0}, ValueError),
    ("Adafactor", {"beta2_decay": 0.8}, ValueError),
    ("Adafactor", {"eps": (-1e-30, 1e-3)}, ValueError),
    ("Muon", {"adjust_lr_fn": "arbitrary"}, ValueError),
    ("SparseAdam", {"lr": 0}, ValueError),
    ("SparseAdam", {"eps": 0}, ValueError),
]


@pytest.mark.parametrize(("name", "flags", "error"), BAD, ids=str)
def test_bad_options_raise_the_same_class(name, flags, error):
    for library in (torch, fb):
        with pytest.raises(error):
            getattr(library.optim, name)([library.zeros(2, 2, requires_grad=True)], **flags)


@pytest.mark.parametrize("name", [n for n in FLAGS if n not in ("Adafactor", "Muon")])
def test_differentiable_steps_pass_gradients(name):
    """The gradient through three steps equals the slope of PyTorch's result."""

    def after_steps(library, start, **flags):
        param = start.clone()
        optimizer = getattr(library.optim, name)([param], lr=0.1, **flags)
        for step in range(3):
            param.grad = start * start + step
            optimizer.step()
        return param.sum()

    start = np.linspace(0.5, 1.5, 6)
    mine = fb.from_numpy(start.copy()).requires_grad_()
    (grad,) = fb.autograd.grad(after_steps(fb, mine, differentiable=True), mine)
    slopes = []
    for i in range(6):
        ends = [start + sign * 1e-6 * np.eye(6)[i] for sign in (1, -1)]
        up, down = (float(after_steps(torch, torch.from_numpy(end))) for end in ends)
        slopes.append((up - down) / 2e-6)
    np.testing.assert_allclose(as_array(grad), slopes, rtol=1e-5, atol=1e-7)

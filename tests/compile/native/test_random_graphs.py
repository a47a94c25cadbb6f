"""Random functions of 3 to 12 operations: the native program gives what eager mode gives."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flambeau as torch

UNARY = ("{0} * 2", "{0}.relu()", "{0}.exp().clamp(max=3)", "{0} - 1.5", "{0}.sigmoid()",
         "{0}.softmax(-1)", "{0}.sum(0, keepdim=True)", "{0}.mean(-1, keepdim=True)",
         "{0}.amax(0)", "{0}.cumsum(0).tanh()", "{0}.sort(-1)[0]", "{0}.clone()",
         "{0}.detach()", "{0}.t()", "{0}[1:]", "{0}[:, ::2]", "{0}[..., :1]",
         "{0}.unsqueeze(0).transpose(0, 1).squeeze(1)", "{0}.contiguous()",
         "{0}.reshape(-1, 1)", "{0}.reshape(1, -1)", "{0}.expand(3, *{0}.shape)[1]")  # fmt: skip
BINARY = ("fit({0}, {1}, torch.add)", "fit({0}, {1}, torch.mul)", "fit({0}, {1}, torch.maximum)",
          "{0} @ {0}.t()", "product({0}, {1})", "torch.where({0} > 0, {0}, {0} * 0.5)")
WRITES = ("{0}.add_(1)", "{0}.mul_({0}.sum().tanh())", "{0}[:1].mul_(2)", "{0}.t().add_(0.5)",
          "{0}.zero_()", "overwrite({0}, {1})")
SIZES = (0, 1, 2, 3, 7, 17, 64)


def fit(x, y, function):
    """Elementwise on what both have."""
    n, m = min(x.shape[0], y.shape[0]), min(x.shape[-1], y.shape[-1])
    return function(x[:n, :m], y[:n, :m])


def product(x, y):
    n = min(x.shape[-1], y.shape[0])
    return x[:, :n] @ y[:n].clamp(-2, 2)


def overwrite(x, y):
    n, m = min(x.shape[0], y.shape[0]), min(x.shape[-1], y.shape[-1])
    x[:n, :m].copy_(y[:n, :m] * 1)


@st.composite
def functions(draw):
    """Text of a function of two matrices; the result of each line is one as well."""
    names, lines = ["x", "y"], []
    for k in range(draw(st.integers(3, 12))):
        first, second = (draw(st.sampled_from(names)) for _ in range(2))
        kind = draw(st.sampled_from([UNARY, UNARY, BINARY, WRITES]))
        text = draw(st.sampled_from(kind)).format(first, second)
        if kind is WRITES:
            lines.append(text)
            continue
        lines.append(f"v{k} = torch.atleast_2d({text})")
        names.append(f"v{k}")
    kept = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    return "\n    ".join(["def f(x, y):", *lines, f"return {', '.join(kept)},"])


def matrices(draw):
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    shapes = [(draw(st.sampled_from(SIZES)), draw(st.sampled_from(SIZES))) for _ in range(2)]
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


def laid(array, how):
    """The array as a tensor: contiguous, transposed or with gaps."""
    if how == 1:
        return torch.from_numpy(np.array(array.T, order="C")).t()  # a copy, for one row too
    if how == 2:
        wide = np.zeros((array.shape[0], 2 * array.shape[1]), array.dtype)
        wide[:, ::2] = array
        return torch.from_numpy(wide)[:, ::2]
    return torch.from_numpy(array.copy())


def close(got, want):
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-4, atol=2e-4)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck),
          derandomize=True)
@given(st.data())
def test_native_equals_eager(data):
    text = data.draw(functions())
    arrays, how = matrices(data.draw), data.draw(st.integers(0, 2))
    space = {"torch": torch, "fit": fit, "product": product, "overwrite": overwrite}
    exec(text, space)
    compiled = torch.compile(space["f"])
    try:
        want = space["f"](*[laid(a, how) for a in arrays])
    except (RuntimeError, IndexError):
        return  # the shapes do not go together
    for _ in range(2):
        own, plain = ([laid(a, how) for a in arrays] for _ in range(2))
        got, want = compiled(*own), space["f"](*plain)
        for g, w in zip((*got, *own), (*want, *plain)):
            close(g, w)

"""Reading and writing at index tensors where kernels do it: values, gradients, errors, compiled."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

ROWS, COLUMNS = 131, 95
RNG = np.random.default_rng(3)
ALONG = RNG.integers(0, COLUMNS, (ROWS, 90))
DOWN = RNG.integers(0, ROWS, (200, COLUMNS))
SIGNED = RNG.integers(-ROWS, ROWS, 300)
OTHER = RNG.integers(-COLUMNS, COLUMNS, (2, 300))
ONCE = RNG.permutation(ROWS)[:100]
READS = dict(
    gather_columns=lambda t, x: x.gather(1, t(ALONG)),
    gather_rows=lambda t, x: x.gather(0, t(DOWN)),
    gather_strided=lambda t, x: x.t().gather(0, t(ALONG).t()),
    index_rows=lambda t, x: x[t(SIGNED)],
    index_columns=lambda t, x: x[:, t(OTHER)],
    index_both=lambda t, x: x[t(SIGNED), t(OTHER)],
    index_apart=lambda t, x: x.reshape(ROWS, 5, 19)[t(SIGNED), :, t(OTHER) % 19],
    index_select=lambda t, x: x.index_select(1, t(OTHER[0]) % COLUMNS),
    take_along=lambda t, x: x.take_along_dim(t(ALONG), 1),
    take=lambda t, x: x.take(t(DOWN)),
)
WRITES = dict(
    scatter=lambda t, x, s: x.scatter(1, t(np.argsort(ALONG, 1)), s[:, :90]),
    scatter_number=lambda t, x, s: x.scatter(1, t(ALONG), 2.5),
    scatter_add=lambda t, x, s: x.scatter_add(1, t(ALONG), s[:, :90]),
    scatter_add_rows=lambda t, x, s: x.scatter_add(0, t(DOWN[:ROWS]), s),
    scatter_sum=lambda t, x, s: x.scatter_reduce(1, t(ALONG), s[:, :90], "sum", include_self=False),
    scatter_max=lambda t, x, s: x.scatter_reduce(1, t(ALONG), s[:, :90], "amax"),
    scatter_min=lambda t, x, s: x.scatter_reduce(0, t(DOWN[:ROWS]), s, "amin", include_self=False),
    scatter_product=lambda t, x, s: x.scatter_reduce(1, t(ALONG), s[:, :90], "prod"),
    index_put=lambda t, x, s: x.index_put((t(ONCE),), s[:100]),
    index_put_row=lambda t, x, s: x.index_put((t(ONCE),), s[0]),
    index_accumulate=lambda t, x, s: x.index_put((t(SIGNED[:ROWS]),), s, accumulate=True),
    index_add=lambda t, x, s: x.index_add(0, t(SIGNED[:ROWS] % ROWS), s),
    index_add_columns=lambda t, x, s: x.index_add(1, t(OTHER[0, :COLUMNS] % COLUMNS), s, alpha=2),
    index_copy=lambda t, x, s: x.index_copy(0, t(ONCE), s[:100]),
    index_fill=lambda t, x, s: x.index_fill(1, t(ALONG[0]), -1.0),
)


def operand(framework, seed: int):
    values = np.random.default_rng(seed).normal(size=(ROWS, COLUMNS))
    return framework.tensor(values, dtype=framework.float32, requires_grad=True)


def results(framework, op, count: int, compiled: bool = False) -> list[np.ndarray]:
    operands = [operand(framework, k) for k in range(count)]
    run = framework.compile(op) if compiled else op
    out = run(framework.tensor, *operands)
    weights = framework.tensor(np.random.default_rng(9).normal(size=tuple(out.shape)))
    (out * weights).sum().backward()
    return [t.detach().numpy() for t in (out, *(x.grad for x in operands if x.grad is not None))]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_values_and_gradients_are_pytorchs(name, compiled):
    op, count = (READS[name], 1) if name in READS else (WRITES[name], 2)
    wanted = results(torch, op, count)
    for mine, theirs in zip(results(flambeau, op, count, compiled), wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", WRITES)
def test_in_place_forms_write_the_same(name):
    x, s = operand(flambeau, 0).detach(), operand(flambeau, 1).detach()
    wanted = WRITES[name](flambeau.tensor, x, s).numpy()
    writer = In(x.clone())
    WRITES[name](flambeau.tensor, writer, s)
    np.testing.assert_array_equal(writer.written.numpy(), wanted)


class In:
    """Calls the in-place form of every method."""

    def __init__(self, x):
        self.written = x

    def __getattr__(self, name: str):
        return getattr(self.written, name + "_")

    def __getitem__(self, key):
        return self.written[key]


BAD = dict(
    gather=lambda t, x: x.gather(1, t(ALONG + 40)),
    index=lambda t, x: x[t(SIGNED + 60)],
    index_select=lambda t, x: x.index_select(0, t(SIGNED)),
    scatter=lambda t, x: x.scatter(1, t(ALONG + 40), 1.0),
    scatter_add=lambda t, x: x.scatter_add(1, t(ALONG + 40), x),
    index_put=lambda t, x: x.index_put((t(SIGNED + 60),), x[0]),
    scatter_reduce=lambda t, x: x.scatter_reduce(1, t(ALONG + 40), x, "amax"),
)


@pytest.mark.parametrize("name", BAD)
def test_bad_indices_raise_pytorchs_class_and_write_nothing(name):
    op = BAD[name]
    with pytest.raises((IndexError, RuntimeError)) as theirs:
        op(torch.tensor, operand(torch, 0).detach())
    x = operand(flambeau, 0).detach()
    for run in (op, flambeau.compile(op)):
        with pytest.raises(type(theirs.value), match=r"out of (bounds|range)"):
            run(flambeau.tensor, x)
    if name in ("gather", "index", "index_select"):
        return
    before = x.clone()
    with pytest.raises(type(theirs.value)):
        op(flambeau.tensor, In(x) if name not in ("scatter_add", "scatter_reduce") else x)
    np.testing.assert_array_equal(x.numpy(), before.numpy())


def test_kernels_and_references_say_the_same():
    """A bad index in a large operand, which a kernel meets, and in a small one."""
    for size in (4, 400):
        x, index = flambeau.zeros(size, 50), flambeau.zeros(size, 50, dtype=flambeau.int64)
        index[1, 2] = 77
        text = "gather: index 77 is out of bounds for dimension 1 with size 50"
        with pytest.raises(RuntimeError, match=text):
            x.gather(1, index)
        with pytest.raises(IndexError, match="index 500 is out of bounds for dimension 0 with"):
            x[index[0] + 500]

"""ctc_loss: values and gradients, all reductions, empty and repeated targets, impossible ones."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")


def case(t, dtype, steps, classes, inputs, sizes, seed=0, concatenated=False, **how):
    rng = np.random.default_rng(seed)
    n, longest = len(inputs), max(*sizes, 1)
    x = t.tensor(rng.normal(size=(steps, n, classes)), dtype=getattr(t, dtype)).requires_grad_()
    targets = rng.integers(1, classes, (n, longest))
    if concatenated:
        targets = np.concatenate([row[:k] for row, k in zip(targets, sizes, strict=True)])
    loss = t.nn.functional.ctc_loss(
        x.log_softmax(-1), t.tensor(targets), t.tensor(inputs), t.tensor(sizes), **how)
    (loss * loss.detach().cos()).sum().backward()
    return [np.array(v.detach().double().numpy()) for v in (loss, x.grad)]


CASES = dict(
    plain=dict(steps=20, classes=6, inputs=[20, 20, 20], sizes=[5, 5, 5]),
    lengths=dict(steps=30, classes=4, inputs=[30, 17, 9, 30], sizes=[7, 3, 1, 0]),
    none=dict(steps=12, classes=5, inputs=[12, 8], sizes=[4, 2], reduction="none"),
    sum=dict(steps=12, classes=5, inputs=[12, 8], sizes=[4, 2], reduction="sum"),
    joined=dict(steps=25, classes=9, inputs=[25, 20], sizes=[9, 4], concatenated=True),
    repeated=dict(steps=40, classes=2, inputs=[40, 39], sizes=[11, 5]),
    impossible=dict(steps=4, classes=5, inputs=[4, 4], sizes=[9, 2], zero_infinity=True),
    long=dict(steps=120, classes=30, inputs=[120, 100, 77], sizes=[40, 33, 1]),
    short=dict(steps=1, classes=3, inputs=[1], sizes=[1]),
)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_losses_and_gradients(name, dtype):
    wanted = case(torch, "float64", **CASES[name])
    bound = 1e-9 if dtype == "float64" else 2e-4
    for found, right in zip(case(flambeau, dtype, **CASES[name]), wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=bound, atol=bound)


def test_a_target_that_is_too_long_has_no_gradient():
    """Its loss is infinite and its gradient NaN; that of the others is not touched."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(12, 3, 6)).astype(np.float32)
    targets, sizes = rng.integers(1, 6, (3, 20)), [20, 4, 0]
    found = []
    for framework in (torch, flambeau):
        x = framework.tensor(scores, requires_grad=True)
        loss = framework.nn.functional.ctc_loss(
            x.log_softmax(2), framework.tensor(targets), framework.tensor([12, 12, 12]),
            framework.tensor(sizes), reduction="none")
        loss.sum().backward()
        found.append((loss.detach().numpy(), x.grad.numpy()))
    for theirs, mine in zip(*found):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    assert np.isinf(found[1][0][0]) and np.isnan(found[1][1][:, 0]).all()

"""Recurrent layers give the same numbers by loops on arrays and by tensor operations."""

import numpy as np
import pytest

import flambeau as fb
from flambeau.compile.backends import eager_runner
from flambeau.nn import recurrence
from flambeau.nn.utils.rnn import pack_sequence

KINDS = [
    ("RNN", {}),
    ("RNN", {"nonlinearity": "relu", "bias": False}),
    ("GRU", {}),
    ("GRU", {"bias": False}),
    ("LSTM", {}),
    ("LSTM", {"proj_size": 2}),
]


def results(kind, options, packed):
    fb.manual_seed(0)
    net = getattr(fb.nn, kind)(2, 4, num_layers=2, bidirectional=True, **options).double()
    sequences = [fb.randn(n, 2, dtype=fb.float64) for n in (5, 3, 3)]
    x = pack_sequence(sequences) if packed else fb.stack([s[:3] for s in sequences])
    output, state = net(x)
    states = list(state) if kind == "LSTM" else [state]
    output = output.data if packed else output
    total = output.cos().sum() + sum(s.sin().sum() for s in states)
    return [output, *states, *fb.autograd.grad(total, list(net.parameters()))]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_one_op_arrays_and_tensors_agree(kind, options, packed, monkeypatch):
    by_one_op = results(kind, options, packed)
    monkeypatch.setattr(recurrence, "is_one_op", lambda *call: False)
    by_arrays = results(kind, options, packed)
    monkeypatch.setattr(recurrence, "is_plain", lambda *tensors: False)
    by_tensors = results(kind, options, packed)
    for one, *others in zip(by_tensors, by_arrays, by_one_op, strict=True):
        for other in others:
            np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize(("kind", "options"), [k for k in KINDS if "proj_size" not in k[1]])
def test_a_layer_is_one_equation_forward_and_one_backward(kind, options):
    net = getattr(fb.nn, kind)(3, 4, **options)
    graphs = []

    def kept(graph, examples):
        graphs.append(graph)
        return eager_runner(graph, examples)

    def step(x):
        net(x)[0].sum().backward()

    fb.compile(step, backend=kept)(fb.randn(6, 2, 3))
    names = [e.name for e in graphs[0].equations]
    assert [n for n in names if "sequence" in n] == [
        f"{kind.lower()}_sequence", f"{kind.lower()}_sequence_backward"]


def test_gradients_of_one_output_only():
    net = fb.nn.LSTM(2, 3)
    x = fb.randn(4, 1, 2, requires_grad=True)
    _, (h, c) = net(x)
    c.sum().backward()
    assert x.grad is not None and bool(x.grad.isfinite().all())
    with pytest.raises(RuntimeError, match=r"second time|freed by an earlier"):
        c.sum().backward()
    assert not h.isnan().any()

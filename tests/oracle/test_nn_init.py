"""Initialisers draw PyTorch's numbers, bit for bit where the specification says so."""

import warnings

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

INITS = [
    ("uniform_", (3, 5), {}),
    ("uniform_", (300,), {"a": -0.3, "b": 0.9}),
    ("normal_", (4, 4), {"mean": 1.0, "std": 0.1}),
    ("normal_", (5, 7), {}),
    ("normal_", (3,), {}),
    ("constant_", (3, 2), {"val": 0.3}),
    ("ones_", (3, 2), {}),
    ("zeros_", (3, 2), {}),
    ("eye_", (3, 5), {}),
    ("dirac_", (4, 3, 3), {}),
    ("dirac_", (6, 2, 3, 3), {"groups": 3}),
    ("dirac_", (4, 3, 2, 3, 3), {}),
    ("xavier_uniform_", (20, 30), {"gain": 2.0}),
    ("xavier_normal_", (20, 30, 3), {}),
    ("kaiming_uniform_", (20, 30), {"a": 0.2}),
    ("kaiming_uniform_", (4, 3, 3, 3), {"mode": "fan_out", "nonlinearity": "relu"}),
    ("kaiming_normal_", (20, 30), {"nonlinearity": "tanh"}),
    ("trunc_normal_", (50, 40), {}),
    ("trunc_normal_", (50, 40), {"std": 0.02}),
    ("trunc_normal_", (50, 40), {"mean": 0.5, "a": 0.4, "b": 0.9}),
    ("sparse_", (20, 6), {"sparsity": 0.3}),
]


@pytest.mark.parametrize(("name", "shape", "kwargs"), INITS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_same_draws(name, shape, kwargs, dtype):
    drawn = []
    for library in (torch, fb):
        library.manual_seed(5)
        tensor = library.empty(*shape, dtype=getattr(library, dtype))
        result = getattr(library.nn.init, name)(tensor, **kwargs)
        assert result is tensor
        drawn.append(tensor.numpy().copy())
        drawn.append(library.rand(1).numpy().copy())
    assert np.array_equal(drawn[0], drawn[2])
    assert np.array_equal(drawn[1], drawn[3]), "the generator is left in another state"


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 3, 2)])
def test_orthogonal(shape):
    drawn = []
    for library in (torch, fb):
        library.manual_seed(5)
        drawn.append(library.nn.init.orthogonal_(library.empty(*shape), gain=2.0).numpy().copy())
    np.testing.assert_allclose(drawn[1], drawn[0], atol=1e-5)


@pytest.mark.parametrize("shape", [(8, 4, 3, 3)])
def test_channels_last_weights_are_filled_in_the_same_order(shape):
    drawn = []
    for library in (torch, fb):
        library.manual_seed(5)
        tensor = library.empty(*shape).to(memory_format=library.channels_last)
        library.nn.init.kaiming_uniform_(tensor)
        drawn.append(tensor.numpy().copy())
    assert np.array_equal(*drawn)


def test_given_generators():
    drawn = []
    for library in (torch, fb):
        generator = library.Generator().manual_seed(9)
        tensor = library.nn.init.xavier_normal_(library.empty(5, 4), generator=generator)
        drawn.append(tensor.numpy().copy())
    assert np.array_equal(*drawn)


BAD = [
    lambda library: library.nn.init.xavier_uniform_(library.empty(3)),
    lambda library: library.nn.init.kaiming_uniform_(library.empty(3, 3), mode="x"),
    lambda library: library.nn.init.eye_(library.empty(3)),
    lambda library: library.nn.init.dirac_(library.empty(3, 3)),
    lambda library: library.nn.init.dirac_(library.empty(3, 3, 3), groups=2),
    lambda library: library.nn.init.sparse_(library.empty(3), 0.1),
    lambda library: library.nn.init.orthogonal_(library.empty(3)),
    lambda library: library.nn.init.calculate_gain("nothing"),
    lambda library: library.nn.init.calculate_gain("leaky_relu", "x"),
]


@pytest.mark.parametrize("call", BAD)
def test_the_same_errors(call):
    with pytest.raises(Exception) as theirs:  # the oracle says which
        call(torch)
    with pytest.raises(theirs.type):
        call(fb)


def test_gains():
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu", "leaky_relu"):
        assert fb.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert fb.nn.init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain(
        "leaky_relu", 0.3
    )


def test_deprecated_names_and_empty_tensors_warn():
    with pytest.warns(FutureWarning, match="uniform_"):
        fb.nn.init.uniform(fb.empty(2))
    with pytest.warns(UserWarning, match="no-op"):
        fb.nn.init.kaiming_uniform_(fb.empty(0, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fb.nn.init.uniform_(fb.empty(0))

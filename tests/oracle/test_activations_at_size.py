"""Activations where kernels compute them: special values, narrow floats, compiled as eager."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

CALLS = dict(
    softplus=lambda F, x: F.softplus(x, beta=1.5, threshold=10),
    logsigmoid=lambda F, x: F.logsigmoid(x),
    mish=lambda F, x: F.mish(x),
    elu=lambda F, x: F.elu(x, alpha=0.7),
    selu=lambda F, x: F.selu(x),
    celu=lambda F, x: F.celu(x, alpha=1.3),
    threshold=lambda F, x: F.threshold(x, 0.1, -2.0),
    hardtanh=lambda F, x: F.hardtanh(x, -0.7, 0.9),
    relu6=lambda F, x: F.relu6(x),
    hardsigmoid=lambda F, x: F.hardsigmoid(x),
    hardswish=lambda F, x: F.hardswish(x),
    softshrink=lambda F, x: F.softshrink(x, 0.5),
    hardshrink=lambda F, x: F.hardshrink(x, 0.5),
)
BOUNDS = {"float32": 2e-6, "float64": 1e-6, "bfloat16": 8e-3}  # their slopes are float32


def made(framework, dtype: str):
    x = np.random.default_rng(0).normal(size=(97, 101)) * 8
    x[0, :7] = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30]
    return framework.tensor(x, dtype=getattr(framework, dtype), requires_grad=True)


def value_and_gradient(framework, call, x, backward=True):
    y = call(framework.nn.functional, x)
    if backward:
        y[1:].sum().backward()
    return [t.detach().double().numpy() for t in (y, *([x.grad[1:]] if backward else []))]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", CALLS)
def test_activations_are_pytorchs(name, dtype):
    call, bound = CALLS[name], BOUNDS[dtype]
    wanted = value_and_gradient(torch, call, made(torch, dtype))
    got = value_and_gradient(flambeau, call, made(flambeau, dtype))
    compiled = flambeau.compile(lambda x: call(flambeau.nn.functional, x))
    got.append(compiled(made(flambeau, dtype).detach()).double().numpy())
    for mine, theirs in zip(got, [*wanted, wanted[0]]):
        np.testing.assert_allclose(mine, theirs, rtol=bound, atol=bound)

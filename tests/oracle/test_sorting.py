"""sort and topk where kernels compute them: every dtype, line and order; ties, NaN and zeros."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

CASES = (((5000,), 0), ((40, 131), 1), ((40, 131), 0), ((7, 50, 20), 1), ((3000, 2), 1),
         ((2, 9000), 1))  # fmt: skip
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8",
          "bool")  # fmt: skip


def operands(shape: tuple, dtype: str) -> tuple:
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=shape) * 30, 1)
    if "float" in dtype:
        x.reshape(-1)[rng.integers(0, x.size, 9)] = np.nan
        x.reshape(-1)[3:7] = [-np.inf, np.inf, -0.0, 0.0]
    if dtype == "uint8":
        x = np.abs(x)
    return tuple(f.tensor(x).to(getattr(f, dtype)) for f in (flambeau, torch))


def same(mine, theirs) -> None:
    np.testing.assert_array_equal(mine.double().numpy(), theirs.double().numpy())


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_stable_sorts_are_pytorchs(case, dtype, descending):
    shape, dim = case
    mine, theirs = operands(shape, dtype)
    wanted = torch.sort(theirs, dim=dim, descending=descending, stable=True)

    def call(x):
        return flambeau.sort(x, dim=dim, descending=descending, stable=True)

    for got in (call(mine), flambeau.compile(call)(mine)):
        for x, y in zip(got, wanted, strict=True):
            same(x, y)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_first_few_are_pytorchs(case, dtype, largest):
    shape, dim = case
    mine, theirs = operands(shape, dtype)
    for k in (1, 2, 5, 70):
        if k > shape[dim]:
            continue
        values, places = flambeau.topk(mine, k, dim, largest=largest)
        same(values, torch.topk(theirs, k, dim, largest=largest).values)
        same(mine.gather(dim, places), values)
        first = flambeau.sort(mine, dim=dim, descending=largest, stable=True).indices
        same(places, first.narrow(dim, 0, k))


def test_gradients_go_to_the_places():
    x = flambeau.randn(60, 80, requires_grad=True)
    values, places = x.topk(7, 1)
    (values * flambeau.arange(7)).sum().backward()
    wanted = flambeau.zeros(60, 80).scatter(1, places, flambeau.arange(7.0).expand(60, 7))
    same(x.grad, wanted)

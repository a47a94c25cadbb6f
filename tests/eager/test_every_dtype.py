"""A pointwise operation says the same of many elements, in a kernel, and of few, in NumPy.

Every primitive in every dtype, values and classes of errors.
"""

import numpy as np
import pytest

import flambeau as torch
from flambeau.core.dtype import BOOL, FLOAT
from flambeau.ops.registry import REGISTRY

INNER = {"weighted_sum", "addcmul", "addcdiv"}
"""Given tensors of one dtype by everything that calls them, and real ones."""

POINTWISE = sorted(n for n, p in REGISTRY.items() if p.kind == "pointwise" and n not in INNER)
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float16", "float32",
          "float64"]
MANY, FEW = 600, 20


def values(dtype, seed: int, whole_powers: bool) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    if dtype.category == BOOL:
        return torch.tensor(rng.integers(0, 2, MANY).astype(bool))
    if dtype.category < FLOAT:
        low = 0 if whole_powers or dtype is torch.uint8 else -6
        return torch.tensor(rng.integers(low, 7, MANY)).to(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]
    found = np.where(rng.random(MANY) < 0.2, rng.choice(special, MANY), rng.normal(size=MANY))
    return torch.tensor(found).to(dtype)


def outcome(primitive, operands, params):
    with np.errstate(all="ignore"):
        try:
            return primitive(*operands, **params)
        except Exception as error:
            return type(error)


@pytest.mark.parametrize("name", POINTWISE)
def test_many_elements_and_few(name):
    primitive = REGISTRY[name]
    params = next(iter(primitive.samples(np.random.default_rng(0))))[1]
    for dtype in DTYPES:
        kind = getattr(torch, dtype)
        operands = [values(kind, k, "shift" in name or name == "pow")
                    for k, _ in enumerate(primitive.operands)]
        pieces = [outcome(primitive, [x[k : k + FEW] for x in operands], params)
                  for k in range(0, MANY, FEW)]
        errors = {p for p in pieces if isinstance(p, type)}
        got = outcome(primitive, operands, params)
        if errors:
            assert got in errors, dtype
            continue
        wanted = torch.cat(pieces)
        assert got.dtype == wanted.dtype, dtype
        tolerance = {} if wanted.dtype.is_floating_point else dict(rtol=0, atol=0)
        torch.testing.assert_close(got, wanted, equal_nan=True, **tolerance)

"""scaled_dot_product_attention in all its forms: values and gradients, eager and compiled; dropout
drops what PyTorch drops."""

import itertools

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

SHAPES = {  # query, key, value
    "plain": ((2, 4, 9, 8), (2, 4, 9, 8), (2, 4, 9, 8)),
    "odd": ((1, 3, 33, 5), (1, 3, 70, 5), (1, 3, 70, 7)),
    "long": ((1, 2, 130, 16), (1, 2, 65, 16), (1, 2, 65, 16)),
    "grouped": ((2, 6, 17, 4), (2, 2, 17, 4), (2, 2, 17, 4)),
    "one key": ((2, 1, 1, 1), (2, 1, 1, 1), (2, 1, 1, 1)),
    "heads first": ((3, 12, 8), (3, 10, 8), (3, 10, 8)),
    "no heads": ((12, 8), (10, 8), (10, 8)),
    "five": ((2, 2, 2, 9, 4), (2, 2, 2, 9, 4), (2, 2, 2, 9, 4)),
}
MASKS = ("none", "causal", "bool", "float", "keys", "learned")


def arguments(t, name, mask, dtype, rng):
    operands = [t.tensor(rng.normal(size=s), dtype=dtype).requires_grad_() for s in SHAPES[name]]
    rows, keys = SHAPES[name][0][-2], SHAPES[name][1][-2]
    how = {"enable_gqa": True} if name == "grouped" else {}
    if mask == "causal":
        how["is_causal"] = True
    elif mask == "bool":
        how["attn_mask"] = t.tensor(rng.random((rows, keys)) > 0.3)
    elif mask == "keys":
        how["attn_mask"] = t.tensor(rng.random((1, keys)) > 0.2).expand(rows, keys)
    elif mask in ("float", "learned"):
        given = t.tensor(rng.normal(size=(rows, keys)), dtype=dtype)
        how["attn_mask"] = given.requires_grad_(mask == "learned")
    return operands, how


def results(t, name, mask, dropout, dtype, compiled=False):
    operands, how = arguments(t, name, mask, getattr(t, dtype), np.random.default_rng(4))

    def step(*operands):
        out = t.nn.functional.scaled_dot_product_attention(*operands, dropout_p=dropout, **how)
        (out * out.detach().cos()).sum().backward()
        return out

    t.manual_seed(7)
    out = (t.compile(step) if compiled else step)(*operands)
    leaves = [*operands, *([how["attn_mask"]] if mask == "learned" else [])]
    found = [out, *[x.grad for x in leaves]]
    return [np.array(x.detach().double().numpy()) for x in found]


@pytest.mark.parametrize("name, mask", list(itertools.product(SHAPES, MASKS)))
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_values_and_gradients(name, mask, dropout):
    wanted = results(torch, name, mask, dropout, "float64")
    for dtype, compiled, bound in (("float64", False, 1e-10), ("float32", True, 2e-5)):
        found = results(flambeau, name, mask, dropout, dtype, compiled)
        for g, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(g, w, rtol=bound, atol=bound * max(1, np.abs(w).max()))

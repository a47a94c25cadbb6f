"""Ops that only move elements, at sizes where kernels take over, in every dtype and layout."""

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

DTYPES = ("float32", "bfloat16", "float16", "float64", "bool", "uint8", "int64", "complex64",
          "complex128", "float8_e4m3fn")  # fmt: skip
MOVES = dict(
    cat=lambda T, x: T.cat([x, x[:3], x]),
    cat_strided=lambda T, x: T.cat([x, x[:, ::2], x[:, :0]], 1),
    stack=lambda T, x: T.stack([x, x], 1),
    flip=lambda T, x: x.flip(0, 1),
    roll=lambda T, x: T.roll(x, (3, -5), (0, 1)),
    roll_flat=lambda T, x: T.roll(x, 17),
    roll_transposed=lambda T, x: T.roll(x.t(), 80, 1),
    tril=lambda T, x: T.tril(x, 3),
    triu=lambda T, x: T.triu(x.t(), -2),
    pad=lambda T, x: T.nn.functional.pad(x, (3, 2, -1, 4), value=1),
    fill=lambda T, x: x.clone().fill_(1),
    masked_fill=lambda T, x: x.masked_fill(T.ones(70, 150, dtype=T.bool).tril(), 2),
)


def made(framework, name: str):
    values = framework.tensor(np.random.default_rng(0).normal(size=(70, 150)) * 3)
    return values > 0 if name == "bool" else values.to(getattr(framework, name))


def plain(x) -> np.ndarray:
    if x.dtype.itemsize <= 2 and x.dtype.is_floating_point:
        x = x.double()
    return x.numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("move", MOVES)
def test_elements_move_as_in_pytorch(move, dtype):
    op = MOVES[move]
    try:
        wanted = op(torch, made(torch, dtype))
    except NotImplementedError:
        pytest.skip("PyTorch has none")
    x = made(flambeau, dtype)
    for run in (op, flambeau.compile(op)):
        np.testing.assert_array_equal(plain(run(flambeau, x)), plain(wanted))

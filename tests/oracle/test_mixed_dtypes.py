"""Operands of every pair of dtypes in ops that NumPy has no common dtype for."""

import itertools

import pytest

import flambeau

torch = pytest.importorskip("torch")

NAMES = ["float64", "float32", "float16", "bfloat16", "int8", "int64", "uint8", "bool"]


def operands(library, first, second, shape):
    x = library.tensor([1, 0, 3][: shape[0]] if shape else 3).to(getattr(library, first))
    y = library.tensor([2, 5, 0]).to(getattr(library, second))
    return x, y, library.tensor([True, False, True])


@pytest.mark.parametrize("shape", [(3,), (1,), ()])
@pytest.mark.parametrize("first, second", list(itertools.product(NAMES, NAMES)))
def test_where(first, second, shape):
    ours, theirs = (
        library.where(c, x, y)
        for library in (flambeau, torch)
        for x, y, c in [operands(library, first, second, shape)]
    )
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", ["int8", "int32", "int64", "uint8", "float32"])
def test_dot_keeps_the_dtype(name):
    ours, theirs = (
        x.dot(x)
        for library in (flambeau, torch)
        for x in [library.tensor([100, 100, 3]).to(getattr(library, name))]
    )
    assert str(ours.dtype) == str(theirs.dtype) and ours.item() == theirs.item()


@pytest.mark.parametrize("name", ["int8", "int16", "int64"])
@pytest.mark.parametrize("base", [0, 1, -1, 2])
def test_negative_powers_of_integers(name, base):
    low = torch.iinfo(getattr(torch, name)).min
    ours, theirs = (
        library.pow(base, library.tensor([low, -1, -2, 0, 1, 3]).to(getattr(library, name)))
        for library in (flambeau, torch)
    )
    assert str(ours.dtype) == str(theirs.dtype) and ours.tolist() == theirs.tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.dot(2.0),
        lambda x: x.outer(2.0),
        lambda x: x.matmul(2.0),
        lambda x: x.reshape(1, 3).mv(2.0),
    ],
)
def test_products_of_numbers_are_type_errors(call):
    for library in (flambeau, torch):
        with pytest.raises(TypeError):
            call(library.ones(3))

"""Result dtypes, values and refusals of binary ops for every pair of operand kinds."""

import operator
import warnings

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")

DTYPES = ("float64", "float32", "bfloat16", "complex64", "int8", "int32", "int64", "uint8", "bool")
NUMBERS = (True, 2, -1, 300, 2.5, 1 + 2j)
FUNCTIONS = ("add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "eq", "lt",
             "maximum", "fmin", "atan2", "bitwise_and", "bitwise_left_shift", "logical_and",
             "copysign", "xlogy", "float_power")
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "eq",
             "lt", "iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow", "iand", "ixor")
# PyTorch answers bool for `bools ** True`, which has no use, and rounds each step of a complex
# quotient of bfloat16.
KNOWN = {("pow", "bool", True), ("ipow", "bool", True), ("truediv", 1 + 2j, "bfloat16")}


def operand(lib, kind, sized: bool):
    """A tensor of the dtype `kind` (three elements, or none), or `kind` itself, a number."""
    if not isinstance(kind, str):
        return kind
    values = [True, False, True] if kind == "bool" else [3, 2, 1]
    return lib.tensor(values if sized else values[0], dtype=getattr(lib, kind))


def outcome(f, lib, a, b, sized: tuple[bool, bool]):
    try:
        out = f(lib)(operand(lib, a, sized[0]), operand(lib, b, sized[1]))
    except Exception as error:
        return type(error)
    wide = out.float() if str(out.dtype).endswith("bfloat16") else out
    return str(out.dtype).removeprefix("torch."), np.asarray(wide.numpy())


def agree(expected, got) -> bool:
    if isinstance(expected, type) or isinstance(got, type):
        return isinstance(expected, type) and isinstance(got, type) and issubclass(got, expected)
    if expected[0] != got[0] or expected[1].shape != got[1].shape:
        return False
    tolerance = 2e-2 if expected[0] == "bfloat16" else 1e-5
    return np.allclose(expected[1].astype(complex), got[1].astype(complex), rtol=tolerance,
                       equal_nan=True)


def check(name, f, pairs):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b, sized in pairs:
            if (name, a, b) in KNOWN:
                continue
            expected, got = (outcome(f, lib, a, b, sized) for lib in (torch, flambeau))
            if not agree(expected, got):
                wrong.append((a, b, sized, expected, got))
    assert not wrong, wrong[:3]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_two_tensors(name):
    check(name, lambda lib: getattr(lib, name), [
        (a, b, sized) for a in DTYPES for b in DTYPES
        for sized in ((True, True), (True, False), (False, True), (False, False))])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_place_methods(name):
    if not hasattr(torch.Tensor, f"{name}_"):
        pytest.skip("PyTorch has no in-place form")
    check(name, lambda lib: getattr(lib.Tensor, f"{name}_"), [
        (a, b, (True, True)) for a in DTYPES for b in DTYPES])


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_numbers(name):
    f = getattr(operator, name)
    pairs = [(d, n, (True, True)) for d in DTYPES for n in NUMBERS]
    if not name.startswith("i"):
        pairs += [(n, d, (True, True)) for d in DTYPES for n in NUMBERS]
    check(name, lambda lib: f, pairs)

"""Operators and arithmetic functions: numbers, wrapping, in-place writes, refusals."""

import math

import pytest

import flambeau as torch


def test_python_numbers_take_part_without_raising_the_dtype():
    x = torch.tensor([1.0, 2.0])
    assert (x + 1).dtype is torch.float32 and (1 - x).tolist() == [0.0, -1.0]
    assert (torch.tensor([1, 2]) * 2.5).dtype is torch.float32
    assert (torch.tensor([1, 2]) / 2).tolist() == [0.5, 1.0]
    assert (torch.tensor([True]) + 1).dtype is torch.int64
    assert (2**torch.tensor([3, 4])).tolist() == [8, 16]


def test_small_integers_wrap():
    x = torch.tensor([200, 7], dtype=torch.uint8)
    assert (x + 100).tolist() == [44, 107]
    assert (x - 8).tolist() == [192, 255]
    assert (x + 300).tolist() == [244, 51]
    assert (torch.tensor([3]) ** 40).item() == 3**40 - (1 << 64)


def test_zero_dimensional_tensors_only_raise_the_category():
    narrow = torch.tensor([1.0], dtype=torch.float16)
    assert (narrow + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float16
    assert (torch.tensor([1]) + torch.tensor(1.5, dtype=torch.float64)).dtype is torch.float64


@pytest.mark.parametrize(("mode", "expected"), [
    (None, [-2.5, 2.5]), ("floor", [-3.0, 2.0]), ("trunc", [-2.0, 2.0])])
def test_division_modes(mode, expected):
    assert torch.div(torch.tensor([-5.0, 5.0]), 2, rounding_mode=mode).tolist() == expected


def test_integer_division_by_zero_raises():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.tensor([1]) // 0
    assert (torch.tensor([1.0, -1.0]) / 0).tolist() == [math.inf, -math.inf]


def test_true_in_place_forms_write_the_same_memory():
    x = torch.tensor([1.0, 4.0])
    memory, before = x.data_ptr(), x._version
    x.add_(1).mul_(2).sub_(1).div_(2).sqrt_().clamp_(max=2)
    x.addcmul_(x, x, value=0.5).addcdiv_(x, x).lerp_(torch.zeros(2), 0.5)
    assert x.data_ptr() == memory and x._version == before + 9


def test_in_place_results_must_fit():
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.tensor([1]).add_(1.5)
    with pytest.raises(RuntimeError, match="shape"):
        torch.ones(1).add_(torch.ones(2))


def test_in_place_write_keeps_the_gradient_of_both_values():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    y.mul_(y)  # saves the value it overwrites
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_common_powers_take_the_short_way_and_agree():
    x = torch.tensor([4.0, 0.25])
    assert (x**2).tolist() == [16.0, 0.0625] and (x**0.5).tolist() == [2.0, 0.5]
    assert (x**-1).tolist() == [0.25, 4.0] and x.pow(-0.5).tolist() == [0.5, 2.0]
    assert x.pow_(2).tolist() == [16.0, 0.0625]


def test_gradient_of_a_complex_number_factor_is_conjugated():
    x = torch.tensor([1 + 2j], requires_grad=True)
    (x * 1j).real.sum().backward()
    assert x.grad.tolist() == [-1j]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: torch.tensor([True]) - 1, "sub: Subtraction, the `-` operator, with a bool tensor"),
    (lambda: -torch.tensor([True]), "neg: not implemented for torch.bool"),
    (lambda: torch.tensor([2, 3]) ** -1, "pow: Integers to negative integer powers"),
    (lambda: torch.tensor([1.0]) & 1, "bitwise_and: operands must be integers or bools"),
    (lambda: torch.add(torch.tensor([1]), 2, alpha=1.5), "add: For integral input tensors"),
    (lambda: torch.tensor([1j]) < 1, "lt: not implemented for torch.complex64"),
    (lambda: torch.ones(2) + torch.ones(3), "add: sizes must match or be 1 at dimension 0"),
])
def test_refusals_are_runtime_errors(call, message):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_functions_need_tensors():
    with pytest.raises(TypeError, match="exp: input must be Tensor; got input=float"):
        torch.exp(1.0)
    with pytest.raises(TypeError):
        torch.tensor([1.0]) + "1"
    assert (torch.tensor([1.0]) == "1") is False

"""Comparisons, logic and bits under PyTorch's names."""

from __future__ import annotations

from flambeau.ops import bitwise, comparison
from flambeau.tensor.forms import binary, unary

eq = binary(comparison.eq, "input == other.")
ne = binary(comparison.ne, "input != other.", aliases=("not_equal",))
lt = binary(comparison.lt, "input < other.", aliases=("less",))
le = binary(comparison.le, "input <= other.", aliases=("less_equal",))
gt = binary(comparison.gt, "input > other.", aliases=("greater",))
ge = binary(comparison.ge, "input >= other.", aliases=("greater_equal",))

logical_and = binary(comparison.logical_and, "Both are nonzero.")
logical_or = binary(comparison.logical_or, "At least one is nonzero.")
logical_xor = binary(comparison.logical_xor, "Exactly one is nonzero.")
logical_not = unary(comparison.logical_not, "It is zero.")

isnan = unary(comparison.isnan, "Is it NaN?", inplace=False, out=False)
isinf = unary(comparison.isinf, "Is it infinite?", inplace=False, out=False)
isfinite = unary(comparison.isfinite, "Is it finite?", inplace=False, out=False)
signbit = unary(comparison.signbit, "Is the sign bit set?", inplace=False)

bitwise_and = binary(bitwise.bitwise_and, "Bitwise and.", number_first=True)
bitwise_or = binary(bitwise.bitwise_or, "Bitwise or.", number_first=True)
bitwise_xor = binary(bitwise.bitwise_xor, "Bitwise exclusive or.", number_first=True)
bitwise_not = unary(bitwise.bitwise_not, "Bitwise complement; `not` of bools.")
bitwise_left_shift = binary(bitwise.bitwise_left_shift, "input << other.", number_first=True)
bitwise_right_shift = binary(bitwise.bitwise_right_shift, "input >> other.", number_first=True)

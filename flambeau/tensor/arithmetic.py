"""Addition, multiplication, division and powers under PyTorch's names and operators."""

from __future__ import annotations

from flambeau.core import context
from flambeau.core import dtype as dtypes
from flambeau.core.dtype import BOOL, FLOAT, INTEGER
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import ArgumentError, DtypeError, OpError, UnsupportedError, complaint
from flambeau.ops import fused, pointwise
from flambeau.tensor.forms import NOTHING, binary, number_or_tensor, tensor_argument, unary
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


def is_one(number) -> bool:
    """Whether nothing is to be multiplied; of a number that changes from call to call nobody knows,
    and its class is another one."""
    return number.__class__ in (int, float) and number == 1


def scaled(op: str, x, other, alpha):
    """alpha * other, after PyTorch's checks of alpha."""
    if is_one(alpha):
        return other
    category = x.dtype.category if isinstance(x, Tensor) else other.dtype.category
    if category == BOOL and isinstance(other, Tensor):
        category = other.dtype.category
    if alpha.__class__ is bool and category != BOOL:
        raise OpError(complaint(op, "Boolean alpha only supported for Boolean results",
                                dict(alpha=alpha)))
    if isinstance(alpha, float) and category <= INTEGER:
        raise OpError(complaint(op, "For integral input tensors, argument alpha must not be a "
                                "floating point number", dict(alpha=alpha)))
    if not isinstance(other, Tensor):
        return other * alpha
    return pointwise.mul(other, alpha)


def is_float_pair(x, y) -> bool:
    """Both tensors of one floating dtype: a scaled sum of them is a single kernel."""
    return isinstance(y, Tensor) and x._spec.dtype.category == FLOAT and (
        y._spec.dtype is x._spec.dtype)


def add_(self, other, *, alpha=1):
    """self <- self + alpha * other."""
    if not is_one(alpha) and is_float_pair(self, other):
        return context.bind_inplace(fused.addcmul, self, (self, other, 1.0, alpha), NOTHING)
    return context.bind_inplace(pointwise.add, self, (self, scaled(
        "add_", self, number_or_tensor("add_", other), alpha)), NOTHING)


@public(inplace=add_)
def add(input, other, *, alpha=1):
    """input + alpha * other."""
    other = number_or_tensor("add", other)
    return pointwise.add(number_or_tensor("add", input, "input"),
                         scaled("add", input, other, alpha))


def check_subtraction(x, y) -> None:
    """`-` is not defined on bools."""
    if any(v.dtype.category == BOOL if isinstance(v, Tensor) else v.__class__ is bool
           for v in (x, y)):
        raise DtypeError(complaint("sub", "Subtraction, the `-` operator, with a bool tensor is "
                                   "not supported", None, "To invert a mask, use the `~` or "
                                   "`logical_not()` operator instead."))


def sub_(self, other, *, alpha=1):
    """self <- self - alpha * other."""
    check_subtraction(self, other)
    return context.bind_inplace(pointwise.sub, self, (self, scaled(
        "sub_", self, number_or_tensor("sub_", other), alpha)), NOTHING)


@public(inplace=sub_, aliases=("subtract",))
def sub(input, other, *, alpha=1):
    """input - alpha * other."""
    other = number_or_tensor("sub", other)
    check_subtraction(input, other)
    return pointwise.sub(number_or_tensor("sub", input, "input"),
                         scaled("sub", input, other, alpha))


@public(method=False)
def rsub(input, other, *, alpha=1):
    """other - alpha * input."""
    tensor_argument("rsub", input)
    return sub(other, input, alpha=alpha)


mul = binary(pointwise.mul, "input * other.", number_first=True, aliases=("multiply",))

DIVISIONS = {None: pointwise.div, "floor": pointwise.floor_divide,
             "trunc": pointwise.trunc_divide}


def division(op: str, rounding_mode):
    found = DIVISIONS.get(rounding_mode)
    if found is None:
        raise OpError(complaint(op, "div expected rounding_mode to be one of None, 'trunc', or "
                                "'floor'", dict(rounding_mode=repr(rounding_mode))))
    return found


def div_(self, other, *, rounding_mode=None):
    """self <- self / other, rounded as `rounding_mode` says."""
    return context.bind_inplace(division("div_", rounding_mode), self,
                                (self, number_or_tensor("div_", other)), NOTHING)


@public(inplace=div_, aliases=("divide",))
def div(input, other, *, rounding_mode=None):
    """input / other; rounding_mode "floor" or "trunc" keeps integers integral."""
    return division("div", rounding_mode)(number_or_tensor("div", input, "input"),
                                          number_or_tensor("div", other))


true_divide = binary(pointwise.div, "input / other.", name="true_divide", number_first=True)
floor_divide = binary(pointwise.floor_divide, "floor(input / other).", number_first=True)
remainder = binary(pointwise.remainder, "input modulo other, with the sign of `other`.",
                   number_first=True)
fmod = binary(pointwise.fmod, "input modulo other, with the sign of `input`.")
neg = unary(pointwise.neg, "-input.", aliases=("negative",))
reciprocal = unary(pointwise.reciprocal, "1 / input.")


def square_(self):
    """self <- self * self."""
    return context.bind_inplace(pointwise.square, self, (self,), NOTHING)


@public(inplace=square_, inplace_function=True)
def square(input):
    """input * input; bools become int64."""
    x = tensor_argument("square", input)
    return pointwise.square(x if x.dtype.category > BOOL else x.to(dtypes.int64))


@public
def positive(input):
    """input."""
    if input.dtype.category == BOOL:
        raise DtypeError(complaint("positive", "The `+` operator, on a bool tensor is not "
                                   "supported"))
    return input


# Powers --------------------------------------------------------------------------------------


def check_fits(op: str, value: int, d: DType) -> None:
    limits = dtypes.iinfo(d)
    if not limits.min <= value <= limits.max:
        raise OpError(complaint(op, f"value cannot be converted to type {d} without overflow",
                                dict(value=value)))


def check_power(x, y) -> None:
    """Refuse two numbers, two bools, and integers to a negative number."""
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        raise ArgumentError(complaint("pow", "input must be Tensor", dict(input=type(x).__name__)))
    if y.__class__ in (int, bool) and y < 0 and isinstance(x, Tensor) and (
            x.dtype.category <= INTEGER):
        raise OpError(complaint("pow", "Integers to negative integer powers are not allowed",
                                dict(exponent=y), "Convert the base to a floating dtype."))
    if y.__class__ is int and isinstance(x, Tensor) and x.dtype.category == INTEGER:
        check_fits("pow", y, x.dtype)
    kinds = [v.dtype.category if isinstance(v, Tensor) else
             BOOL if v.__class__ is bool else INTEGER for v in (x, y)]
    if kinds == [BOOL, BOOL]:
        raise UnsupportedError(complaint("pow", "bool tensors have no powers", dict(
            base=getattr(x, "dtype", x), exponent=getattr(y, "dtype", y))))


# Exponents for which there is something faster than the general power of a float.
FAST_POWERS = {2: pointwise.square, 0.5: pointwise.sqrt, -0.5: pointwise.rsqrt,
               -1: pointwise.reciprocal}


def fast_power(x, y):
    """A primitive of one operand that computes x ** y, or None."""
    if y.__class__ in (int, float) and isinstance(x, Tensor) and x._spec.dtype.category >= FLOAT:
        return FAST_POWERS.get(y)
    return None


def power(x, y):
    """x ** y of checked operands."""
    fast = fast_power(x, y)
    return context.bind(fast, (x,), NOTHING) if fast else context.bind(
        pointwise.pow, (x, y), NOTHING)


def pow_(self, exponent):
    """self <- self ** exponent."""
    exponent = number_or_tensor("pow_", exponent, "exponent")
    check_power(self, exponent)
    fast = fast_power(self, exponent)
    if fast:
        return context.bind_inplace(fast, self, (self,), NOTHING)
    return context.bind_inplace(pointwise.pow, self, (self, exponent), NOTHING)


@public(inplace=pow_)
def pow(input, exponent):
    """input ** exponent; integers wrap, and a negative integer exponent gives 0, 1 or -1."""
    exponent = number_or_tensor("pow", exponent, "exponent")
    check_power(input, exponent)
    return power(number_or_tensor("pow", input, "input"), exponent)


def widened(v):
    """A number or tensor in float64, or complex128 where it is complex."""
    if not isinstance(v, Tensor):
        return v if isinstance(v, complex) else float(v)
    return v.to(dtypes.complex128 if v.dtype.is_complex else dtypes.float64)


def float_power_(self, exponent):
    """self <- self ** exponent; self must have the dtype of the result."""
    result = float_power(self, exponent)
    if result.dtype is not self.dtype:
        raise DtypeError(complaint("float_power_", "the base must have the dtype of the result",
                                   dict(base=self.dtype, result=result.dtype)))
    return pow_(self, widened(exponent))


@public(inplace=float_power_)
def float_power(input, exponent):
    """input ** exponent in float64 or complex128."""
    input, exponent = widened(input), widened(exponent)
    if exponent.__class__ is complex and isinstance(input, Tensor):
        input = input.to(dtypes.complex128)
    return pow(input, exponent)


# Fused forms ---------------------------------------------------------------------------------


def fused_forms(primitive, doc: str):
    """`name(input, tensor1, tensor2, *, value=1)` and its in-place form."""
    name = primitive.name

    def operands(x, tensor1, tensor2, value):
        for label, t in (("input", x), ("tensor1", tensor1), ("tensor2", tensor2)):
            tensor_argument(name, t, label)
        if primitive is fused.addcdiv and all(t.dtype.category <= INTEGER
                                              for t in (tensor1, tensor2)):
            raise OpError(complaint(name, "Integer division with addcdiv is no longer supported",
                                    None, "Convert the operands to a floating dtype."))
        if isinstance(value, float) and all(t.dtype.category <= INTEGER
                                            for t in (x, tensor1, tensor2)):
            raise OpError(complaint(name, "value must not be a float for integer tensors",
                                    dict(value=value)))
        return x, tensor1, tensor2, value

    def in_place(self, tensor1, tensor2, *, value=1):
        return context.bind_inplace(primitive, self, operands(self, tensor1, tensor2, value),
                                    NOTHING)

    def function(input, tensor1, tensor2, *, value=1):
        return context.bind(primitive, operands(input, tensor1, tensor2, value), NOTHING)

    in_place.__doc__ = function.__doc__ = doc
    function.__name__ = name
    return public(function, name=name, inplace=in_place)


addcmul = fused_forms(fused.addcmul, "input + value * tensor1 * tensor2.")
addcdiv = fused_forms(fused.addcdiv, "input + value * tensor1 / tensor2.")


def check_lerp(x, end, weight) -> None:
    tensor_argument("lerp", end, "end")
    for label, t in (("end", end), ("weight", weight)):
        if isinstance(t, Tensor) and t.dtype is not x.dtype and not (
                label == "weight" and t.ndim == 0 and t.dtype.category >= FLOAT):
            raise DtypeError(complaint("lerp", f"expected dtype {x.dtype} for `{label}` but got "
                                       f"dtype {t.dtype}"))


def lerp_(self, end, weight):
    """self <- self + weight * (end - self)."""
    check_lerp(self, end, weight)
    return context.bind_inplace(fused.lerp, self, (self, end, weight), NOTHING)


@public(inplace=lerp_)
def lerp(input, end, weight):
    """input + weight * (end - input)."""
    check_lerp(input, end, weight)
    return fused.lerp(input, end, weight)

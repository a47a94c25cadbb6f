"""Element types and PyTorch's type promotion.

A dtype knows its NumPy counterpart; those that NumPy lacks (bfloat16, float8) come from
`ml_dtypes`, which is imported when such a dtype is first given memory.
"""

from __future__ import annotations

import builtins

import numpy as np

from flambeau.core.errors import ArgumentError, DtypeError, complaint

BOOL, INTEGER, FLOAT, COMPLEX = range(4)  # the categories of promotion, lowest first


class dtype:
    """The type of a tensor's elements. Instances are singletons: compare with `is` or `==`."""

    __slots__ = ("name", "itemsize", "category", "is_signed", "_numpy")

    def __init__(self, name: str, itemsize: int, category: int, is_signed: builtins.bool,
                 numpy_name: str | None):
        self.name = name
        self.itemsize = itemsize  # bytes
        self.category = category
        self.is_signed = is_signed
        self._numpy = np.dtype(numpy_name) if numpy_name else None

    @property
    def is_floating_point(self) -> builtins.bool:
        return self.category == FLOAT

    @property
    def is_complex(self) -> builtins.bool:
        return self.category == COMPLEX

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype of the same memory layout."""
        if self._numpy is None:
            import ml_dtypes

            self._numpy = np.dtype(getattr(ml_dtypes, self.name))
        return self._numpy

    @property
    def is_narrow_float(self) -> builtins.bool:
        """A float of 16 bits or fewer: arithmetic on it is done in float32."""
        return self.category == FLOAT and self.itemsize < 4

    @property
    def wide(self) -> dtype:
        """The dtype in which arithmetic on it is done: float32 for narrow floats, else itself."""
        return float32 if self.is_narrow_float else self

    def to_real(self) -> dtype:
        return {complex64: float32, complex128: float64, complex32: float16}.get(self, self)

    def to_complex(self) -> dtype:
        return {float16: complex32, float64: complex128, float32: complex64,
                bfloat16: complex64}.get(self, self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return (by_name, (self.name,))

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: dict) -> dtype:
        return self


float64 = dtype("float64", 8, FLOAT, True, "f8")
float32 = dtype("float32", 4, FLOAT, True, "f4")
float16 = dtype("float16", 2, FLOAT, True, "f2")
bfloat16 = dtype("bfloat16", 2, FLOAT, True, None)
float8_e4m3fn = dtype("float8_e4m3fn", 1, FLOAT, True, None)
float8_e5m2 = dtype("float8_e5m2", 1, FLOAT, True, None)
complex32 = dtype("complex32", 4, COMPLEX, True, "V4")
complex64 = dtype("complex64", 8, COMPLEX, True, "c8")
complex128 = dtype("complex128", 16, COMPLEX, True, "c16")
int8 = dtype("int8", 1, INTEGER, True, "i1")
int16 = dtype("int16", 2, INTEGER, True, "i2")
int32 = dtype("int32", 4, INTEGER, True, "i4")
int64 = dtype("int64", 8, INTEGER, True, "i8")
uint8 = dtype("uint8", 1, INTEGER, False, "u1")
uint16 = dtype("uint16", 2, INTEGER, False, "u2")
uint32 = dtype("uint32", 4, INTEGER, False, "u4")
uint64 = dtype("uint64", 8, INTEGER, False, "u8")
bool = dtype("bool", 1, BOOL, False, "?")

ALL = (float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, complex32, complex64,
       complex128, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool)
_BY_NAME = {d.name: d for d in ALL}
ALIASES = dict(float=float32, double=float64, half=float16, short=int16, int=int32, long=int64,
               chalf=complex32, cfloat=complex64, cdouble=complex128)

_default = float32


def by_name(name: str) -> dtype:
    return _BY_NAME[name]


def default_dtype() -> dtype:
    """The dtype of new floating-point tensors."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of new floating-point tensors."""
    global _default
    if not isinstance(d, dtype) or d.category != FLOAT or d.itemsize < 2:
        raise ArgumentError(complaint("set_default_dtype", "d must be a floating-point dtype",
                                      dict(d=d), "Use float32, float64, float16 or bfloat16."))
    _default = d


def from_numpy_dtype(d: np.dtype) -> dtype:
    """The dtype of an ndarray's memory."""
    found = _BY_NAME.get(d.name)
    if found is None or not d.isnative:
        raise ArgumentError(complaint(
            "from_numpy", "the array must have a numeric dtype in native byte order", dict(dtype=d),
            "Convert it first, for example with `array.astype('float32')`."))
    return found


def _promote_integers(a: dtype, b: dtype) -> dtype:
    """Of one sign: the wider. Of two: the narrowest signed type that holds both."""
    if a.is_signed == b.is_signed:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if unsigned is not uint8:
        raise DtypeError(complaint(
            "promote_types", "no promotion is defined between these integer types",
            dict(a=a, b=b), "Convert one of them with `.to(dtype)`."))
    return signed if signed.itemsize > 1 else int16


def _promote_floats(a: dtype, b: dtype) -> dtype:
    for d in (a, b):
        if d.itemsize == 1:
            raise DtypeError(complaint("promote_types", "float8 types do not promote",
                                       dict(a=a, b=b), "Convert with `.to(torch.float32)`."))
    if a.itemsize == b.itemsize:
        return float32  # float16 with bfloat16
    return a if a.itemsize > b.itemsize else b


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda d: d.category)
    if low.category != high.category:
        if high.category == COMPLEX and low.category == FLOAT:
            return complex128 if float64 in (low, high.to_real()) else (
                complex32 if high is complex32 and low is float16 else complex64)
        return high
    if a.category == INTEGER:
        return _promote_integers(a, b)
    if a.category == FLOAT:
        return _promote_floats(a, b)
    return a if a.itemsize > b.itemsize else b


_PROMOTED: dict[tuple[dtype, dtype], dtype] = {}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype, no smaller than either's category, that both may be converted to."""
    found = _PROMOTED.get((type1, type2))
    if found is None:
        found = _PROMOTED[type1, type2] = _promote(type1, type2)
    return found


def can_cast(source: dtype, target: dtype) -> builtins.bool:
    """May a result of dtype `source` be written to `target` (in place, `out=`)?"""
    return source.category <= target.category


def of_number(value: object) -> dtype:
    """The dtype that a Python number has as a tensor of its own."""
    if isinstance(value, builtins.bool):
        return bool
    if isinstance(value, builtins.int):
        return int64
    if isinstance(value, builtins.float):
        return _default
    if isinstance(value, builtins.complex):
        return _default.to_complex()
    raise ArgumentError(complaint("dtype", "a bool, int, float or complex number is needed",
                                  dict(value=repr(value))))


class finfo:
    """Limits of a floating-point dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    __slots__ = ("dtype", "bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution")

    def __init__(self, type: dtype | None = None):
        kind = type or _default
        if not isinstance(kind, dtype) or kind.category not in (FLOAT, COMPLEX):
            raise ArgumentError(complaint("finfo", "dtype must be floating point",
                                          dict(dtype=kind), "Use iinfo for integers."))
        kind = kind.to_real()
        if kind.numpy.kind == "f":
            info = np.finfo(kind.numpy)
        else:
            import ml_dtypes

            info = ml_dtypes.finfo(kind.numpy)
        self.dtype = kind.name
        self.bits = kind.itemsize * 8
        self.eps, self.max, self.min = float_of(info.eps), float_of(info.max), float_of(info.min)
        self.tiny = self.smallest_normal = float_of(info.smallest_normal)
        self.resolution = float_of(info.resolution)

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, "
                f"tiny={self.tiny:g}, dtype={self.dtype})")


float_of = builtins.float


class iinfo:
    """Limits of an integer dtype: bits, min, max."""

    __slots__ = ("dtype", "bits", "min", "max")

    def __init__(self, type: dtype):
        if not isinstance(type, dtype) or type.category != INTEGER:
            raise ArgumentError(complaint("iinfo", "dtype must be an integer type",
                                          dict(dtype=type), "Use finfo for floats."))
        info = np.iinfo(type.numpy)
        self.dtype, self.bits = type.name, type.itemsize * 8
        self.min, self.max = builtins.int(info.min), builtins.int(info.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def of_python_type(kind: type) -> dtype:
    """The dtype that `dtype=float`, `int`, `bool` or `complex` means."""
    found = {builtins.float: float64, builtins.int: int64, builtins.bool: bool,
             builtins.complex: complex128}.get(kind)
    if found is None:
        raise ArgumentError(complaint("dtype", "dtype must be a dtype", {"got": kind.__name__},
                                      "Use a name such as torch.float32."))
    return found

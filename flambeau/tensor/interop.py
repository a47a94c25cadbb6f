"""To and from NumPy and Python values."""

from __future__ import annotations

import itertools

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.device import of as device_of
from flambeau.core.errors import (
    ArgumentError,
    AutogradError,
    OpError,
    UnsupportedError,
    ValueRangeError,
    complaint,
)
from flambeau.core.spec import spec
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor, alias, from_array, make

reads = itertools.count()
"""Goes on whenever Python gets to see values of a tensor."""


@public(method=False, out=False)
def from_numpy(ndarray):
    """A tensor on the array's own memory: writes are seen on both sides."""
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentError(complaint("from_numpy", "expected np.ndarray",
                                      dict(got=type(ndarray).__name__)))
    return from_array(ndarray)


@public(function=False, out=False)
def numpy(self, *, force=False):
    """An ndarray on the tensor's memory."""
    next(reads)
    if force:
        return alias(self)._array
    if self._requires_grad:
        raise AutogradError(complaint(
            "numpy", "Can't call numpy() on Tensor that requires grad", None,
            "Use tensor.detach().numpy() instead."))
    if self._array is None:
        raise ArgumentError(complaint("numpy", "the tensor must have memory on the CPU",
                                      dict(device=self.device)))
    if self.dtype is dtypes.bfloat16 or self.dtype.itemsize == 1 and self.dtype.is_floating_point:
        raise ArgumentError(complaint("numpy", "NumPy has no such dtype", dict(dtype=self.dtype),
                                      "Convert with .float() first."))
    return alias(self)._array.view()


@public(function=False, out=False)
def item(self):
    """The only element as a Python number."""
    if self._spec.numel != 1:
        raise OpError(complaint("item", "a Tensor with exactly one element is needed to convert "
                                "to Scalar", dict(numel=self._spec.numel)))
    if self._array is None:
        raise OpError(complaint("item", "the tensor must have memory", dict(device=self.device)))
    next(reads)
    value = self._array.item()
    return float(value) if self.dtype.is_floating_point else value


@public(function=False, out=False)
def tolist(self):
    """Nested lists of Python numbers; a number for a zero-dimensional tensor."""
    next(reads)
    array = self._array
    if array is None:
        raise UnsupportedError(complaint("tolist", "Cannot copy out of meta tensor; no data!"))
    if self.dtype.is_floating_point and self.dtype._numpy is None or array.dtype.kind == "V":
        array = array.astype(np.float32)
    return array.tolist()


@public(method=False, out=False)
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new tensor with a copy of `data`: numbers, nested sequences, arrays or tensors."""
    where = device_of(device)
    array = array_of(data, dtype)
    kind = dtypes.from_numpy_dtype(array.dtype) if dtype is None else dtype
    of = spec(kind, array.shape, None, where)
    if where.type == "meta":
        t = make(None, of)
    else:
        t = make(np.array(array, dtype=kind.numpy, order="C"), of)
    if requires_grad:
        t.requires_grad_()
    return t


def array_of(data, dtype) -> np.ndarray:
    """An ndarray with PyTorch's default dtypes: Python floats are of the default dtype."""
    if isinstance(data, Tensor):
        return data.detach()._array
    if isinstance(data, (np.ndarray, np.generic)):
        return np.asarray(data)
    return nested_array(data, dtype)


def undetermined(data) -> Exception:
    """Why these are no numbers: TypeError for text and ragged data, as PyTorch has it."""
    inner = data
    while isinstance(inner, (list, tuple)) and inner:
        inner = inner[0]
    if isinstance(inner, int):
        return ValueRangeError(complaint("tensor", "integers must fit into 64 bits",
                                         dict(first=inner)))
    if isinstance(inner, (str, bytes)):
        return ArgumentError(complaint("tensor", "data must be numbers",
                                       dict(data=type(inner).__name__)))
    return OpError(complaint("tensor", "Could not infer dtype: data must be numbers",
                             dict(data=type(inner).__name__)))


def check_range(array: np.ndarray, kind) -> None:
    """Python numbers that an integer dtype cannot hold are refused; negative ones wrap in an
    unsigned dtype, as in PyTorch."""
    if kind.category != dtypes.INTEGER or array.dtype.kind not in "iuf" or not array.size:
        return
    limits = np.iinfo(kind.numpy)
    low = -limits.max if limits.min == 0 else limits.min
    least, most = array.min(), array.max()
    if least < low or most > limits.max:
        raise OpError(complaint("tensor", f"value cannot be converted to {kind} without overflow",
                                dict(value=least if least < low else most)))


def nested_array(data, dtype) -> np.ndarray:
    if isinstance(data, (list, tuple)) and data and any(isinstance(x, Tensor) for x in data):
        data = [x.tolist() if isinstance(x, Tensor) else x for x in data]
    try:
        array = np.array(data)
    except ValueError:
        raise ValueRangeError(complaint(
            "tensor", "nested sequences must be of equal lengths", None,
            "Pad the rows, or keep a list of tensors.")) from None
    if array.dtype.kind in "OUSM":
        if array.dtype.kind == "O" and dtype is not None:
            return np.array(data, dtype=dtype.numpy)
        raise undetermined(data)
    if dtype is not None:
        check_range(array, dtype)
        return array
    if array.size == 0 or array.dtype.kind == "f":
        return array.astype(dtypes.default_dtype().numpy)
    if array.dtype.kind == "c":
        return array.astype(dtypes.default_dtype().to_complex().numpy)
    return array




@public(method=False, out=False)
def as_tensor(data, dtype=None, device=None):
    """`data` as a tensor, without a copy where its memory serves."""
    if isinstance(data, Tensor):
        return data.to(device=device, dtype=dtype)
    if isinstance(data, np.ndarray) and data.dtype.isnative and data.dtype.kind in "fiubc" and (
            all(s >= 0 for s in data.strides)):
        return from_array(data).to(device=device, dtype=dtype)
    return tensor(data, dtype=dtype, device=device)


@public(method=False, out=False)
def scalar_tensor(s, *, dtype=None, layout=None, device=None, requires_grad=False,
                  pin_memory=False):
    """A zero-dimensional tensor of the default dtype."""
    return tensor(s, dtype=dtype or dtypes.default_dtype(), device=device,
                  requires_grad=requires_grad)


def array(self: Tensor, dtype=None, copy=None) -> np.ndarray:
    """What `np.asarray(tensor)` is: the tensor's own memory where its dtype serves."""
    found = self.numpy()
    if dtype is not None and found.dtype != dtype:
        if copy is False:
            raise ValueRangeError(complaint("__array__", "a conversion needs a copy", dict(
                dtype=self.dtype, wanted=dtype), "Leave out copy=False."))
        return found.astype(dtype)
    return found.copy() if copy else found


def array_wrap(self: Tensor, array: np.ndarray, context=None, return_scalar=False) -> Tensor:
    """The result of a NumPy function of tensors, as a tensor."""
    return from_array(array.astype(np.uint8) if array.dtype == bool else array)


Tensor.__array__ = array
Tensor.__array_wrap__ = array_wrap
Tensor.__array_priority__ = 1000  # NumPy leaves `array + tensor` to the tensor

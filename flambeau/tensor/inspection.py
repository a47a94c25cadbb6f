"""Asking a tensor what it is, and the process-wide defaults."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.device import CPU
from flambeau.core.device import device as Device
from flambeau.core.dtype import can_cast as can_cast_types
from flambeau.core.spec import WEAK
from flambeau.ops.promotion import result_dtype
from flambeau.tensor import layout
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor, storage_of


@public(out=False)
def is_complex(input):
    """Is the dtype complex?"""
    return input.dtype.is_complex


@public(out=False)
def is_floating_point(input):
    """Is the dtype a float?"""
    return input.dtype.is_floating_point


@public(out=False)
def is_signed(input):
    """Can the dtype hold negative numbers?"""
    return input.dtype.is_signed


@public(out=False)
def is_inference(input):
    """Was the tensor made in inference mode? flambeau does not mark tensors."""
    return False


@public(method=False, out=False)
def is_tensor(obj):
    """Is it a Tensor?"""
    return isinstance(obj, Tensor)


@public(method=False, out=False)
def is_storage(obj):
    """Is it a storage?"""
    return type(obj).__name__ in ("UntypedStorage", "TypedStorage")


@public(method=False, out=False)
def numel(input):
    """Number of elements."""
    return input.numel()


@public(out=False)
def is_same_size(input, other):
    """Do both have one shape?"""
    return input.shape == other.shape


@public(out=False)
def is_nonzero(input):
    """The truth of a one-element tensor."""
    return bool(input)


@public(method=False, out=False)
def result_type(tensor1, tensor2):
    """The dtype that arithmetic on the two would have."""
    return result_dtype(*(t._spec if isinstance(t, Tensor) else WEAK[type(t)]
                          for t in (tensor1, tensor2)))


def can_cast(from_, to) -> bool:
    """May a value of the first dtype be written to the second in place?"""
    return can_cast_types(from_, to)


def get_default_dtype():
    """The dtype of new floating-point tensors."""
    return dtypes.default_dtype()


def set_default_dtype(d) -> None:
    """Set the dtype of new floating-point tensors."""
    dtypes.set_default_dtype(d)


def set_default_tensor_type(t) -> None:
    """The old way to set the default dtype."""
    dtypes.set_default_dtype(getattr(t, "dtype", t))


def get_default_device() -> Device:
    """The device of new tensors."""
    return Device.default or CPU


def set_default_device(device) -> None:
    """Set the device of new tensors."""
    Device.default = None if device is None else Device(device)


Tensor.layout = property(lambda self: layout.strided)
Tensor.is_cpu = property(lambda self: self.device.type == "cpu")
Tensor.is_cuda = property(lambda self: self.device.type == "cuda")
Tensor.is_meta = property(lambda self: self.device.type == "meta")
for _kind in ("sparse", "sparse_csr", "quantized", "mps", "xla", "xpu", "mkldnn", "nested",
              "vulkan", "ipu", "maia", "mtia"):
    setattr(Tensor, f"is_{_kind}", property(lambda self: False))


def data_ptr(self: Tensor) -> int:
    """Address of the first element; 0 without memory."""
    if self._array is None or not self._array.size:
        return 0
    return self._array.__array_interface__["data"][0]


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Do both show the same memory in the same way?"""
    return storage_of(self) is storage_of(tensor) and self._spec is tensor._spec and (
        self._offset == tensor._offset)


def get_device(self: Tensor) -> int:
    """The index of the device; -1 for the CPU."""
    return -1 if self.device.index is None else self.device.index


Tensor.data_ptr = data_ptr
Tensor.is_set_to = is_set_to
Tensor.get_device = get_device
Tensor._is_view = lambda self: self._base is not None
Tensor.is_pinned = lambda self, device=None: False
Tensor.pin_memory = lambda self, device=None: self
Tensor.dense_dim = Tensor.dim
Tensor.ndimension = Tensor.dim
Tensor.name = property(lambda self: None)
Tensor.volatile = property(lambda self: False)
Tensor.grad_dtype = property(lambda self: self.dtype)

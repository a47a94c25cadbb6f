"""Changing dtype, device or memory layout; copies."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.device import META
from flambeau.core.device import device as Device
from flambeau.core.device import of as device_of
from flambeau.core.dtype import dtype as DType
from flambeau.core.dtype import of_python_type
from flambeau.core.errors import ArgumentError, DeviceError, NoDeviceError, ShapeError, complaint
from flambeau.core.spec import channels_last_strides, contiguous_strides, spec
from flambeau.ops.casts import convert, copy
from flambeau.tensor.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    preserve_format,
)
from flambeau.tensor.layout import (
    memory_format as MemoryFormat,
)
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor, make


def strides_for(x: Tensor, memory_format) -> tuple | None:
    """Strides of a copy in `memory_format`; None keeps the order of `x`."""
    if memory_format is None or memory_format is preserve_format:
        return None
    if memory_format is contiguous_format:
        return contiguous_strides(x.shape)
    rank = {channels_last: 4, channels_last_3d: 5}[memory_format]
    if x.ndim != rank:
        raise ShapeError(complaint("memory_format", f"required rank {rank} tensor to use "
                                   f"{memory_format} format", dict(shape=list(x.shape))))
    return channels_last_strides(x.shape)


def has_format(x: Tensor, memory_format) -> bool:
    if memory_format is contiguous_format or memory_format is preserve_format:
        return x._spec.is_contiguous
    wanted = strides_for(x, memory_format) if x.ndim in (4, 5) else ()
    return wanted != () and all(n == 1 or a == b for n, a, b in
                                zip(x.shape, x._spec.strides, wanted))


@public(function=False, out=False)
def is_contiguous(self, memory_format=contiguous_format):
    """Are the elements in memory in the order of `memory_format`, without gaps?"""
    return has_format(self, memory_format)


@public(function=False, out=False)
def contiguous(self, memory_format=contiguous_format):
    """Itself if it is laid out in `memory_format`, else a copy that is."""
    if has_format(self, memory_format):
        return self
    return copy(self, strides=strides_for(self, memory_format))


@public(out=False)
def clone(input, *, memory_format=preserve_format):
    """A copy, recorded by autograd."""
    return copy(input, strides=strides_for(input, memory_format))


def parsed_to(args: tuple, kwargs: dict) -> dict:
    """`to(dtype)`, `to(device, dtype)`, `to(other)` as keywords."""
    found = dict(kwargs)
    names = ["non_blocking", "copy"]
    for a in args:
        if isinstance(a, DType):
            found["dtype"] = a
        elif a.__class__ is type:
            found["dtype"] = of_python_type(a)
        elif isinstance(a, (Device, str)) or (isinstance(a, int) and not isinstance(a, bool)):
            found["device"] = a
        elif isinstance(a, Tensor):
            found["dtype"], found["device"] = a.dtype, a.device
        elif isinstance(a, bool):
            found[names.pop(0)] = a
        elif isinstance(a, MemoryFormat):
            found["memory_format"] = a
        elif a is not None:
            raise ArgumentError(complaint("to", "arguments must be a dtype, device or tensor",
                                          dict(got=type(a).__name__)))
    if "other" in found:
        other = found.pop("other")
        found["dtype"], found["device"] = other.dtype, other.device
    return found


@public(function=False, out=False)
def to(self, *args, **kwargs):
    """Itself if nothing changes, else a converted copy."""
    wanted = parsed_to(args, kwargs)
    result = self
    where = wanted.get("device")
    if where is not None and device_of(where).type != self.device.type:
        result = moved(result, device_of(where))
    kind = wanted.get("dtype")
    if kind is not None and kind is not result.dtype:
        result = convert(result, dtype=kind)
    form = wanted.get("memory_format", preserve_format)
    if form is not preserve_format and not has_format(result, form):
        result = copy(result, strides=strides_for(result, form))
    if wanted.get("copy") and result is self:
        result = copy(result, strides=strides_for(self, form))
    return result


def moved(x: Tensor, where: Device) -> Tensor:
    if where.type == "meta":
        s = x._spec
        return make(None, spec(s.dtype, s.shape, s.strides, META))
    if x.device.type == "meta":
        raise DeviceError(complaint("to", "Cannot copy out of meta tensor; no data!", None,
                                    "Use to_empty() for modules, or create it on the device."))
    raise NoDeviceError(complaint("to", "the device must be present", dict(device=where),
                                "`flambeau doctor` says which devices are."))


def _cast_method(name: str, kind: DType):
    def cast(self, memory_format=preserve_format):
        return to(self, kind, memory_format=memory_format)

    cast.__name__, cast.__doc__ = name, f"self.to({kind})."
    return cast


for _name, _kind in [*dtypes.ALIASES.items(), ("bool", dtypes.bool), ("byte", dtypes.uint8),
                     ("char", dtypes.int8), ("bfloat16", dtypes.bfloat16)]:
    setattr(Tensor, _name, _cast_method(_name, _kind))


@public(function=False, out=False)
def cpu(self, memory_format=preserve_format):
    """self.to("cpu")."""
    return to(self, "cpu", memory_format=memory_format)


@public(function=False, out=False)
def type_as(self, other):
    """self.to(other.dtype)."""
    return to(self, other.dtype)


@public(function=False, out=False)
def copy_(self, src, non_blocking=False):
    """self <- src, broadcast and converted."""
    return copy.inplace(self, src)

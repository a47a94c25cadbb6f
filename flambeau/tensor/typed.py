"""The old constructors by dtype: `FloatTensor(2, 3)`, `LongTensor([1, 2])`.

They also serve in annotations, in `isinstance`, as an argument of `Tensor.type` and of
`set_default_tensor_type`.
"""

from __future__ import annotations

import typing
from typing import Any

from flambeau.core import dtype as dtypes
from flambeau.core.device import device as Device
from flambeau.core.dtype import dtype as DType
from flambeau.core.errors import ArgumentError, ValueRangeError, complaint
from flambeau.tensor.factories import filled
from flambeau.tensor.interop import tensor
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor, alias

WORDS = dict(Float=dtypes.float32, Double=dtypes.float64, Half=dtypes.float16,
             BFloat16=dtypes.bfloat16, Long=dtypes.int64, Int=dtypes.int32, Short=dtypes.int16,
             Char=dtypes.int8, Byte=dtypes.uint8, Bool=dtypes.bool,
             ComplexFloat=dtypes.complex64, ComplexDouble=dtypes.complex128)


class TypedTensor:
    """`torch.FloatTensor` and its like: tensors of one dtype on one kind of device."""

    def __init__(self, word: str, kind: DType, where: str = "cpu"):
        self.dtype, self.device_type = kind, where
        self.__module__ = "torch" if where == "cpu" else f"torch.{where}"
        self.__name__ = self.__qualname__ = f"{word}Tensor"

    def __call__(self, *args: Any, device: Any = None) -> Tensor:
        """Uninitialised memory for sizes, a copy for data, an alias for a tensor of the dtype."""
        if self.device_type != "cpu" or (device is not None and Device(device).type != "cpu"):
            raise ArgumentError(complaint(
                f"{self.__module__}.{self.__name__}", f"a {self.device_type} device must be "
                "present", {}, f"Use torch.{self.__name__}."))
        return construct(self, args)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype is self.dtype and (
            value.device.type == self.device_type)

    def __or__(self, other: Any) -> Any:
        return typing.Union[self, other]  # noqa: UP007  `self | other` would ask again

    def __ror__(self, other: Any) -> Any:
        return typing.Union[other, self]  # noqa: UP007

    def __repr__(self) -> str:
        return f"<class '{self.__module__}.{self.__name__}'>"

    def __reduce__(self) -> str:
        return self.__name__


def construct(kind: TypedTensor, args: tuple) -> Tensor:
    if len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].dtype is not kind.dtype:
            raise ArgumentError(complaint(kind.__name__, f"the tensor must be of {kind.dtype}",
                                          dict(dtype=args[0].dtype), "Use tensor.to(dtype)."))
        return alias(args[0])
    if len(args) == 1 and not hasattr(args[0], "__index__") and not hasattr(args[0], "numel"):
        data = args[0]
        storage = getattr(data, "_storage", None)
        if storage is not None:
            return filled((0,), 0, kind.dtype, None, False).set_(data)
        return tensor(data, dtype=kind.dtype)
    sizes = args[0] if len(args) == 1 and hasattr(args[0], "numel") else args or (0,)
    return filled(tuple(int(n) for n in sizes), 0, kind.dtype, "cpu", False)


TYPES = {f"{word}Tensor": TypedTensor(word, kind) for word, kind in WORDS.items()}
globals().update(TYPES)
CUDA_TYPES = {f"{word}Tensor": TypedTensor(word, kind, "cuda") for word, kind in WORDS.items()}
_WORD_OF = {kind: word for word, kind in WORDS.items()}


def type_name(t: Tensor) -> str:
    """`torch.FloatTensor`: PyTorch's old name of a dtype on a device."""
    package = "torch" if t.device.type == "cpu" else f"torch.{t.device.type}"
    return f"{package}.{_WORD_OF.get(t.dtype, str(t.dtype).removeprefix('torch.'))}Tensor"


@public(function=False, out=False)
def type(self, dtype=None, non_blocking=False, **kwargs):
    """The old name of its dtype; or the tensor, converted to a dtype, typed constructor or name."""
    if dtype is None:
        return type_name(self)
    if isinstance(dtype, str):
        package, _, leaf = dtype.rpartition(".")
        known = {"torch": TYPES, "torch.cuda": CUDA_TYPES}.get(package, {})
        if leaf not in known:
            raise ValueRangeError(complaint("type", "invalid type", dict(dtype=repr(dtype)),
                                            "Give a dtype such as torch.float32."))
        dtype = known[leaf]
    if isinstance(dtype, TypedTensor):
        return self.to(dtype.device_type, dtype.dtype)
    return self.to(dtype)

"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from flambeau.core.device import device
from flambeau.core.dtype import dtype
from flambeau.core.nearest import missing_name
from flambeau.core.spec import Size
from flambeau.tensor.layout import layout
from flambeau.tensor.storages import TypedStorage, UntypedStorage
from flambeau.tensor.symbolic import SymBool, SymFloat, SymInt
from flambeau.tensor.tensor import Tensor

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_dtype: TypeAlias = dtype
_device: TypeAlias = device
_layout: TypeAlias = layout
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_int, _float, _bool = builtins.int, builtins.float, builtins.bool

Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Number: TypeAlias = int | float | bool
BoolLikeType: TypeAlias = bool | SymBool
IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float | SymFloat
PySymType: TypeAlias = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)
Storage: TypeAlias = TypedStorage | UntypedStorage
DispatchKey: TypeAlias = Any

__getattr__ = missing_name(__name__)

"""How storages are named in a file: by PyTorch's storage classes, one for each older dtype.

Newer dtypes have no class of their own; their storages are `UntypedStorage`, counted in bytes, and
the tensors name the dtype.
"""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.dtype import dtype as DType


class StorageKind:
    """A storage class of PyTorch: only a name with a dtype, nothing to call."""

    __slots__ = ("module", "name", "dtype")

    def __init__(self, module: str, name: str, dtype: DType):
        self.module = module
        self.name = name
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"


_CLASSES = dict(
    Double="float64", Float="float32", Half="float16", BFloat16="bfloat16", Long="int64",
    Int="int32", Short="int16", Char="int8", Byte="uint8", Bool="bool",
    ComplexDouble="complex128", ComplexFloat="complex64",
)

TYPED = {name: StorageKind("torch", f"{prefix}Storage", dtypes.by_name(name))
         for prefix, name in _CLASSES.items()}
UNTYPED = StorageKind("torch.storage", "UntypedStorage", dtypes.uint8)

BY_NAME = {("torch", kind.name): kind for kind in TYPED.values()}
BY_NAME |= {("torch.cuda", kind.name): kind for kind in TYPED.values()}
BY_NAME |= {("torch.storage", "UntypedStorage"): UNTYPED, ("torch", "UntypedStorage"): UNTYPED}


def kind_of(dtype: DType) -> StorageKind:
    return TYPED.get(dtype.name, UNTYPED)

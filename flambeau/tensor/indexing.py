"""`x[...]` and `x[...] = value` with everything that Python and PyTorch allow as an index.

An index is read left to right into views (ints, slices, None, Ellipsis) and a list of index
tensors per dimension (integer and boolean tensors, arrays, lists). The views are taken first;
what remains is one gather or scatter.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from flambeau.core import context
from flambeau.core import dtype as dtypes
from flambeau.core.errors import ArgumentError, IndexOutOfRange, ValueRangeError, complaint
from flambeau.ops import views
from flambeau.ops.casts import convert, copy
from flambeau.ops.choice import where
from flambeau.ops.gathering import index as index_primitive
from flambeau.ops.gathering import index_put, nonzero_of
from flambeau.tensor.ensuring import has_values
from flambeau.tensor.interop import tensor
from flambeau.tensor.overrides import handle, switch
from flambeau.tensor.shaping import unsqueezed
from flambeau.tensor.tensor import Tensor, from_array


def getitem(self: Tensor, key) -> Tensor:
    """A view where the key has only ints, slices, None and Ellipsis; else a copy."""
    if switch.active:
        result = handle(getitem, (self, key), {})
        if result is not NotImplemented:
            return result
    if key.__class__ is int and self._spec.ndim:
        return select(self, 0, key)
    x, indices = viewed(self, key)
    if not indices:
        return (
            x
            if x is not self
            else views.view(self, shape=tuple(self.shape))
            if self._spec.is_contiguous
            else views.permute(self, dims=tuple(range(self.ndim)))
        )
    dims = tuple(sorted(indices))
    return index_primitive(x, *[indices[d] for d in dims], dims=dims)


def setitem(self: Tensor, key, value) -> None:
    """Write in place; the value broadcasts and is converted to this tensor's dtype."""
    if switch.active:
        result = handle(setitem, (self, key, value), {})
        if result is not NotImplemented:
            return
    if isinstance(value, (np.ndarray, np.generic, list, tuple)):
        value = tensor(value, dtype=self.dtype)
    if is_unknown_mask(key) and (not isinstance(value, Tensor) or value.numel() == 1):
        fill(self, key, value)
        return
    x, indices = viewed(self, key)
    if not isinstance(value, (Tensor, int, float, complex)):
        raise ArgumentError(
            complaint(
                "setitem",
                "the value must be a tensor or a number",
                dict(value=type(value).__name__),
            )
        )
    if not indices:
        context.bind_inplace(copy, x, (trimmed(value, x.ndim),), {})
        return
    dims = tuple(sorted(indices))
    if isinstance(value, Tensor) and value.dtype is not self.dtype:
        value = convert(value, dtype=self.dtype)
    context.bind_inplace(
        index_put, x, (x, value, *[indices[d] for d in dims]), dict(dims=dims, accumulate=False)
    )


def is_unknown_mask(key) -> bool:
    """A boolean mask in a graph: how many elements it picks is not known."""
    return (
        isinstance(key, Tensor)
        and key.dtype is dtypes.bool
        and key.ndim > 0
        and not (key._array is None or has_values(key))
    )


def fill(x: Tensor, mask: Tensor, value) -> None:
    """x <- value where the mask, which covers the leading dimensions, is true."""
    check_mask(x, 0, mask)
    if isinstance(value, Tensor):
        value = convert(value.reshape(()), dtype=x.dtype)
    else:
        value = tensor(value, dtype=x.dtype)
    mask = mask.reshape((*mask.shape, *(1,) * (x.ndim - mask.ndim)))
    context.bind_inplace(where, x, (mask, value, x), {})


def trimmed(value, rank: int):
    """Leading dimensions of size one beyond the target's rank do not count."""
    while isinstance(value, Tensor) and value.ndim > rank and value.shape[0] == 1:
        value = select(value, 0, 0)
    return value


def viewed(x: Tensor, key) -> tuple[Tensor, dict[int, Tensor]]:
    """Apply the view parts of `key`; return what remains as {dimension: int64 index tensor}."""
    parts = key_parts(x, key)
    indices: dict[int, Tensor] = {}
    dim = 0
    for part in parts:
        kind = part.__class__
        if part is None:
            x = unsqueezed(x, dim)
            dim += 1
        elif kind is slice:
            x = sliced(x, dim, part)
            dim += 1
        elif kind is int or isinstance(part, int):
            x = select(x, dim, part)
        elif part.ndim == 0 and part.dtype is dtypes.bool:
            x = unsqueezed(x, dim)
            indices[dim] = tensor([0] if part.item() else [], dtype=dtypes.int64)
            dim += 1
        elif part.dtype in (dtypes.bool, dtypes.uint8):
            for column in mask_columns(x, dim, part):
                indices[dim] = column
                dim += 1
        else:
            indices[dim] = part if part.dtype is dtypes.int64 else convert(part, dtype=dtypes.int64)
            dim += 1
    return x, indices


def key_parts(x: Tensor, key) -> list:
    """The key as a list of ints, slices, None and tensors, with Ellipsis written out."""
    if (
        isinstance(key, list)
        and len(key) < 32
        and any(isinstance(k, (slice, type(None), type(...), Tensor, list, tuple)) for k in key)
    ):
        key = tuple(key)  # as NumPy once did, and PyTorch still does
    parts = [plain_part(x, k) for k in (key if isinstance(key, tuple) else (key,))]
    used = sum(
        0
        if p is None or p is Ellipsis
        else p.ndim
        if isinstance(p, Tensor) and p.dtype in (dtypes.bool, dtypes.uint8)
        else 1
        for p in parts
    )
    if used > x.ndim:
        raise IndexOutOfRange(
            complaint("index", "too many indices for tensor", dict(indices=used, dimensions=x.ndim))
        )
    dots = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(dots) > 1:
        raise IndexOutOfRange(complaint("index", "an index can only have a single ellipsis"))
    fill = [slice(None)] * (x.ndim - used)
    if dots:
        return [*parts[: dots[0]], *fill, *parts[dots[0] + 1 :]]
    return parts


def plain_part(x: Tensor, part):
    if part is None or part is Ellipsis or part.__class__ in (int, slice):
        return part
    if part is True or part is False:
        return tensor(part, device=x.device)
    if isinstance(part, int):
        return part
    if isinstance(part, Tensor):
        if part.dtype.category > dtypes.INTEGER:
            raise IndexOutOfRange(
                complaint(
                    "index",
                    "tensors used as indices must be long, int, byte or bool tensors",
                    dict(dtype=part.dtype),
                )
            )
        if part.ndim == 0 and part.dtype.category == dtypes.INTEGER and part._array is not None:
            return int(part._array)
        return part
    if isinstance(part, np.ndarray):
        return from_array(np.ascontiguousarray(part))
    if isinstance(part, (list, tuple, range)):
        made = tensor(list(part), device=x.device)
        return made if made.numel() else convert(made, dtype=dtypes.int64)
    if hasattr(part, "__index__"):
        return part.__index__()
    raise (ArgumentError if isinstance(part, str) else IndexOutOfRange)(
        complaint(
            "index",
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
            "are valid indices",
            dict(got=type(part).__name__),
        )
    )


def check_mask(x: Tensor, dim: int, mask: Tensor) -> None:
    """Refuse a mask of another shape than the dimensions that it covers."""
    if tuple(x.shape[dim : dim + mask.ndim]) != tuple(mask.shape):
        raise IndexOutOfRange(
            complaint(
                "index",
                "the shape of the mask must match the shape of the indexed tensor",
                dict(mask=list(mask.shape), tensor=list(x.shape), dimension=dim),
            )
        )


def mask_columns(x: Tensor, dim: int, mask: Tensor) -> list[Tensor]:
    """A boolean mask as one index tensor per dimension that it covers."""
    check_mask(x, dim, mask)
    found = nonzero_of(mask._array)
    return [from_array(np.ascontiguousarray(found[:, k])) for k in range(mask.ndim)]


def select(x: Tensor, dim: int, index: int) -> Tensor:
    if x._spec.ndim == 0:
        raise IndexOutOfRange(
            complaint(
                "index",
                "invalid index of a 0-dim tensor",
                None,
                "Use `tensor.item()` to convert a 0-dim tensor to a Python number.",
            )
        )
    n = x._spec.shape[dim]
    if not -n <= index < n:
        raise IndexOutOfRange(
            complaint("index", f"index {index} is out of bounds for dimension {dim} with size {n}")
        )
    return views.select(x, dim=dim, index=index % n)


def within(at: Any, n: int) -> int:
    """A place among n, counted from the end if negative. Comparisons, unlike `slice.indices`, tell
    a capture what was decided about a number that changes."""
    if not isinstance(at, int):
        at = operator.index(at)
    if at < 0:
        at = at + n
        return 0 if at < 0 else at
    return n if at > n else at


def sliced(x: Tensor, dim: int, part: slice) -> Tensor:
    if part.start is None and part.stop is None and part.step is None:
        return x
    step = 1 if part.step is None else part.step.__index__()
    if step <= 0:
        raise ValueRangeError(
            complaint(
                "index",
                "slice step must be positive",
                dict(step=step),
                "Use torch.flip to reverse.",
            )
        )
    n = x._spec.shape[dim]
    start = 0 if part.start is None else within(part.start, n)
    stop = n if part.stop is None else within(part.stop, n)
    return views.slice(x, dim=dim, start=start, stop=max(stop, start), step=step)


def iterate(self: Tensor):
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    if switch.active:
        return iter(self.unbind(0))
    return iter([select(self, 0, i) for i in range(self.shape[0])])


getitem.__name__, setitem.__name__ = "__getitem__", "__setitem__"
Tensor.__getitem__ = getitem
Tensor.__setitem__ = setitem
Tensor.__iter__ = iterate

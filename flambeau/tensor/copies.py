"""`*_copy` and `*_scatter`: view operations that give a fresh tensor."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.core.errors import OpError, ShapeError, complaint
from flambeau.core.spec import contiguous_strides
from flambeau.ops.casts import copy
from flambeau.ops.windows import window_write
from flambeau.tensor import joining, rearranging, shaping  # noqa: F401  their views are copied
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor

# The views that are methods of Tensor once the modules above are loaded.
VIEWS = (
    "diagonal",
    "expand",
    "permute",
    "t",
    "transpose",
    "unsqueeze",
    "squeeze",
    "view",
    "unbind",
    "split",
    "split_with_sizes",
    "select",
    "slice",
    "narrow",
    "as_strided",
    "unfold",
    "alias",
    "detach",
)


def fresh(result):
    if isinstance(result, tuple):
        return tuple(fresh(r) for r in result)
    return copy(result, strides=contiguous_strides(result.shape))


def copying(name: str, view: Callable) -> None:
    """`name_copy(input, ..)`: the view, copied."""

    def view_copy(input, *args, **kwargs):
        return fresh(view(input, *args, **kwargs))

    view_copy.__doc__ = f"A copy of {name}'s view."
    public(view_copy, name=f"{name}_copy", method=name == "narrow")


def slice_view(input, dim=0, start=None, end=None, step=1):
    """The view input[..., start:end:step, ..] along dim."""
    from flambeau.ops.dims import normal_dim
    from flambeau.tensor.indexing import sliced

    if step <= 0:
        raise OpError(complaint("slice", "slice step must be positive", dict(step=step)))
    return sliced(input, normal_dim("slice", dim, input.ndim), slice(start, end, step))


def alias_view(input):
    """Another tensor on the same memory."""
    return input.view(tuple(input.shape))


for _name in VIEWS:
    _view = {"slice": slice_view, "alias": alias_view}.get(_name) or getattr(Tensor, _name)
    copying(_name, _view)


# *_scatter -----------------------------------------------------------------------------------


def written(op: str, input: Tensor, src: Tensor, view: Callable) -> Tensor:
    """input with `src` where the view is."""
    base = (
        input if input._spec.is_contiguous else copy(input, strides=contiguous_strides(input.shape))
    )
    place = view(base.detach())
    if tuple(place.shape) != tuple(src.shape):
        raise ShapeError(
            complaint(
                op,
                "expected src to have a size equal to the slice of self",
                dict(src=list(src.shape), slice=list(place.shape)),
            )
        )
    if src.dtype is not input.dtype:
        src = src.to(input.dtype)
    return window_write(
        base,
        src,
        layout=base._spec.strides,
        size=tuple(place.shape),
        stride=place._spec.strides,
        offset=place._offset - base._offset,
    )


@public
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """input with src in place of a slice."""
    return written("slice_scatter", input, src, lambda x: slice_view(x, dim, start, end, step))


@public(out=False)
def select_scatter(input, src, dim, index):
    """input with src in place of one index."""
    return written("select_scatter", input, src, lambda x: x.select(dim, index))


@public(out=False)
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """input with src on a diagonal."""
    return written("diagonal_scatter", input, src, lambda x: x.diagonal(offset, dim1, dim2))


@public(out=False)
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """input with src in a strided window."""
    if not input._spec.is_contiguous or input._offset:
        input = copy(input, strides=contiguous_strides(input.shape))
    return written(
        "as_strided_scatter", input, src, lambda x: x.as_strided(size, stride, storage_offset)
    )


# Aliases that old scripts use -----------------------------------------------------------------


@public(out=False)
def unsafe_chunk(input, chunks, dim=0):
    """chunk."""
    return input.chunk(chunks, dim)


@public(out=False)
def unsafe_split(tensor, split_size, dim=0):
    """split."""
    return tensor.split(split_size, dim)


@public(out=False)
def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """split_with_sizes."""
    return input.split(list(split_sizes), dim)

"""Batching rules: a primitive on values that hold a batch along dimension 0.

A rule is `rule(size, primitive, values, here, params)`: `values` are the operands, `here` tells
which of them carry the batch; the result carries it. A rule that does not know a case returns
NotImplemented, and the slices are computed one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.spec import Spec, spec
from flambeau.eager.executor import specs_of
from flambeau.ops.choice import where
from flambeau.ops.creation import arange
from flambeau.ops.registry import Primitive
from flambeau.tensor.tensor import Tensor

Rule = Callable[[int, Primitive, list, list[bool], dict], Any]
RULES: dict[str, Rule] = {}
FAMILIES: dict[str, Rule] = {}


def rule_of(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for primitives by name."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


# Shapes --------------------------------------------------------------------------------------


def padded(value: Tensor, rank: int) -> Tensor:
    """A value with dimensions of one after the batch, up to `rank`."""
    if value.ndim >= rank:
        return value
    ones = (1,) * (rank - value.ndim)
    return value.reshape((value.shape[0], *ones, *value.shape[1:]))


def spread(size: int, value: Tensor, here: bool) -> Tensor:
    """The value with the batch, repeated if it lacks it."""
    return value if here else value.expand((size, *value.shape))


def joined(value: Tensor) -> Tensor:
    """Batch and first dimension as one."""
    return value.reshape((value.shape[0] * value.shape[1], *value.shape[2:]))


def split(value: Tensor, size: int) -> Tensor:
    """The inverse of `joined`."""
    return value.reshape((size, value.shape[0] // size, *value.shape[1:]))


def specs(values: list, here: list[bool]) -> list[Spec | None]:
    """The specs that slices of operands have."""
    found = specs_of(tuple(values))
    return [
        spec(s.dtype, s.shape[1:], s.strides[1:], s.device) if h else s for s, h in zip(found, here)
    ]


# Pointwise -----------------------------------------------------------------------------------


def pointwise(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """Operands lined up behind the batch. Slices without dimensions promote as such, or not."""
    ranks = [v.ndim - h for v, h in zip(values, here) if isinstance(v, Tensor)]
    lined = [padded(v, max(ranks) + 1) if h else v for v, h in zip(values, here)]
    if min(ranks) == 0 and len(values) > 1:
        nowhere = [False] * len(values)
        of_slices, of_values = specs(values, here), specs(lined, nowhere)
        dtype = primitive.meta(*of_values, **params).dtype
        if dtype is not primitive.meta(*of_slices, **params).dtype:
            return NotImplemented
    return primitive(*lined, **params)


FAMILIES["pointwise"] = pointwise
RULES["where"] = pointwise


@rule_of("masked_fill")
def masked_fill(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    x, mask, value = values
    if not here[2]:
        return pointwise(size, primitive, values, here, params)
    filler = value.to(x.dtype)
    return pointwise(size, where, [mask, filler, x], [here[1], True, here[0]], params)


@rule_of("convert", "real", "imag", "view_as_real", "view_as_complex", "complex")
def unchanged(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """The batch is one more leading dimension."""
    return primitive(*[spread(size, v, h) for v, h in zip(values, here)], **params)


@rule_of("copy")
def copy(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    if params.get("strides") is None:
        return primitive(*values, **params)
    x = values[0]
    return primitive(x, strides=(x[0].numel() if size else 1, *params["strides"]))


# Views ---------------------------------------------------------------------------------------


@rule_of("permute")
def permute(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    return primitive(values[0], dims=(0, *(d + 1 for d in params["dims"])))


@rule_of("expand")
def expand(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    shape = (size, *params["shape"])
    return primitive(padded(values[0], len(shape)), shape=shape)


@rule_of("view")
def view(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    return primitive(values[0], shape=(size, *params["shape"]))


@rule_of("as_strided")
def as_strided(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    stride = values[0].stride(0)
    return primitive(
        values[0],
        size=(size, *params["size"]),
        stride=(stride, *params["stride"]),
        offset=params["offset"],
    )


# One dimension, or several, named by `dim` ---------------------------------------------------


@rule_of(
    "slice", "select", "slice_scatter_zeros", "pick", "place", "cumsum", "cumprod", "shifted",
    "recurrence", "sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "max_along",
    "min_along", "any", "all", "var", "vector_norm", "logsumexp", "softmax", "log_softmax",
    "softmax_backward", "log_softmax_backward", "cat", "cummax", "cummin", "logcumsumexp", "sort",
    "topk", "kthvalue", "median", "nanmedian", "mode", "flip", "roll",
)  # fmt: skip
def along(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """Dimensions are counted from one further; a `shape` gets the batch in front."""
    dim = params.get("dim", params.get("dims"))
    rank = max(v.ndim - h for v, h in zip(values, here))
    if dim is None or (rank == 0 and not isinstance(dim, tuple)):
        return NotImplemented
    moved = tuple(d + 1 for d in dim) if isinstance(dim, tuple) else dim + 1
    params = {**params, "dim" if "dim" in params else "dims": moved}
    if "shape" in params:
        params["shape"] = (size, *params["shape"])
    return primitive(*[spread(size, v, h) for v, h in zip(values, here)], **params)


# Products ------------------------------------------------------------------------------------


@rule_of("matmul")
def matmul(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    x, y = values
    if not here[1] and y.ndim == 2 and x.ndim == 3:
        return split(primitive(joined(x), y), size)
    return primitive(spread(size, x, here[0]), spread(size, y, here[1]))


@rule_of("linear")
def linear(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    x, w, b = values
    if not here[1] and not here[2]:
        return primitive(x, w, b)
    x, w = spread(size, x, here[0]), spread(size, w, here[1])
    lead = x.shape[1:-1]
    rows = x.reshape((size, lead.numel(), x.shape[-1]))
    y = rows @ w.transpose(1, 2)
    if b is not None:
        y = y + (b.unsqueeze(1) if here[2] else b)
    return y.reshape((size, *lead, w.shape[1]))


def _grouped(value: Tensor) -> Tensor:
    """(batch, N, C, ..) -> (N, batch * C, ..): the batch as groups of channels."""
    moved = value.transpose(0, 1)
    return moved.reshape((moved.shape[0], moved.shape[1] * moved.shape[2], *moved.shape[3:]))


def _ungrouped(value: Tensor, size: int) -> Tensor:
    """(N, batch * C, ..) -> (batch, N, C, ..)."""
    shape = (value.shape[0], size, value.shape[1] // size, *value.shape[2:])
    return value.reshape(shape).transpose(0, 1)


@rule_of("conv")
def conv(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """A batch of inputs is more inputs; a batch of weights is more groups."""
    x, w, b = values
    if not here[1] and not here[2]:
        return split(primitive(joined(x), w, b, **params), size)
    if not here[1]:
        out = split(primitive(joined(x), w, None, **params), size)
    else:
        x = spread(size, x, here[0])
        groups = {**params, "groups": params["groups"] * size}
        out = _ungrouped(primitive(_grouped(x), joined(w), None, **groups), size)
    if b is None:
        return out
    ones = (1,) * (out.ndim - 3)
    return out + b.reshape((size, 1, -1, *ones) if here[2] else (1, 1, -1, *ones))


@rule_of("conv_input")
def conv_input(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    g, w = values
    n, c, *spatial = params["shape"]
    if not here[1]:
        out = primitive(joined(g), w, **{**params, "shape": (n * size, c, *spatial)})
        return split(out, size)
    params = {**params, "shape": (n, c * size, *spatial), "groups": params["groups"] * size}
    return _ungrouped(primitive(_grouped(spread(size, g, here[0])), joined(w), **params), size)


@rule_of("conv_weight")
def conv_weight(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    g, x = (_grouped(spread(size, v, h)) for v, h in zip(values, here))
    k, *rest = params["shape"]
    params = {**params, "shape": (k * size, *rest), "groups": params["groups"] * size}
    return split(primitive(g, x, **params), size)


# Windows over the trailing dimensions --------------------------------------------------------


@rule_of("max_pool", "sum_pool", "sum_unpool", "pool_scatter", "pool_gather")
def pool(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    values = [joined(spread(size, v, h)) for v, h in zip(values, here)]
    result = primitive(*values, **params)
    if isinstance(result, tuple):
        return tuple(split(x, size) for x in result)
    return split(result, size)


# Normalisation -------------------------------------------------------------------------------


@rule_of("layer_norm")
def layer_norm(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    x, w, b = values
    if not here[1] and not here[2]:
        return primitive(x, w, b, **params)
    x = spread(size, x, here[0])
    y, mean, rstd = primitive(x, None, None, **params)
    if w is not None:
        y = y * (padded(w, x.ndim) if here[1] else w)
    if b is not None:
        y = y + (padded(b, x.ndim) if here[2] else b)
    return y, mean, rstd


# Tables --------------------------------------------------------------------------------------


def counted(size: int, like: Tensor, rank: int) -> Tensor:
    """0 .. size - 1 along the first of `rank` dimensions, to index the batch with."""
    numbers = arange(start=0, step=1, count=size, dtype=like.dtype, device=like.device)
    return numbers.reshape((size,) + (1,) * (rank - 1))


def offset(size: int, i: Tensor, here: bool, rows: int) -> Tensor:
    """Indices into one table of size * rows rows."""
    i = spread(size, i, here)
    return i + counted(size, i, i.ndim) * rows


@rule_of("embedding")
def embedding(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    w, i = values
    if not here[0]:
        return primitive(w, i, **params)
    if params["by_frequency"] or params["padding"] >= 0:
        return NotImplemented
    return primitive(joined(w), offset(size, i, here[1], w.shape[1]), **params)


@rule_of("embedding_backward")
def embedding_backward(
    size: int, primitive: Primitive, values: list, here: list, params: dict
) -> Any:
    if params["by_frequency"]:
        return NotImplemented
    g, i = (spread(size, v, h) for v, h in zip(values, here))
    rows, padding = params["rows"], params["padding"]
    if padding >= 0:
        kept = (i != padding).reshape((*i.shape, *(1 for _ in g.shape[i.ndim :])))
        g = g * kept
    params = {**params, "rows": size * rows, "padding": -1}
    return split(primitive(g, offset(size, i, True, rows), **params), size)


# Positions -----------------------------------------------------------------------------------


@rule_of("index")
def index(size: int, primitive: Primitive, values: list, here: list, params: dict) -> Any:
    """The batch becomes one more indexed dimension."""
    x, *indices = values
    indices, block = _block(size, indices, here[1:])
    dims = params["dims"]
    out = primitive(spread(size, x, here[0]), *indices, dims=(0, *(d + 1 for d in dims)))
    return _block_in_place(out, block, dims)


def _block(size: int, indices: list, here: list) -> tuple[list, int]:
    """Indices with the batch's own in front, and the rank of what they broadcast to."""
    rank = max(i.ndim - h for i, h in zip(indices, here))
    lined = [padded(i, rank + 1) if h else i for i, h in zip(indices, here)]
    return [counted(size, lined[0], rank + 1), *lined], rank


def _block_in_place(out: Tensor, block: int, dims: tuple) -> Tensor:
    """Move the indexed block from behind the batch to where one slice has it."""
    at = dims[0] if _adjacent(dims) else 0
    # With dims starting at 0 and adjacent the block is in place; NumPy's rule put it first.
    if at == 0:
        return out
    return out.movedim(tuple(range(1, block + 1)), tuple(range(at + 1, at + block + 1)))


def _block_in_front(src: Tensor, block: int, dims: tuple) -> Tensor:
    at = dims[0] if _adjacent(dims) else 0
    if at == 0:
        return src
    return src.movedim(tuple(range(at + 1, at + block + 1)), tuple(range(1, block + 1)))


def _adjacent(dims: tuple) -> bool:
    return dims == tuple(range(dims[0], dims[0] + len(dims)))


@rule_of("index_accumulate")
def index_accumulate(
    size: int, primitive: Primitive, values: list, here: list, params: dict
) -> Any:
    src, *indices = values
    indices, block = _block(size, indices, here[1:])
    dims = params["dims"]
    src = _block_in_front(spread(size, src, here[0]), block, dims)
    shape = (size, *params["shape"])
    return primitive(src, *indices, shape=shape, dims=(0, *(d + 1 for d in dims)))

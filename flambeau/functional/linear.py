"""Affine maps and look-ups."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, UnsupportedError, ValueRangeError, complaint
from flambeau.functional.register import functional
from flambeau.ops.embedding import embedding as embedding_primitive
from flambeau.ops.gathering import index
from flambeau.ops.linear import linear as linear_primitive
from flambeau.tensor.counting import searchsorted
from flambeau.tensor.ensuring import ensure, has_values
from flambeau.tensor.factories import arange
from flambeau.tensor.interop import as_tensor


@functional(out=True)
def linear(input, weight, bias=None):
    """input weight^T + bias: (*, in) -> (*, out); weight (out, in)."""
    if weight.ndim == 1:
        y = input @ weight
        return y if bias is None else y + bias
    return linear_primitive(input, weight, bias)


@functional
def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    """Rows of weight at the indices; row padding_idx gets no gradient."""
    if input.dtype not in (dtypes.int64, dtypes.int32):
        raise OpError(
            complaint(
                "embedding",
                "indices must be of type int64 or int32",
                dict(dtype=input.dtype),
                "Convert with `.long()`.",
            )
        )
    if weight.ndim != 2:
        raise OpError(
            complaint("embedding", "'weight' must be 2-D", dict(weight=list(weight.shape)))
        )
    if padding_idx is not None:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError(
                complaint(
                    "embedding",
                    "padding_idx must be within num_embeddings",
                    dict(padding_idx=padding_idx, rows=rows),
                )
            )
        padding_idx %= rows
    if max_norm is not None:
        renormalise(weight, input, max_norm, norm_type)
    return embedding_rows(weight, input.long(), padding_idx, scale_grad_by_freq)


def embedding_rows(weight, indices, padding_idx, scale_grad_by_freq):
    return embedding_primitive(
        weight,
        indices,
        padding=-1 if padding_idx is None else padding_idx,
        by_frequency=scale_grad_by_freq,
    )


def renormalise(weight, input, max_norm, norm_type):
    """Scale the rows that are looked up, in place, to a norm of at most max_norm."""
    rows = input.reshape(-1).unique()
    values = index(weight.detach(), rows, dims=(0,))
    norms = values.abs().pow(norm_type).sum(-1, keepdim=True).pow(1.0 / norm_type)
    scale = (max_norm / (norms + 1e-7)).clamp(max=1.0)
    weight.detach()[rows] = values * scale.where(norms > max_norm, 1.0)


@functional(toplevel=True)
def bilinear(input1, input2, weight, bias=None):
    """y_k = x1^T W_k x2 + b_k: weight (out, in1, in2)."""
    lead = input1.shape[:-1]
    if input2.shape[:-1] != lead:
        raise OpError(
            complaint(
                "bilinear",
                "input batch dimensions do not match",
                dict(input1=list(input1.shape), input2=list(input2.shape)),
            )
        )
    if input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        raise OpError(
            complaint(
                "bilinear",
                "the last sizes must be the weight's",
                dict(
                    input1=list(input1.shape), input2=list(input2.shape), weight=list(weight.shape)
                ),
            )
        )
    x = (
        input1.reshape((lead.numel(), 1, 1, -1))
        if input1.numel()
        else input1.reshape((lead.numel(), 1, 1, input1.shape[-1]))
    )
    rows = (x @ weight).squeeze(2)
    y = (rows * input2.reshape((lead.numel(), 1, input2.shape[-1]))).sum(-1)
    y = y.reshape((*lead, weight.shape[0]))
    return y if bias is None else y + bias


@functional
def one_hot(tensor, num_classes=-1):
    """A one at each class index, in a new last dimension."""
    if tensor.dtype is not dtypes.int64:
        raise OpError(
            complaint(
                "one_hot",
                "is only applicable to index tensor of type LongTensor",
                dict(dtype=tensor.dtype),
            )
        )
    if tensor.numel() == 0 and num_classes <= 0:
        raise OpError(
            complaint("one_hot", "can not infer total number of classes from empty tensor")
        )
    if tensor._array is not None and not has_values(tensor) and num_classes > 0:
        must = f"class values must be within [0, {num_classes - 1}]"
        ensure((tensor >= 0) & (tensor < num_classes), OpError, "one_hot", must)
    elif tensor.numel() and tensor._array is not None:
        if int(tensor.min()) < 0:
            raise OpError(complaint("one_hot", "class values must be non-negative"))
        if num_classes == -1:
            num_classes = int(tensor.max()) + 1
        elif int(tensor.max()) >= num_classes:
            raise OpError(
                complaint(
                    "one_hot",
                    "class values must be smaller than num_classes",
                    dict(max=int(tensor.max()), num_classes=num_classes),
                )
            )
    return (tensor.unsqueeze(-1) == arange(num_classes)).long()


@functional
def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Sum, mean or maximum of the rows of each bag: a row of a 2D input, or a run of a 1D one."""
    if weight.dtype in (dtypes.int64, dtypes.int32) and input.dtype.is_floating_point:
        input, weight = weight, input  # the order of very old scripts
    if mode not in ("sum", "mean", "max"):
        raise ValueRangeError(
            complaint("embedding_bag", "mode has to be one of sum, mean or max", dict(mode=mode))
        )
    if per_sample_weights is not None and mode != "sum":
        raise UnsupportedError(
            complaint(
                "embedding_bag",
                "per_sample_weights was not None, but mode is not 'sum'",
                dict(mode=mode),
            )
        )
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueRangeError(
            complaint(
                "embedding_bag",
                "expected per_sample_weights to have the shape of input",
                dict(per_sample_weights=list(per_sample_weights.shape)),
            )
        )
    flat, bag, count = bags(input, offsets, include_last_offset)
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights.reshape((-1,))
    if max_norm is not None:
        renormalise(weight, flat, max_norm, norm_type)
    if padding_idx is not None:
        padding_idx %= weight.shape[0]
        keep = flat != padding_idx
        flat, bag = flat[keep], bag[keep]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[keep]
    rows = embedding_rows(weight, flat.long(), None, scale_grad_by_freq)
    return reduced_bags(rows, bag, count, mode, per_sample_weights, weight)


def bags(input, offsets, include_last: bool):
    """(flat indices, bag of each, number of bags)."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueRangeError(
                complaint(
                    "embedding_bag",
                    "if input is 2D, then offsets has to be None, as input is treated "
                    "is a mini-batch of fixed length sequences",
                )
            )
        n, k = input.shape
        return input.reshape((-1,)), arange(n).repeat_interleave(k), n
    if input.ndim != 1 or offsets is None:
        raise ValueRangeError(
            complaint(
                "embedding_bag",
                "input has to be 2D, or 1D with offsets",
                dict(input=list(input.shape), offsets=offsets),
            )
        )
    if offsets.ndim != 1:
        raise ValueRangeError(complaint("embedding_bag", "offsets has to be a 1D Tensor"))
    if not has_values(offsets) and not include_last:
        return input, bags_by_offsets(offsets, input.shape[0]), offsets.shape[0]
    starts = offsets.tolist()
    if starts and starts[0] != 0:
        raise ValueRangeError(
            complaint(
                "embedding_bag",
                "offsets[0] has to be 0, i.e., the first "
                "sequence in the mini-batch has to start from position 0",
                dict(got=starts[0]),
            )
        )
    if starts and max(starts) > input.shape[0]:
        raise ValueRangeError(
            complaint(
                "embedding_bag",
                "offsets must not exceed the length of input",
                dict(last=max(starts), length=input.shape[0]),
            )
        )
    ends = [*starts[1:], input.shape[0]]
    if include_last:
        starts, ends = starts[:-1], starts[1:]
    sizes = [e - s for s, e in zip(starts, ends)]
    flat = input[: sum(sizes)]
    return flat, arange(len(sizes)).repeat_interleave(as_tensor(sizes).long()), len(sizes)


def bags_by_offsets(offsets, length: int):
    """The bag of each place, where the offsets are not known yet."""
    must = "offsets must start with 0, grow, and not exceed the length of input"
    grows = offsets[1:] >= offsets[:-1]
    holds = (offsets[:1] == 0).all() & grows.all() & (offsets <= length).all()
    ensure(holds, ValueRangeError, "embedding_bag", must)
    return searchsorted(offsets, arange(length, dtype=offsets.dtype), right=True) - 1


def reduced_bags(rows, bag, count: int, mode: str, weights, table):
    shape = (count, table.shape[1])
    where = bag.unsqueeze(1).expand(rows.shape)
    if mode == "max":
        empty = rows.new_zeros(shape)
        return empty.scatter_reduce(0, where, rows, "amax", include_self=False)
    if weights is not None:
        rows = rows * weights.unsqueeze(1)
    total = rows.new_zeros(shape).index_add(0, bag, rows)
    if mode == "sum":
        return total
    sizes = rows.new_zeros((count,)).index_add(0, bag, rows.new_ones(bag.shape)).clamp(min=1)
    return total / sizes.unsqueeze(1)

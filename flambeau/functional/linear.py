"""Affine maps and look-ups."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.functional.register import functional
from flambeau.ops.gathering import index
from flambeau.ops.linear import linear as linear_primitive


@functional
def linear(input, weight, bias=None):
    """input weight^T + bias: (*, in) -> (*, out); weight (out, in)."""
    if weight.ndim == 1:
        y = input @ weight
        return y if bias is None else y + bias
    return linear_primitive(input, weight, bias)


@functional
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0,
              scale_grad_by_freq=False, sparse=False):
    """Rows of weight at the indices; row padding_idx gets no gradient."""
    if input.dtype not in (dtypes.int64, dtypes.int32):
        raise OpError(complaint("embedding", "indices must be of type int64 or int32",
                                dict(dtype=input.dtype), "Convert with `.long()`."))
    if padding_idx is not None:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError(complaint("embedding", "padding_idx must be within num_embeddings",
                                           dict(padding_idx=padding_idx, rows=rows)))
        padding_idx %= rows
    if max_norm is not None:
        renormalise(weight, input, max_norm, norm_type)
    return embedding_rows(weight, input.long(), padding_idx, scale_grad_by_freq)


def embedding_rows(weight, indices, padding_idx, scale_grad_by_freq):
    from flambeau.ops.embedding import embedding as embedding_primitive

    return embedding_primitive(weight, indices, padding=-1 if padding_idx is None else padding_idx,
                               by_frequency=scale_grad_by_freq)


def renormalise(weight, input, max_norm, norm_type):
    """Scale the rows that are looked up, in place, to a norm of at most max_norm."""
    rows = input.reshape(-1).unique()
    values = index(weight.detach(), rows, dims=(0,))
    norms = values.abs().pow(norm_type).sum(-1, keepdim=True).pow(1.0 / norm_type)
    scale = (max_norm / (norms + 1e-7)).clamp(max=1.0)
    weight.detach()[rows] = values * scale.where(norms > max_norm, 1.0)

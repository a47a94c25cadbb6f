"""Scaled dot-product attention."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.functional.activation import softmax
from flambeau.functional.dropout import check_probability, dropout
from flambeau.functional.register import functional
from flambeau.ops.attention import attention, masked
from flambeau.ops.promotion import fits
from flambeau.random.primitives import dropout_mask


@functional
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0,
                                 is_causal=False, scale=None, enable_gqa=False):
    """softmax(query key^T scale + mask) value; (*, L, E), (*, S, E), (*, S, Ev)."""
    if attn_mask is not None and is_causal:
        raise OpError(complaint("scaled_dot_product_attention",
                                "explicit attn_mask should not be set when is_causal=True"))
    if attn_mask is not None:
        fits("scaled_dot_product_attention", tuple(attn_mask.shape[-2:]),
             (query.shape[-2], key.shape[-2]))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if enable_gqa and not shares_heads(query, key, value, attn_mask):
        groups = query.shape[-3] // key.shape[-3]
        key = key.repeat_interleave(groups, -3)
        value = value.repeat_interleave(groups, -3)
    if query.ndim == 3 and key.ndim == 3 and value.ndim == 3:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask.unsqueeze(1)
        return scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
                                            scale).squeeze(1)
    if dropout_p < 1 and is_one_op(query, key, value, attn_mask, enable_gqa):
        return one_op(query, key, value, attn_mask, dropout_p, is_causal, scale)
    root = math.sqrt(abs(scale))
    scores = (query * (math.copysign(root, scale))) @ (key * root).transpose(-2, -1)
    scores = masked(scores, attn_mask, is_causal)
    weights = softmax(scores, -1)
    if attn_mask is not None:
        weights = weights.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0.0)
    return dropout(weights, dropout_p, True) @ value if dropout_p else weights @ value


def one_op(query, key, value, mask, dropout_p: float, is_causal: bool, scale: float):
    noise = None
    if dropout_p:
        check_probability(dropout_p)
        shape = (*query.shape[:3], key.shape[2])
        noise = dropout_mask(shape=shape, dtype=query.dtype, device=query.device,
                             strides=None, p=float(dropout_p))
    return attention(query, key, value, mask, noise, causal=bool(is_causal), scale=float(scale))[0]


def shares_heads(query, key, value, mask) -> bool:
    """Can one op take heads of keys and values as often as they are needed?"""
    return query.dtype.itemsize > 2 and is_one_op(query, key, value, mask, True)


def is_one_op(query, key, value, mask, grouped: bool) -> bool:
    """Batches of heads of one dtype, and no gradient for the mask."""
    kind = query.dtype
    if mask is not None and (mask.requires_grad or mask.dtype not in (dtypes.bool, kind)):
        return False
    if not (query.ndim == key.ndim == value.ndim == 4 and kind.is_floating_point):
        return False
    heads, keys = query.shape[1], key.shape[1]
    fits = heads == keys or grouped and keys > 0 and heads % keys == 0 and keys == value.shape[1]
    return bool(fits) and key.dtype is kind and value.dtype is kind and (
        key.shape[0] == query.shape[0])

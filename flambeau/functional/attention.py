"""Scaled dot-product attention."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.functional.activation import softmax
from flambeau.functional.dropout import dropout
from flambeau.functional.register import functional
from flambeau.ops.attention import attention, masked
from flambeau.ops.promotion import fits


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
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key = key.repeat_interleave(groups, -3)
        value = value.repeat_interleave(groups, -3)
    size = query.shape[-1]
    scale = 1 / math.sqrt(size) if scale is None else scale
    if query.ndim == 3 and key.ndim == 3 and value.ndim == 3:
        query, key, value = (x.unsqueeze(1) for x in (query, key, value))
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask.unsqueeze(1)
        return scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
                                            scale).squeeze(1)
    if not dropout_p and is_one_op(query, key, value, attn_mask):
        return attention(query, key, value, attn_mask, causal=bool(is_causal),
                         scale=float(scale))[0]
    root = math.sqrt(abs(scale))
    scores = (query * (math.copysign(root, scale))) @ (key * root).transpose(-2, -1)
    scores = masked(scores, attn_mask, is_causal)
    weights = softmax(scores, -1)
    if attn_mask is not None:
        weights = weights.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0.0)
    return dropout(weights, dropout_p, True) @ value if dropout_p else weights @ value


def is_one_op(query, key, value, mask) -> bool:
    """Batches of heads of one dtype, and no gradient for the mask."""
    kind = query.dtype
    if mask is not None and (mask.requires_grad or mask.dtype not in (dtypes.bool, kind)):
        return False
    return query.ndim == key.ndim == value.ndim == 4 and kind.is_floating_point and (
        key.dtype is kind and value.dtype is kind) and key.shape[:2] == query.shape[:2]

"""Multi-head attention over projected queries, keys and values."""

from __future__ import annotations

import math

from flambeau.core import dtype as dtypes
from flambeau.core.errors import OpError, complaint
from flambeau.functional.activation import softmax
from flambeau.functional.attention import scaled_dot_product_attention
from flambeau.functional.dropout import dropout
from flambeau.functional.linear import linear
from flambeau.functional.padding import pad
from flambeau.functional.register import functional
from flambeau.tensor.joining import cat


def additive(mask, kind):
    """A boolean mask (True: not attended) as a float mask of -inf."""
    if mask is None or mask.dtype is not dtypes.bool:
        return mask
    return mask.new_zeros(mask.shape, dtype=kind).masked_fill(mask, -math.inf)


def projections(query, key, value, w, b, separate, q_w, k_w, v_w):
    if separate:
        biases = (None,) * 3 if b is None else b.chunk(3)
        return tuple(linear(x, weight, bias) for x, weight, bias in zip(
            (query, key, value), (q_w, k_w, v_w), biases))
    if query is key and key is value:
        return linear(query, w, b).chunk(3, -1)
    weights = w.chunk(3)
    biases = (None,) * 3 if b is None else b.chunk(3)
    return tuple(linear(x, weight, bias)
                 for x, weight, bias in zip((query, key, value), weights, biases))


def attention_mask(attn_mask, key_padding_mask, batch: int, heads: int, target: int, source: int,
                   kind):
    """Both masks as one float mask that broadcasts to (batch, heads, target, source)."""
    mask = additive(attn_mask, kind)
    if mask is not None:
        wanted = [(target, source), (batch * heads, target, source)]
        if tuple(mask.shape) not in wanted:
            raise OpError(complaint("multi_head_attention_forward", "the shape of attn_mask should "
                                    f"be {wanted[0]} or {wanted[1]}", dict(
                                        attn_mask=list(mask.shape))))
        mask = mask if mask.ndim == 2 else mask.reshape((batch, heads, target, source))
    if key_padding_mask is None:
        return mask
    if tuple(key_padding_mask.shape) != (batch, source):
        raise OpError(complaint("multi_head_attention_forward", "expecting key_padding_mask shape "
                                f"of {(batch, source)}", dict(
                                    got=list(key_padding_mask.shape))))
    padding = additive(key_padding_mask, kind).reshape((batch, 1, 1, source))
    return padding if mask is None else mask + padding


@functional
def multi_head_attention_forward(
        query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k,
        bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True,
        key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False,
        q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
        average_attn_weights=True, is_causal=False):
    """(L, N, E), (S, N, E), (S, N, E) -> ((L, N, E), weights); unbatched inputs lack N."""
    if query.ndim not in (2, 3):
        raise AssertionError(complaint(
            "multi_head_attention_forward", "query should be unbatched 2D or batched 3D",
            dict(query=list(query.shape))))
    single = query.ndim == 2
    if single:
        same = query is key, key is value
        query = query.unsqueeze(1)
        key = query if same[0] else key.unsqueeze(1)
        value = key if same[1] else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target, batch, width = query.shape
    if width != embed_dim_to_check:
        raise AssertionError(complaint("multi_head_attention_forward", "was expecting embedding "
                                       f"dimension of {embed_dim_to_check}", dict(got=width)))
    if is_causal and attn_mask is None:
        raise OpError(complaint("multi_head_attention_forward", "Need attn_mask if specifying the "
                                "is_causal hint"))
    q, k, v = projections(query, key, value, in_proj_weight, in_proj_bias,
                          use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight)
    if bias_k is not None and bias_v is not None:
        k = cat([k, bias_k.expand((1, batch, bias_k.shape[-1]))])
        v = cat([v, bias_v.expand((1, batch, bias_v.shape[-1]))])
        attn_mask, key_padding_mask = widened(attn_mask), widened(key_padding_mask)
    size = width // num_heads

    def heads(x):
        return x.reshape((x.shape[0], batch, num_heads, -1)).permute(1, 2, 0, 3)

    q = heads(q)
    k = heads(k) if static_k is None else static_k.reshape((batch, num_heads, -1, size))
    v = heads(v) if static_v is None else static_v.reshape((batch, num_heads, -1, size))
    if add_zero_attn:
        zero = k.new_zeros((batch, num_heads, 1, size))
        k, v = cat([k, zero], 2), cat([v, zero], 2)
        attn_mask, key_padding_mask = widened(attn_mask), widened(key_padding_mask)
    mask = attention_mask(attn_mask, key_padding_mask, batch, num_heads, target, k.shape[2],
                          q.dtype)
    rate = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = q * math.sqrt(1.0 / size) @ k.transpose(-2, -1)
        weights = dropout(softmax(scores if mask is None else scores + mask, -1), rate, True)
        out = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
        weights = weights.squeeze(0) if single else weights
    else:
        out = scaled_dot_product_attention(q, k, v, mask, rate)
    out = out.permute(2, 0, 1, 3).reshape((target, batch, -1))
    out = linear(out, out_proj_weight, out_proj_bias)
    return (out.squeeze(1) if single else out), weights


def widened(mask):
    """A mask that lets one more key through."""
    return None if mask is None else pad(mask, (0, 1))

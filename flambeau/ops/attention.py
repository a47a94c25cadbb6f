"""Scaled dot-product attention as one op: (softmax(scale q k^T + mask) * noise) v.

q (B, H, L, E), k (B, G, S, E), v (B, G, S, Ev): H / G heads of q share one of k and v. `noise`
(B, H, L, S) is what dropout multiplies the weights with. The log-sum-exp of each row of scores is
kept, so that the backward pass forms the weights again instead of storing them (Dao et al. 2022).
"""

from __future__ import annotations

import math

import numpy as np

from flambeau.core import dtype as dtypes
from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.ops.elementwise import common_device
from flambeau.ops.registry import primitive


def attention_meta(q: Spec, k: Spec, v: Spec, mask: Spec | None, noise: Spec | None, *, causal,
                   scale):
    """(result, log-sum-exp); heads lie side by side in memory, ready to be joined."""
    b, h, rows, size = q.shape
    alike = k.shape[0] == b and v.shape[:3] == k.shape[:3] and k.shape[3] == size
    if not alike or h % max(k.shape[1], 1):
        raise ShapeError(complaint(
            "scaled_dot_product_attention", "sizes must be (B, H, L, E), (B, G, S, E), "
            "(B, G, S, Ev), G must divide H", dict(
                query=list(q.shape), key=list(k.shape), value=list(v.shape))))
    out = v.shape[3]
    device = common_device("scaled_dot_product_attention", [q, k, v])
    strides = (rows * h * out, out, h * out, 1)
    return (spec(q.dtype, (b, h, rows, out), strides, device),
            spec(q.dtype.wide, (b, h, rows), None, device))


def scores_of(q, k, mask, causal: bool, scale: float) -> np.ndarray:
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) * np.asarray(scale, q.dtype)
    if causal:
        seen = np.tril(np.ones(scores.shape[-2:], bool))
        scores = np.where(seen, scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    return scores.astype(q.dtype, copy=False)


def weights_of(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(softmax, log-sum-exp); a row without any key has weights zero."""
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    safe = np.where(np.isneginf(top), 0, top)
    e = np.exp(scores - safe)
    total = e.sum(-1, keepdims=True)
    lse = (np.log(total) + safe)[..., 0]
    return e / np.where(total == 0, 1, total), lse


def shared(x: np.ndarray, heads: int) -> np.ndarray:
    """Each head of k or v as often as heads of q share it."""
    return x if x.shape[1] == heads else np.repeat(x, heads // x.shape[1], 1)


def gathered(x: np.ndarray, heads: int) -> np.ndarray:
    """The adjoint of `shared`."""
    if x.shape[1] == heads:
        return x
    return x.reshape(x.shape[0], heads, -1, *x.shape[2:]).sum(2)


def attention_ref(q, k, v, mask, noise, *, causal, scale):
    p, lse = weights_of(scores_of(q, shared(k, q.shape[1]), mask, causal, scale))
    return np.matmul(p if noise is None else p * noise, shared(v, q.shape[1])), lse


def attention_vjp(cts, q, k, v, mask, noise, out0, out1, causal, scale):
    dq = dk = dv = None
    if cts[0] is not None:
        dq, dk, dv = attention_backward(cts[0], q, k, v, mask, noise, out0, out1, causal=causal,
                                        scale=scale)
    if cts[1] is not None:  # d lse / d scores are the weights
        keys = repeated(k, q.shape[1])
        ds = weights(q, keys, mask, causal, scale) * (cts[1] * scale).unsqueeze(-1)
        through = summed(ds.mT @ q, k.shape[1])
        dq, dk = (new if old is None else old + new
                  for old, new in ((dq, ds @ keys), (dk, through)))
    return dq, dk, dv, None, None


def repeated(x, heads: int):
    """`shared` for tensors."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def summed(x, heads: int):
    """`gathered` for tensors."""
    if x.shape[1] == heads:
        return x
    return x.reshape(x.shape[0], heads, x.shape[1] // heads, *x.shape[2:]).sum(2)


def weights(q, k, mask, causal, scale):
    """softmax of the scores, as a composite."""
    scores = masked((q @ k.mT) * scale, mask, causal)
    p = scores.softmax(-1)
    return p.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0.0)


def masked(scores, mask, causal: bool):
    """Scores with -inf where a key is not seen; a mask of floats is added."""
    if causal:
        seen = scores.new_ones(scores.shape[-2:], dtype=dtypes.bool).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -math.inf) if mask.dtype is dtypes.bool else scores + mask


def attention_samples(rng):
    for causal, mask in [(False, None), (True, None), (False, rng.normal(size=(4, 5)) > -0.5),
                         (False, rng.normal(size=(2, 1, 1, 5)))]:
        rows = 5 if causal else 4
        yield ((rng.normal(size=(2, 3, rows, 2)), rng.normal(size=(2, 3, 5, 2)),
                rng.normal(size=(2, 3, 5, 3)), mask, None), dict(causal=causal, scale=0.7))
    noise = (rng.uniform(size=(2, 4, 3, 5)) > 0.4) / 0.6
    yield ((rng.normal(size=(2, 4, 3, 2)), rng.normal(size=(2, 2, 5, 2)),
            rng.normal(size=(2, 2, 5, 3)), None, noise), dict(causal=True, scale=0.7))


attention = primitive("attention", meta=attention_meta, ref=attention_ref, vjp=attention_vjp,
                      samples=attention_samples)


# backward ------------------------------------------------------------------------------------


def backward_meta(g: Spec, q: Spec, k: Spec, v: Spec, mask: Spec | None, noise: Spec | None,
                  out: Spec, lse: Spec, *, causal, scale):
    """Each gradient in the memory order of its operand: heads that came from one row go back."""
    return tuple(s.preserved() for s in (q, k, v))


def backward_ref(g, q, k, v, mask, noise, out, lse, *, causal, scale):
    keys, values = shared(k, q.shape[1]), shared(v, q.shape[1])
    p, _ = weights_of(scores_of(q, keys, mask, causal, scale))
    dp, kept = np.matmul(g, np.swapaxes(values, -1, -2)), p
    if noise is not None:
        dp, kept = dp * noise, p * noise
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * np.asarray(scale, q.dtype)
    return (np.matmul(ds, keys), gathered(np.matmul(np.swapaxes(ds, -1, -2), q), k.shape[1]),
            gathered(np.matmul(np.swapaxes(kept, -1, -2), g), v.shape[1]))


def backward_decomposed(g, q, k, v, mask, noise, out, lse, *, causal, scale):
    """The same from q, k, v and g alone, so that it differentiates again."""
    keys, values = repeated(k, q.shape[1]), repeated(v, q.shape[1])
    p = weights(q, keys, mask, causal, scale)
    dp, kept = g @ values.mT, p
    if noise is not None:
        dp, kept = dp * noise, p * noise
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * scale
    return ds @ keys, summed(ds.mT @ q, k.shape[1]), summed(kept.mT @ g, v.shape[1])


def backward_samples(rng):
    for operands, how in attention_samples(rng):
        out, lse = attention_ref(*operands, **how)
        yield (rng.normal(size=out.shape), *operands, out, lse), how


def remade(g, q, k, v, mask, noise, out, lse, **how):
    """The operands with results of the forward pass that belong to the others."""
    return [g, q, k, v, mask, noise, *attention_ref(q, k, v, mask, noise, **how)]


attention_backward = primitive("attention_backward", meta=backward_meta, ref=backward_ref,
                               vjp="decompose", decompose=backward_decomposed,
                               samples=backward_samples, remade=remade)

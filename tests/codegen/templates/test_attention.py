"""Attention and its gradients against float64 NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen import templates
from flambeau.codegen.templates.attention_spec import AttentionSpec
from tests.codegen.templates.conftest import Guarded, relative


def reference(q, k, v, do, causal: bool, mask: np.ndarray | None, noise=1.0) -> list[np.ndarray]:
    """o, dq, dk, dv; rows without keys give zeros."""
    q, k, v, do = (a.astype("f8") for a in (q, k, v, do))
    group = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(a, group, 1) for a in (k, v))
    scale = 1 / np.sqrt(q.shape[-1])
    scores = np.einsum("bhid,bhjd->bhij", q, keys) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    best = scores.max(-1, keepdims=True)
    p = np.exp(scores - np.where(np.isfinite(best), best, 0))
    total = p.sum(-1, keepdims=True)
    p = p / np.where(total == 0, 1, total)
    o = (noise * p) @ values
    dp = noise * np.einsum("bhid,bhjd->bhij", do, values)
    ds = p * (dp - (do * o).sum(-1, keepdims=True)) * scale
    dk, dv = np.swapaxes(ds, -1, -2) @ q, np.swapaxes(noise * p, -1, -2) @ do
    shape = (k.shape[0], k.shape[1], group)
    folded = [a.reshape(*shape, *a.shape[2:]).sum(2) for a in (dk, dv)]
    return [o, ds @ keys, *folded]


def make_mask(kind: str, rng, batch: int, q_len: int, k_len: int):
    """(mask or None, the spec's mask, its strides)"""
    if kind == "bool":
        mask = rng.random((batch, 1, q_len, k_len)) > 0.3
        mask[0, 0, 0] = False
        return mask, "bool", (q_len * k_len, 0, k_len, 1)
    if kind == "keys":
        return rng.random((batch, 1, 1, k_len)) > 0.3, "bool", (k_len, 0, 0, 1)
    if kind == "float":
        mask = rng.standard_normal((q_len, k_len)).astype("float32")
        mask[0], mask[1, 0] = -np.inf, -np.inf
        return mask, "float", (0, 0, k_len, 1)
    if kind == "column":
        mask = rng.standard_normal((q_len, 1)).astype("float32")
        return mask, "float", (0, 0, 1, 0)
    return None, "", (0, 0, 0, 0)


def check(
    rng, batch, heads, q_len, k_len, d, dv=0, kv_heads=0, causal=False, mask="", dtype="float32",
    bound=3e-6, noisy=False,
):  # fmt: skip
    shapes = [(heads, q_len, d), (kv_heads or heads, k_len, d)]
    shapes += [(kv_heads or heads, k_len, dv or d), (heads, q_len, dv or d)]
    q, k, v, do = (rng.standard_normal((batch, *s)).astype(dtype) for s in shapes)
    given, kind, strides = make_mask(mask, rng, batch, q_len, k_len)
    noise = (rng.random((batch, heads, q_len, k_len)) > 0.3).astype(dtype) / 0.7
    noise = noise.astype(dtype)
    expected = reference(q, k, v, do, causal, given, noise if noisy else 1.0)
    spec = AttentionSpec(
        batch, heads, q_len, k_len, d, dv, kv_heads, causal, 0.0, kind, strides, dtype=dtype,
        noise=noisy,
    )  # fmt: skip
    outs = [Guarded(a.shape, dtype) for a in (do, q, k, v)]
    lse = Guarded((batch, heads, q_len), dtype)
    extra = [a.ctypes.data for a in (given, noise if noisy else None) if a is not None]
    addresses = [a.ctypes.data for a in (q, k, v)]
    templates.attention_forward(spec)(*addresses, outs[0].address, lse.address, *extra)
    lse.check()
    addresses += [outs[0].address, do.ctypes.data, lse.address]
    templates.attention_backward(spec)(*addresses, *[g.address for g in outs[1:]], *extra)
    for got, right in zip(outs, expected, strict=True):
        assert relative(got.check(), right) < bound


CASES = [
    dict(batch=2, heads=3, q_len=40, k_len=40, d=16),
    dict(batch=2, heads=3, q_len=40, k_len=40, d=16, causal=True),
    dict(batch=1, heads=2, q_len=133, k_len=133, d=64, causal=True),
    dict(batch=1, heads=2, q_len=7, k_len=133, d=20, dv=33),
    dict(batch=2, heads=4, q_len=50, k_len=70, d=24, kv_heads=2, mask="bool"),
    dict(batch=1, heads=2, q_len=50, k_len=50, d=32, mask="float"),
    dict(batch=1, heads=2, q_len=20, k_len=30, d=8, mask="column"),
    dict(batch=2, heads=2, q_len=33, k_len=65, d=8, mask="keys", causal=True),
    dict(batch=1, heads=1, q_len=1, k_len=1, d=1),
    dict(batch=1, heads=2, q_len=70, k_len=30, d=16, causal=True),
    dict(batch=2, heads=3, q_len=40, k_len=41, d=16, noisy=True),
    dict(batch=1, heads=4, q_len=70, k_len=133, d=20, kv_heads=2, causal=True, noisy=True),
    dict(batch=2, heads=2, q_len=33, k_len=65, d=8, mask="bool", noisy=True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c.values())))
def test_attention(rng, case):
    check(rng, **case)


def test_float64(rng):
    check(rng, 1, 2, 20, 64, 64, causal=True, dtype="float64", bound=1e-13)


def test_every_level_of_features(level, rng):
    check(rng, 1, 2, 35, 41, 20, causal=True)
    check(rng, 1, 2, 9, 40, 12, mask="bool", noisy=True)


def test_fused_projection(rng):
    """q, k and v are slices of one [batch, row, 3, head, d]; so are their gradients."""
    batch, heads, rows, d = 2, 4, 70, 16
    qkv = rng.standard_normal((batch, rows, 3, heads, d)).astype("float32")
    do = rng.standard_normal((batch, rows, heads, d)).astype("float32")
    q, k, v = (qkv[:, :, i].swapaxes(1, 2) for i in range(3))
    expected = reference(q, k, v, do.swapaxes(1, 2), True, None)
    fused, plain = (rows * 3 * heads * d, d, 3 * heads * d), (rows * heads * d, d, heads * d)
    names = ("q", "k", "v", "dq", "dk", "dv")
    strides = {f"{n}_strides": fused for n in names} | dict(o_strides=plain, do_strides=plain)
    spec = AttentionSpec(batch, heads, rows, rows, d, causal=True, **strides)
    o, dqkv, lse = Guarded(do.shape), Guarded(qkv.shape), Guarded((batch, heads, rows))
    step = heads * d * 4
    ins = [qkv.ctypes.data + i * step for i in range(3)]
    outs = [dqkv.address + i * step for i in range(3)]
    templates.attention_forward(spec)(*ins, o.address, lse.address)
    templates.attention_backward(spec)(*ins, o.address, do.ctypes.data, lse.address, *outs)
    got = [o.check().swapaxes(1, 2), *(dqkv.check()[:, :, i].swapaxes(1, 2) for i in range(3))]
    for a, b in zip(got, expected, strict=True):
        assert relative(a, b) < 3e-6

"""Attention and its backward pass by generated kernels."""

from __future__ import annotations

from flambeau.core import dtype as dtypes
from flambeau.core.spec import Spec
from flambeau.eager.native.call import NativeCall

KINDS = (dtypes.float32, dtypes.float64, dtypes.bfloat16)
MASKS = {dtypes.bool: "bool", dtypes.float32: "float", dtypes.float64: "float",
         dtypes.bfloat16: "bfloat16"}


def mask_strides(mask: Spec, shape: tuple) -> tuple[int, int, int, int]:
    """Strides of a mask expanded to (batch, head, query, key)."""
    lead = 4 - mask.ndim
    return tuple(0 if d < lead or mask.shape[d - lead] != n else mask.strides[d - lead]
                 for d, n in enumerate(shape))


def attention_spec(q: Spec, k: Spec, v: Spec, mask: Spec | None, noise: Spec | None, params: dict,
                   **strides):
    """The templates' description, or None where they do not apply."""
    tensors = (q, k, v)
    if any(s.dtype not in KINDS or s.numel == 0 or s.strides[-1] != 1 and s.shape[-1] != 1
           for s in tensors):
        return None
    narrow = q.dtype is dtypes.bfloat16
    if noise is not None and (narrow or noise.dtype is not q.dtype or not noise.is_contiguous):
        return None
    if k.dtype is not q.dtype or v.dtype is not q.dtype or narrow and k.shape[1] != q.shape[1]:
        return None
    if mask is not None and (mask.dtype not in (dtypes.bool, q.dtype) or mask.ndim > 4):
        return None
    from flambeau.codegen.templates import AttentionSpec

    shape = (*q.shape[:3], k.shape[2])
    return AttentionSpec(
        *q.shape[:3], k.shape[2], q.shape[3], v.shape[3], k.shape[1],
        noise=noise is not None, causal=params["causal"], scale=params["scale"],
        q_strides=q.strides[:3], k_strides=k.strides[:3], v_strides=v.strides[:3],
        mask="" if mask is None else MASKS[mask.dtype], dtype=q.dtype.name,
        mask_strides=(0, 0, 0, 0) if mask is None else mask_strides(mask, shape), **strides)


def attention_call(primitive, specs: list, params: dict, result) -> NativeCall | None:
    if primitive.name == "attention":
        return _forward(specs, params, result)
    return _backward(specs, params, result) if primitive.name == "attention_backward" else None


def _forward(specs: list, params: dict, result: tuple) -> NativeCall | None:
    found = attention_spec(*specs, params, o_strides=result[0].strides[:3])
    if found is None:
        return None
    from flambeau.codegen.templates import attention_forward

    arguments = (0, 1, 2, ~0, ~1, *(k for k in (3, 4) if specs[k] is not None))
    return NativeCall(attention_forward(found), arguments, result, several=True)


def _backward(specs: list, params: dict, result: tuple) -> NativeCall | None:
    g, q, k, v, mask, noise, out, lse = specs
    if g.strides[-1] != 1 or lse.dtype is not q.dtype.wide:
        return None
    found = attention_spec(
        q, k, v, mask, noise, params, o_strides=out.strides[:3], do_strides=g.strides[:3],
        dq_strides=result[0].strides[:3], dk_strides=result[1].strides[:3],
        dv_strides=result[2].strides[:3])
    if found is None:
        return None
    from flambeau.codegen.templates import attention_backward

    arguments = (1, 2, 3, 6, 0, 7, ~0, ~1, ~2, *(k for k in (4, 5) if specs[k] is not None))
    return NativeCall(attention_backward(found), arguments, result, several=True)

"""What scaled dot product attention computes, and where its operands' elements are.

    o = (softmax(scale q k^T + mask) * noise) v      for each batch and head

A row whose keys are all masked gives zeros.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

Strides = tuple[int, int, int]  # batch, head, row; elements of a row are contiguous


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """Sizes: `heads` of q share `kv_heads` of k and v evenly; d elements in q and k, `dv` in v.

    Empty strides are those of contiguous [batch, head, row, d]. `mask` is ``""``, ``"bool"``
    (bytes, true takes part), ``"float"`` (added, in the dtype computed in) or ``"bfloat16"``; its
    strides (batch, head, query, key) may be 0.
    With `noise` each weight has a factor, contiguous [batch, head, query, key]: dropout.
    `causal` lets query i see keys up to i. `scale` 0 stands for 1 / sqrt(d).
    """

    batch: int
    heads: int
    q_len: int
    k_len: int
    d: int
    dv: int = 0
    kv_heads: int = 0
    causal: bool = False
    scale: float = 0.0
    mask: str = ""
    mask_strides: tuple[int, int, int, int] = (0, 0, 0, 0)
    q_strides: Strides | tuple[()] = ()
    k_strides: Strides | tuple[()] = ()
    v_strides: Strides | tuple[()] = ()
    o_strides: Strides | tuple[()] = ()
    do_strides: Strides | tuple[()] = ()
    dq_strides: Strides | tuple[()] = ()
    dk_strides: Strides | tuple[()] = ()
    dv_strides: Strides | tuple[()] = ()
    dtype: str = "float32"
    noise: bool = False

    @property
    def value_d(self) -> int:
        return self.dv or self.d

    @property
    def key_heads(self) -> int:
        return self.kv_heads or self.heads

    @property
    def group(self) -> int:
        """Heads of q that share one of k and v."""
        return self.heads // self.key_heads

    @property
    def factor(self) -> float:
        return self.scale or 1 / math.sqrt(self.d)

    def strides(self, name: str) -> Strides:
        """Strides of q, k, v, o, do, dq, dk or dv."""
        given = getattr(self, f"{name}_strides")
        if given:
            return given
        rows = self.k_len if name in ("k", "v", "dk", "dv") else self.q_len
        heads = self.key_heads if name in ("k", "v", "dk", "dv") else self.heads
        width = self.value_d if name in ("v", "o", "do", "dv") else self.d
        return heads * rows * width, rows * width, width

    @property
    def flops(self) -> float:
        """Of the forward pass, without the masked half when causal."""
        pairs = self.batch * self.heads * self.q_len * self.k_len
        return 2.0 * pairs * (self.d + self.value_d) * (0.5 if self.causal else 1)

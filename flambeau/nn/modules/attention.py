"""Multi-head attention (Vaswani et al., 2017)."""

from __future__ import annotations

from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.linear import NonDynamicallyQuantizableLinear
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor, empty

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """softmax(Q K^T / sqrt(head size)) V for each head; the heads' results joined and projected.

    query (targets, batch, embed_dim), key and value (sources, batch, kdim or vdim); with
    batch_first the batch is first; without batch the middle dimension is missing.
    """

    __constants__ = ["batch_first"]
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_heads(embed_dim, num_heads)
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        kind = {"device": device, "dtype": dtype}
        if self._qkv_same_embed_dim:
            weights = {"in_proj_weight": (3 * embed_dim, embed_dim)}
        else:
            weights = {
                "q_proj_weight": (embed_dim, embed_dim),
                "k_proj_weight": (embed_dim, self.kdim),
                "v_proj_weight": (embed_dim, self.vdim),
            }
        for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_weight"):
            shape = weights.get(name)
            self.register_parameter(name, shape and Parameter(empty(shape, **kind)))
        in_bias = Parameter(empty(3 * embed_dim, **kind)) if bias else None
        self.register_parameter("in_proj_bias", in_bias)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **kind)
        if add_bias_kv:
            self.bias_k = Parameter(empty((1, 1, embed_dim), **kind))
            self.bias_v = Parameter(empty((1, 1, embed_dim), **kind))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw the input projections, clear the biases, draw bias_k and bias_v."""
        for weight in (
            self.in_proj_weight,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
        ):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(output, weights or None).

        key_padding_mask (batch, sources) and attn_mask (targets, sources): True, or -inf, where
        not to look. need_weights=False lets the attention be computed without its matrix.
        """
        batched = query.dim() == 3
        if self.batch_first and batched:
            query, key, value = self._steps_first(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        if self.batch_first and batched:
            output = output.transpose(1, 0)
        return output, weights

    @staticmethod
    def _steps_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The three with steps before batch; those that are one tensor stay one."""
        moved: dict[int, Tensor] = {}
        for tensor in (query, key, value):
            if id(tensor) not in moved:
                moved[id(tensor)] = tensor.transpose(1, 0)
        return moved[id(query)], moved[id(key)], moved[id(value)]


def check_heads(embed_dim: int, num_heads: int) -> None:
    """Refuse widths that the heads cannot share."""
    if embed_dim <= 0 or num_heads <= 0:
        raise ValueRangeError(
            complaint(
                "MultiheadAttention",
                "embed_dim and num_heads must be greater than 0",
                {"embed_dim": embed_dim, "num_heads": num_heads},
            )
        )
    if embed_dim % num_heads:
        raise AssertionError(
            complaint(
                "MultiheadAttention",
                "embed_dim must be divisible by num_heads",
                {"embed_dim": embed_dim, "num_heads": num_heads},
            )
        )

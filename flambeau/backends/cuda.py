"""`torch.backends.cuda`: kept, and mostly without effect; there is no CUDA.

`matmul.allow_tf32` and `torch.set_float32_matmul_precision` are one setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from flambeau.tensor import numerics


class MatmulSettings:
    """`backends.cuda.matmul`: how matrix products may be rounded on a GPU."""

    def __init__(self) -> None:
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False
        self.fp32_precision = "none"

    @property
    def allow_tf32(self) -> bool:
        """May float32 products be rounded to TF32?"""
        return numerics.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        numerics.set_float32_matmul_precision("high" if value else "highest")


matmul = MatmulSettings()
cufft_plan_cache = SimpleNamespace(size=0, max_size=0, clear=lambda: None)
_attention = dict(flash=True, mem_efficient=True, math=True, cudnn=True, reduction=False)


def is_built() -> bool:
    """Is CUDA built in? No."""
    return False


is_flash_attention_available = is_ck_sdpa_available = is_built


def _switch(name: str, kind: str) -> tuple[Any, Any]:
    """`<name>_sdp_enabled()` and `enable_<name>_sdp(enabled)`."""

    def get() -> bool:
        return _attention[kind]

    def set(enabled: bool) -> None:
        _attention[kind] = bool(enabled)

    return get, set


flash_sdp_enabled, enable_flash_sdp = _switch("flash", "flash")
math_sdp_enabled, enable_math_sdp = _switch("math", "math")
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _switch("mem_efficient", "mem_efficient")
cudnn_sdp_enabled, enable_cudnn_sdp = _switch("cudnn", "cudnn")
fp16_bf16_reduction_math_sdp_allowed, allow_fp16_bf16_reduction_math_sdp = _switch(
    "fp16_bf16_reduction_math", "reduction"
)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Within the block, attention may be computed in these ways; one serves for all."""
    before = dict(_attention)
    _attention.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _attention.update(before)


def preferred_linalg_library(backend: Any = None) -> str:
    """The library of matrix decompositions; kept by name, and without effect."""
    return "default" if backend is None else str(backend)


preferred_blas_library = preferred_rocm_fa_library = preferred_linalg_library


def can_use_flash_attention(params: Any = None, debug: bool = False) -> bool:
    """Would PyTorch's flash attention run on the GPU? There is none."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention

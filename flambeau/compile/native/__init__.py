"""The native backend: runs of loop equations become fused kernels; products and convolutions keep
the kernels that eager mode has for them; whatever is left runs as eager operations."""

from flambeau.compile.native.runner import native_runner

__all__ = ["native_runner"]

"""`torch.backends.cudnn`: kept, and without effect; there is no cuDNN."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from flambeau.backends.switches import Precision, changed, module_of

enabled = True
deterministic = False
benchmark = False
benchmark_limit: int | None = None
allow_tf32 = True
fp32_precision = "none"
conv = Precision(fp32_precision="tf32")
rnn = Precision(fp32_precision="tf32")


def is_available() -> bool:
    """Is there a cuDNN? No."""
    return False


def version() -> int | None:
    """Its version: None, there is none."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Would cuDNN take this tensor? There is none."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = None,
) -> tuple:
    """Set those that are given; returns what they were."""
    names = ["enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32"]
    names += ["fp32_precision"]
    module = module_of(__name__)
    before = tuple(getattr(module, name) for name in names)
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision)
    vars(module).update({n: v for n, v in zip(names, given) if v is not None})
    return before


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """Within the block, the settings are these."""
    return changed(module_of(__name__), dict(locals()))

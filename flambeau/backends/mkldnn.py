"""`torch.backends.mkldnn`: kept, and without effect; there is no oneDNN."""

from __future__ import annotations

from contextlib import AbstractContextManager

from flambeau.backends.mkl import verbose as verbose
from flambeau.backends.switches import Precision, changed, module_of

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
matmul = Precision(fp32_precision="none")
conv = Precision(fp32_precision="none")
rnn = Precision(fp32_precision="none")


def is_available() -> bool:
    """Is there a oneDNN? No."""
    return False


def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """Within the block, the settings are these."""
    return changed(module_of(__name__), dict(locals()))

"""`torch.backends.nnpack`: there is no NNPACK."""

from __future__ import annotations

from contextlib import AbstractContextManager

from flambeau.backends.switches import changed, module_of

enabled = False


def is_available() -> bool:
    """Is there an NNPACK? No."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Set it; returns what it was."""
    global enabled
    before, enabled = enabled, _enabled
    return (before,)


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """Within the block, the setting is this."""
    return changed(module_of(__name__), {"enabled": enabled})

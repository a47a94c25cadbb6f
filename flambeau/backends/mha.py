"""`torch.backends.mha`: PyTorch's fast path of transformer layers; flambeau has one path."""

_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """What was set."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Kept, and without effect."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value

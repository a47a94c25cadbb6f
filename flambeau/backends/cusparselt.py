"""`torch.backends.cusparselt`: there is no cuSPARSELt."""

from __future__ import annotations


def is_available() -> bool:
    """Is there a cuSPARSELt? No."""
    return False


def version() -> int | None:
    """Its version: None, there is none."""
    return None


def get_max_alg_id() -> int | None:
    """Its algorithms: None, there are none."""
    return None

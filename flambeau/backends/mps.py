"""`torch.backends.mps`: Apple GPUs, of which there are none."""

from flambeau.devices.absent import refused


def is_available() -> bool:
    """Is there an Apple GPU? No."""
    return False


is_built = is_available


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Is this such a macOS, with an Apple GPU? No."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Is this such a macOS, with an Apple GPU? No."""
    return False


get_name = refused("mps", "get_name")
get_core_count = refused("mps", "get_core_count")

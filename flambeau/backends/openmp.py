"""`torch.backends.openmp`: threads come from flambeau's own pool."""


def is_available() -> bool:
    """Is there an OpenMP? No."""
    return False

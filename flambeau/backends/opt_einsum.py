"""`torch.backends.opt_einsum`: the order of contractions in einsum; flambeau's own."""

enabled = True
strategy = "auto"


def is_available() -> bool:
    """Is the package opt_einsum used? No."""
    return False


def get_opt_einsum() -> None:
    """The package opt_einsum: not used."""
    return None

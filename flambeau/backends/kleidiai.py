"""`torch.backends.kleidiai`: there is no KleidiAI."""


def is_available() -> bool:
    """Is there a KleidiAI? No."""
    return False

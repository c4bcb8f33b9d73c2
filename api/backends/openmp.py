"""`torch.backends.openmp`: not used."""


def is_available() -> bool:
    """False."""
    return False

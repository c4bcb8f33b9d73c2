"""`torch.backends.mkl`: not used."""


def is_available() -> bool:
    """False."""
    return False

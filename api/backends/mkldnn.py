"""`torch.backends.mkldnn`: not used."""


def is_available() -> bool:
    """False."""
    return False

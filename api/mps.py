"""`torch.mps`: there is no such device."""


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing."""


def empty_cache() -> None:
    """Does nothing."""

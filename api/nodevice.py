"""The functions of a device that is never there: `torch.mps` and `torch.xpu` have them."""


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Does nothing."""

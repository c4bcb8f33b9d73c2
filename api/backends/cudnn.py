"""`torch.backends.cudnn`: settings that change nothing."""

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True
benchmark_limit = 10


def is_available() -> bool:
    """False."""
    return False


def version() -> None:
    """None."""
    return None


def is_acceptable(tensor: object) -> bool:
    """False."""
    return False

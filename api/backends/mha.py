"""`torch.backends.mha`: attention has one path; the setting is kept."""

_fastpath = [True]


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` was told."""
    return _fastpath[0]


def set_fastpath_enabled(value: bool) -> None:
    """Accepted."""
    _fastpath[0] = value

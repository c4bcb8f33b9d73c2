"""`torch.accelerator`: there is none."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """None."""
    return None


def _missing(*args: Any, **kwargs: Any) -> Any:
    """Raises, as torch without an accelerator does."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


current_device_index = set_device_index = synchronize = current_stream = set_stream = _missing
current_device_idx = set_device_idx = empty_cache = empty_host_cache = get_memory_info = _missing
memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = _missing
memory_stats = reset_peak_memory_stats = reset_accumulated_memory_stats = _missing
get_device_capability = _missing

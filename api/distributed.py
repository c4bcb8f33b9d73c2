"""`torch.distributed`: there is one process."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def _missing(*args: Any, **kwargs: Any) -> Any:
    """Raises: there is no communication between processes."""
    raise RuntimeError("torch.distributed is not available: there is no communication between "
                       "processes; run in one process")  # fmt: skip


init_process_group = destroy_process_group = get_rank = get_world_size = all_reduce = _missing
barrier = broadcast = all_gather = reduce = new_group = _missing

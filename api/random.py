"""`torch.random`: the random state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .tracer.random import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_rng_state"]  # fmt: skip


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Random numbers drawn in the block leave the stream as it was."""
    before = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if before is not None:
            set_rng_state(before)

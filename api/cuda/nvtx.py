"""`torch.cuda.nvtx`: marks for NVIDIA's profiler, which needs CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _missing(*args: Any, **kwargs: Any) -> Any:
    """Raises, as torch without CUDA does."""
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


range_push = range_pop = range_start = range_end = mark = _missing


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A block with a name."""
    range_push(msg.format(*args, **kwargs))
    yield

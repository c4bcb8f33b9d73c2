"""`torch.multiprocessing`: Python's multiprocessing, and `spawn`."""

from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *  # noqa: F403
from typing import Any


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted: tensors are copied to other processes."""


def get_sharing_strategy() -> str:
    """How tensors reach other processes: they are copied."""
    return "file_system"


def spawn(fn: Any, args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
          daemon: bool = False, start_method: str = "spawn") -> Any:  # fmt: skip
    """spawn(fn, args, nprocs): runs `fn(rank, *args)` in several processes."""
    context = _python.get_context(start_method)
    processes = [context.Process(target=fn, args=(rank, *args), daemon=daemon)
                 for rank in range(nprocs)]  # fmt: skip
    for process in processes:
        process.start()
    if not join:
        return processes
    for process in processes:
        process.join()
    for rank, process in enumerate(processes):
        if process.exitcode:
            raise RuntimeError(f"process {rank} terminated with exit code {process.exitcode}; "
                               "see what it printed")  # fmt: skip
    return None

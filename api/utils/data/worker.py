"""Worker processes of a DataLoader: what runs in them, and how errors come back."""

from __future__ import annotations

import multiprocessing
import queue
import random
import sys
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tracer.random import manual_seed

LOOK_EVERY = 5.0  # seconds after which an idle worker looks for the main process, as in torch


@dataclass(frozen=True)
class WorkerInfo:
    """What `get_worker_info()` tells in a worker process."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Here:
    """The worker this process is, if it is one."""

    info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Facts about the worker process, or None in the main process."""
    return _Here.info


class KeyErrorMessage(str):
    """Prints with its line breaks: KeyError shows the repr of its argument."""

    def __repr__(self) -> str:
        return self


class ExceptionWrapper:
    """An exception with its traceback, on its way to the main process."""

    def __init__(self, where: str = "in background"):
        kind, error, trace = sys.exc_info()
        self.kind: Any = kind
        self.text = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> None:
        """Raises the same kind of exception with the original traceback in its message."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            message = KeyErrorMessage(message)
        try:
            error = self.kind(message)
        except Exception:  # its constructor takes something else
            raise RuntimeError(message) from None
        raise error


class StreamEnded:
    """A worker's stream has no more samples."""


class Resume:
    """The loader starts another epoch with the same workers."""


@dataclass
class Task:
    """What a worker needs to know at its start."""

    fetcher: Any  # the class
    dataset: Any
    batched: bool
    collate_fn: Any
    drop_last: bool
    base_seed: int
    init_fn: Any
    id: int
    count: int

    def make_fetcher(self) -> Any:
        return self.fetcher(self.dataset, self.batched, self.collate_fn, self.drop_last)


def seed_worker(task: Task) -> int:
    """Every worker has its own random numbers, given by the loader's seed."""
    seed = task.base_seed + task.id
    random.seed(seed)
    manual_seed(seed)
    low, high = task.base_seed & 0xFFFFFFFF, task.base_seed >> 32
    np.random.seed(np.random.SeedSequence([task.id, low, high, 0]).generate_state(4))
    return seed


def run_worker(task: Task, orders: Any, results: Any) -> None:
    """Serves orders (number, index) until None comes; errors are results as well."""
    seed = seed_worker(task)
    _Here.info = WorkerInfo(task.id, task.count, seed, task.dataset)
    where = f"in DataLoader worker process {task.id}"
    failure = fetcher = None
    try:
        if task.init_fn is not None:
            task.init_fn(task.id)
        fetcher = task.make_fetcher()
    except Exception:
        failure = ExceptionWrapper(where)
    try:
        while (order := next_order(orders)) is not None:
            if isinstance(order, Resume):
                fetcher = task.make_fetcher()
                continue
            number, index = order
            results.put((number, task.id, failure or fetch(fetcher, index, where)))
    except KeyboardInterrupt:
        pass  # the main process reports it


def next_order(orders: Any) -> Any:
    """The next order; None, the end, also where the main process is gone without a word."""
    parent = multiprocessing.parent_process()
    while True:
        try:
            return orders.get(timeout=LOOK_EVERY)
        except queue.Empty:
            if parent is not None and not parent.is_alive():
                return None


def fetch(fetcher: Any, index: Any, where: str) -> Any:
    """One batch, or what went wrong."""
    try:
        return fetcher.fetch(index)
    except StopIteration:
        if hasattr(fetcher, "stream"):
            return StreamEnded()
        return ExceptionWrapper(where)
    except Exception:
        return ExceptionWrapper(where)

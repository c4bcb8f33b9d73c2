"""Reading by worker processes: orders go out ahead, results are handed over in order."""

from __future__ import annotations

import multiprocessing
import os
import queue
import time
from typing import Any

from .dataloader import LoaderIterator
from .worker import ExceptionWrapper, Resume, StreamEnded, Task, run_worker

_POLL = 5.0  # seconds between looks at whether the workers live


class WorkerIterator(LoaderIterator):
    """Hands out the results of worker processes in the order of the sampler."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        count = loader.num_workers
        self.results = context.Queue()
        self.orders = [context.Queue() for _ in range(count)]
        self.workers: list[Any] = []
        self.process = os.getpid()
        for k, orders in enumerate(self.orders):
            task = Task(
                loader._fetcher,
                loader.dataset,
                loader._auto_collation,
                loader.collate_fn,
                loader.drop_last,
                self.base_seed,
                loader.worker_init_fn,
                k,
                count,
            )
            worker = context.Process(target=run_worker, args=(task, orders, self.results),
                                     daemon=True)  # fmt: skip
            worker.start()
            self.workers.append(worker)
        self.start()

    def start(self) -> None:
        self.sent = self.due = 0  # numbers of the next order and of the next result to hand out
        self.turn = 0
        self.owner: dict[int, int] = {}  # orders under way, and whose they are
        self.ready: dict[int, Any] = {}
        self.active = set(range(len(self.workers)))
        for _ in range(self.loader.prefetch_factor * len(self.workers)):
            self.send()

    def reset(self) -> None:
        """Another pass with the same workers."""
        while self.owner:  # results of a pass that was left early
            number, _, _ = self.receive()
            self.owner.pop(number, None)
        self.indices = iter(self.loader._index_sampler)
        self.yielded = 0
        for orders in self.orders:
            orders.put(Resume())
        self.start()

    def send(self) -> None:
        """Orders the next batch from the next worker that still has data."""
        if not self.active:
            return
        try:
            index = next(self.indices)
        except StopIteration:
            return
        while self.turn not in self.active:
            self.turn = (self.turn + 1) % len(self.workers)
        self.owner[self.sent] = self.turn
        self.orders[self.turn].put((self.sent, index))
        self.turn = (self.turn + 1) % len(self.workers)
        self.sent += 1

    def receive(self) -> tuple[int, int, Any]:
        limit = self.loader.timeout
        end = time.monotonic() + limit
        while True:
            try:
                return self.results.get(timeout=min(_POLL, limit) if limit else _POLL)
            except queue.Empty:
                dead = [str(w.pid) for w in self.workers if not w.is_alive()]
                if dead:
                    self.shut_down()
                    raise RuntimeError(f"DataLoader worker (pid(s) {', '.join(dead)}) exited "
                                       "unexpectedly") from None  # fmt: skip
                if limit and time.monotonic() >= end:
                    raise RuntimeError(f"DataLoader timed out after {limit} seconds; use a larger "
                                       "timeout") from None  # fmt: skip

    def next_data(self) -> Any:
        while self.due < self.sent:
            if self.due not in self.ready:
                number, worker, data = self.receive()
                self.owner.pop(number, None)
                self.ready[number] = data
                if isinstance(data, StreamEnded):
                    self.active.discard(worker)
                    self.send()
                continue
            data = self.ready.pop(self.due)
            self.due += 1
            if isinstance(data, StreamEnded):
                continue
            self.send()
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            return data
        if not self.loader.persistent_workers:
            self.shut_down()
        raise StopIteration

    def shut_down(self) -> None:
        """Ends the workers."""
        workers, self.workers = self.workers, []
        for orders in self.orders:
            orders.put(None)
            orders.close()
        for worker in workers:
            worker.join(timeout=_POLL)
            if worker.is_alive():
                worker.terminate()
        for orders in [*self.orders, self.results]:
            orders.cancel_join_thread()
        self.orders = []

    def __del__(self) -> None:
        # a worker that was forked later has a copy of this object: it must not end its siblings
        if getattr(self, "process", None) == os.getpid():
            for worker in self.workers:
                worker.terminate()

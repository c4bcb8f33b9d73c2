"""`DataLoader`: batches of a dataset, read here or by worker processes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .fetch import MapFetcher, StreamFetcher
from .sampler import BatchSampler, RandomSampler, SequentialSampler, random_seed

T_co = TypeVar("T_co", covariant=True)
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Endless:
    """The sampler of a stream: asks for one more, always."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """DataLoader(dataset, batch_size=1, shuffle=None, num_workers=0, collate_fn=None, ...)."""

    _initialized = False

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 collate_fn: Any = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Any = None,
                 multiprocessing_context: Any = None, generator: Any = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False,
                 pin_memory_device: str = "", in_order: bool = True) -> None:  # fmt: skip
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._is_stream = isinstance(dataset, IterableDataset)
        check_sampling(self._is_stream, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if self._is_stream:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation
                                         else default_convert)  # fmt: skip
        self.persistent_workers = persistent_workers
        self._iterator: Any = None
        self._reported_length: int | None = None
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is "
                             "initialized")  # fmt: skip
        object.__setattr__(self, name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    @property
    def _fetcher(self) -> Any:
        return StreamFetcher if self._is_stream else MapFetcher

    def __iter__(self) -> Any:
        if not self.num_workers:
            return LocalIterator(self)
        from .parallel import WorkerIterator

        if not self.persistent_workers:
            return WorkerIterator(self)
        if self._iterator is None:
            self._iterator = WorkerIterator(self)
        else:
            self._iterator.reset()
        return self._iterator

    def __len__(self) -> int:
        if not self._is_stream:
            return len(self._index_sampler)
        length = self._reported_length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def check_workers(num_workers: int, timeout: float, prefetch_factor: Any, persistent: bool) -> None:
    """torch's errors for the settings of workers."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable "
                         "multiprocessing.")  # fmt: skip
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 "
            "to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def check_sampling(is_stream: bool, batch_size: Any, shuffle: Any, sampler: Any,
                   batch_sampler: Any, drop_last: bool) -> None:  # fmt: skip
    """torch's errors for options that exclude each other."""
    if is_stream:
        given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
        for name, value in given.items():
            if value is not None:
                raise ValueError("DataLoader with IterableDataset: expected unspecified "
                                 f"{name} option, but got {name}={value}")  # fmt: skip
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (
        batch_size != 1 or shuffle or sampler is not None or drop_last
    ):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, "
                         "sampler, and drop_last")  # fmt: skip
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive "
                         "with drop_last")  # fmt: skip


class LoaderIterator:
    """One pass over a loader. Its seed is drawn when it is made, as torch does."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader = loader
        if loader.pin_memory:
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then "
                          "device pinned memory won't be used.", stacklevel=3)  # fmt: skip
        self.indices = iter(loader._index_sampler)
        self.base_seed = random_seed(loader.generator)
        self.yielded = 0

    def __iter__(self) -> Any:
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    def __next__(self) -> Any:
        data = self.next_data()
        self.yielded += 1
        reported = self.loader._reported_length
        if self.loader._is_stream and reported is not None and self.yielded > reported:
            warnings.warn(
                f"Length of IterableDataset {self.loader.dataset} was reported to be {reported}"
                f"(when accessing len(dataloader)), but {self.yielded} samples have been fetched. ",
                stacklevel=2,
            )
        return data

    def next_data(self) -> Any:
        raise NotImplementedError


class LocalIterator(LoaderIterator):
    """Reads in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self.fetcher = loader._fetcher(loader.dataset, loader._auto_collation, loader.collate_fn,
                                       loader.drop_last)  # fmt: skip

    def next_data(self) -> Any:
        return self.fetcher.fetch(next(self.indices))

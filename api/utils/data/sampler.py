"""Samplers: in which order a dataset is read. Random ones draw as torch's do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ... import multinomial
from ...ir.types import float64, int64
from ...tracer.creation import as_tensor
from ...tracer.discrete import random_integers
from ...tracer.generator import Generator
from ...tracer.random import pick, randint, randperm
from ...unwritten import unwritten

T_co = TypeVar("T_co", covariant=True)


def random_seed(generator: Any = None) -> int:
    """A seed drawn from a generator, as `empty((), dtype=int64).random_()`."""
    return int(random_integers(pick(generator), (), "int64"))


class Sampler(Generic[T_co]):
    """Base of samplers: an iterable of indices."""

    def __init__(self, data_source: Any = None) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise unwritten(self, "__iter__")


class SequentialSampler(Sampler[int]):
    """SequentialSampler(data_source): 0, 1, 2, ..."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """RandomSampler(data_source, replacement=False, num_samples=None, generator=None)."""

    def __init__(self, data_source: Any, replacement: bool = False,
                 num_samples: int | None = None, generator: Any = None) -> None:  # fmt: skip
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError("replacement should be a boolean value, but got "
                            f"replacement={replacement}")  # fmt: skip
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError("num_samples should be a positive integer value, but got "
                             f"num_samples={self.num_samples}")  # fmt: skip

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = Generator().manual_seed(random_seed())
        if self.replacement:
            for chunk in [32] * (count // 32) + [count % 32]:
                yield from randint(size, (chunk,), dtype=int64, generator=generator).tolist()
        else:
            for _ in range(count // size):
                yield from randperm(size, generator=generator).tolist()
            yield from randperm(size, generator=generator).tolist()[: count % size]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """SubsetRandomSampler(indices, generator=None)."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for k in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[k]

    def __len__(self) -> int:
        return len(self.indices)


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
    return value


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} should be a boolean value, but got {name}={value}")
    return value


class WeightedRandomSampler(Sampler[int]):
    """WeightedRandomSampler(weights, num_samples, replacement=True, generator=None)."""

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True,
                 generator: Any = None) -> None:  # fmt: skip
        self.num_samples = _positive("num_samples", num_samples)
        self.replacement = _boolean("replacement", replacement)
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError("weights should be a 1d sequence but given weights have shape "
                             f"{tuple(self.weights.shape)}")  # fmt: skip
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement,
                            generator=self.generator)  # fmt: skip
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """BatchSampler(sampler, batch_size, drop_last): lists of indices."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        self.batch_size = _positive("batch_size", batch_size)
        self.drop_last = _boolean("drop_last", drop_last)
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[Any]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class DistributedSampler(Sampler[int]):
    """DistributedSampler(dataset, num_replicas, rank, shuffle=True, seed=0, drop_last=False)."""

    def __init__(self, dataset: Any, num_replicas: int | None = None, rank: int | None = None,
                 shuffle: bool = True, seed: int = 0, drop_last: bool = False) -> None:  # fmt: skip
        if num_replicas is None or rank is None:
            from ...distributed import get_rank, get_world_size

            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, "
                             f"{num_replicas - 1}]")  # fmt: skip
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        left = len(dataset) - num_replicas if drop_last and len(dataset) % num_replicas else (
            len(dataset))  # fmt: skip
        self.num_samples = math.ceil(left / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            indices = randperm(count, generator=generator).tolist()
        else:
            indices = list(range(count))
        if not self.drop_last:
            indices = (indices * math.ceil(self.total_size / count))[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another epoch, another order."""
        self.epoch = epoch

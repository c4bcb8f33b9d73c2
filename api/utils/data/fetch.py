"""Reading one batch from a dataset."""

from __future__ import annotations

from typing import Any


class MapFetcher:
    """Batches of a dataset with indices."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Any, drop_last: bool):
        self.dataset, self.batched, self.collate_fn = dataset, batched, collate_fn

    def fetch(self, index: Any) -> Any:
        if not self.batched:
            data = self.dataset[index]
        elif getattr(self.dataset, "__getitems__", None):
            data = self.dataset.__getitems__(index)
        else:
            data = [self.dataset[k] for k in index]
        return self.collate_fn(data)


class StreamFetcher:
    """Batches of a stream; StopIteration at its end."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Any, drop_last: bool):
        self.stream, self.batched = iter(dataset), batched
        self.collate_fn, self.drop_last = collate_fn, drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate_fn(next(self.stream))
        data = []
        for _ in index:
            try:
                data.append(next(self.stream))
            except StopIteration:
                self.ended = True
                break
        if not data or (self.drop_last and len(data) < len(index)):
            raise StopIteration
        return self.collate_fn(data)

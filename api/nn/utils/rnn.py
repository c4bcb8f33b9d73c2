"""Sequences of unequal length: padding and packing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ... import cat, stack
from ...ir.types import int64
from ...tracer.creation import as_tensor, empty_like, full
from ...tracer.ranges import arange
from ...tracer.tensor import Tensor, require_cpu


class PackedSequence_(NamedTuple):
    """The fields of a PackedSequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences without padding: the rows of step 0, then those of step 1, and so on."""

    __slots__ = ()

    def __new__(cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None,
                unsorted_indices: Any = None) -> Any:  # fmt: skip
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, list | tuple) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The data in another dtype."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._replace(data=data)

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        """The sequence itself: it is on the CPU."""
        return self

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """Raises, as torch without CUDA does."""
        require_cpu("cuda")

    def double(self) -> Any:
        """The data as float64."""
        return self._replace(data=self.data.double())

    def float(self) -> Any:
        """The data as float32."""
        return self._replace(data=self.data.float())

    def half(self) -> Any:
        """The data as float16."""
        return self._replace(data=self.data.half())

    def long(self) -> Any:
        """The data as int64."""
        return self._replace(data=self.data.long())

    def int(self) -> Any:
        """The data as int32."""
        return self._replace(data=self.data.int())

    @property
    def is_cuda(self) -> bool:
        return False

    def is_pinned(self) -> bool:
        """False: there is no device to copy to."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another."""
    if permutation is None:
        return None
    inverse = empty_like(permutation)
    inverse[permutation] = arange(0, permutation.numel(), dtype=permutation.dtype)
    return inverse


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:  # fmt: skip
    """Drops the padding of a batch (T, B, *), or (B, T, *) with `batch_first`."""
    lengths = as_tensor(lengths, dtype=int64)
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    counts = lengths.tolist()
    _check_lengths(counts, input.size(1))
    batch_sizes = [sum(n > t for n in counts) for t in range(counts[0])]
    data = cat([input[t, :size] for t, size in enumerate(batch_sizes)], dim=0)
    return PackedSequence(data, as_tensor(batch_sizes), order, None)


def _check_lengths(counts: list[int], batch: int) -> None:
    if len(counts) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got "
                           f"{len(counts)} (batch_size={batch})")  # fmt: skip
    if min(counts, default=1) <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element "
                           "in 'lengths' that is <= 0")  # fmt: skip
    if counts != sorted(counts, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> Any:
    """The padded batch and the lengths of a packed one."""
    sizes = sequence.batch_sizes.tolist()
    steps, batch = len(sizes), sizes[0]
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    width = tuple(sequence.data.shape[1:])

    def filled(rows: int) -> Tensor:
        return full((rows, *width), padding_value, dtype=sequence.data.dtype)

    rows = []
    for part, size in zip(sequence.data.split(sizes, 0), sizes):
        rows.append(part if size == batch else cat([part, filled(batch - size)], dim=0))
    rows += [filled(batch)] * (steps - len(sizes))
    padded = stack(rows, dim=1 if batch_first else 0)
    ends = np.searchsorted(-np.asarray(sizes), -np.arange(batch), side="left")
    lengths = as_tensor(ends.tolist(), dtype=int64)
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back]


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:  # fmt: skip
    """Sequences of shape (L, *) as one batch, padded to the longest."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError("pad_sequence: Expected iterable for input sequences, but got arg of "
                           f"type: {type(sequences)}")  # fmt: skip
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError("Expected padding_side to be one of left or right, but got "
                           f"{padding_side}.")  # fmt: skip
    for k, item in enumerate(sequences):
        if not isinstance(item, Tensor):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got "
                            f"{type(item).__name__}")  # fmt: skip
    longest = max(item.size(0) for item in sequences)
    first = sequences[0]
    padded = []
    for item in sequences:
        missing = longest - item.size(0)
        if missing:
            shape = (missing, *first.shape[1:])
            filler = full(shape, padding_value, dtype=first.dtype)
            item = cat([item, filler] if padding_side == "right" else [filler, item], dim=0)
        padded.append(item)
    return stack(padded, dim=0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded batch."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences of unequal length."""
    sequences = list(sequences)
    lengths = as_tensor([item.size(0) for item in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)

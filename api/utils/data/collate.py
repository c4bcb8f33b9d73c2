"""Samples into batches: tensors are stacked, containers are kept."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ... import stack
from ...ir.types import float64
from ...tracer.creation import as_tensor, tensor
from ...tracer.tensor import Tensor

_ERROR = ("default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
          "found {}")  # fmt: skip


def _is_text_array(value: np.ndarray) -> bool:
    return value.dtype.kind in "SUOa"


def default_convert(data: Any) -> Any:
    """NumPy arrays become tensors; containers keep their type."""
    if isinstance(data, Tensor | str | bytes):
        return data
    if isinstance(data, np.ndarray | np.generic) and not isinstance(data, np.str_ | np.bytes_):
        return data if isinstance(data, np.ndarray) and _is_text_array(data) else as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        items = [default_convert(item) for item in data]
        return type(data)(*items) if hasattr(data, "_fields") else items
    if isinstance(data, Sequence):
        return _like_sequence(data, [default_convert(item) for item in data])
    return data


def _like_mapping(example: Any, values: dict[Any, Any]) -> Any:
    try:
        if isinstance(example, MutableMapping):
            made = copy.copy(example)
            made.update(values)
            return made
        return type(example)(values)
    except TypeError:  # the type does not copy or take a dict
        return values


def _like_sequence(example: Any, values: list[Any]) -> Any:
    try:
        if isinstance(example, MutableSequence):
            made = copy.copy(example)
            for k, value in enumerate(values):
                made[k] = value
            return made
        return type(example)(values)
    except TypeError:  # the type does not copy or take a list
        return values


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Tensors stacked along a new first dimension."""
    return stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Arrays as one tensor."""
    if _is_text_array(batch[0]):
        raise TypeError(_ERROR.format(batch[0].dtype))
    return collate([as_tensor(item) for item in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """NumPy scalars as one tensor."""
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Floats as a double tensor."""
    return tensor(list(batch), dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Integers (and bools) as a tensor."""
    return tensor(list(batch))


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Text stays as it is."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def collate(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """A list of samples as one batch; `collate_fn_map` says what becomes of each type."""
    first = batch[0]
    if collate_fn_map is not None:
        if type(first) in collate_fn_map:
            return collate_fn_map[type(first)](batch, collate_fn_map=collate_fn_map)
        for kind, function in collate_fn_map.items():
            if isinstance(first, kind):
                return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        joined = {key: collate([item[key] for item in batch], collate_fn_map=collate_fn_map)
                  for key in first}  # fmt: skip
        return _like_mapping(first, joined)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(part, collate_fn_map=collate_fn_map) for part in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [collate(part, collate_fn_map=collate_fn_map) for part in zip(*batch)]
        return parts if isinstance(first, tuple) else _like_sequence(first, parts)
    raise TypeError(_ERROR.format(type(first)))


def default_collate(batch: Any) -> Any:
    """default_collate(batch): tensors stacked, numbers to tensors, containers kept."""
    return collate(batch, collate_fn_map=default_collate_fn_map)

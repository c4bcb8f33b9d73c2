"""Tensors that native code makes: arrays in new objects of the class, with these slots."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from .ir.bind import state
from .ir.types import float64
from .runtime.expected import Array
from .tracer.scalars import RunTimeNumber
from .tracer.tensor import Tensor


def as_tensor(result: Array, dtype: Any) -> Array:
    """The result of a native call, in a new tensor."""
    return replace(result, holder=Tensor, slot="_array", facts=new_slots(dtype))


def with_history(result: Array, number: int) -> Array:
    """A result of `as_tensor` that gets a node, among whose outputs it is this one."""
    facts = {**dict(result.facts), "_nr": number, "_requires_grad": True}
    del facts["_node"]
    return replace(result, facts=tuple(facts.items()))


@cache
def number_array() -> Array:
    """The tensor of a Python float; see `run_time_number`."""
    return Array(np.dtype(np.float64), (), holder=RunTimeNumber, slot="_array",
                 facts=new_slots(float64))  # fmt: skip


def new_slots(dtype: Any) -> tuple[tuple[str, Any], ...]:
    """What is in the slots of a new tensor, except its array."""
    like = Tensor._wrap(np.empty(0, dtype.storage), dtype)
    if state.inference:
        like._mark = "inference"
    slots = (s for s in Tensor.__slots__ if not s.startswith("__") and s != "_array")
    return tuple((slot, getattr(like, slot)) for slot in slots if hasattr(like, slot))

"""Hyper-parameters, read in one place, so that a compiled step sees their current values.

Note [Hyper-parameters]
    Eagerly `read` gives the number in the parameter group. While an interpreter that listens is on
    top of the stack (a recording), it is asked first: `hyper_parameter(group, name, index, value)`
    may return a 0-d tensor that stands for the value at run time. Formulas therefore work with
    numbers and with 0-d tensors alike, and never branch on what `read` returns; they branch on
    `given`, which tells the listener (`hyper_branch`) what was decided.
"""

from __future__ import annotations

from typing import Any

from ..ir.bind import state
from ..tracer.tensor import Tensor


def read(group: dict[str, Any], name: str, index: int | None = None) -> Any:
    """The value of a hyper-parameter: a number, or a 0-d tensor while recording."""
    value = group[name] if index is None else group[name][index]
    if state.top is state.bottom:
        return value.item() if isinstance(value, Tensor) and not value._requires_grad else value
    listener = getattr(state.top, "hyper_parameter", None)
    if listener is None or not isinstance(value, int | float) or isinstance(value, bool):
        return value
    return listener(group, name, index, value)


def given(group: dict[str, Any], name: str) -> bool:
    """Is the hyper-parameter set (true, not zero)? The answer may choose what is computed."""
    value = group[name]
    outcome = bool(value != 0) if not isinstance(value, bool | None) else bool(value)
    if state.top is not state.bottom:
        listener = getattr(state.top, "hyper_branch", None)
        if listener is not None:
            listener(group, name, outcome)
    return outcome

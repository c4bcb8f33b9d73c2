"""`f(..., out=t)`: results written into tensors that the user gives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..ir import value as value_module
from ..ir.arguments import must_be
from ..ir.bind import state
from ..ir.types import COMPLEX, FLOAT, DType, c_word, type_word
from .eager import cast_array
from .inplace import bump, check_memory, needs_grad, take_shape
from .overlap import check_operands
from .tensor import Tensor


def write_out(function: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Resizes `out` where its shape differs and writes the result into it."""
    name = function.__name__.rstrip("_")
    result = function(*args, **kwargs)
    if any(part.dtype.category >= FLOAT for part in (
            [result] if isinstance(result, Tensor) else result)):  # fmt: skip
        refuse_history(name, [*args, *kwargs.values(), out])
    if isinstance(result, Tensor):
        if isinstance(out, Tensor) and out._array.shape == result._array.shape:
            check_operands(function, out, (*args, *kwargs.values()))
        copy_out(result, out, name, function.out)
        return out
    if not isinstance(out, tuple | list):
        raise must_be(name, "out", "tuple of Tensors", out)
    if len(out) != len(result):
        raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
    for position, (part, place) in enumerate(zip(result, out)):
        copy_out(part, place, name, function.out, position)
    return type(result)(out) if hasattr(result, "_fields") else tuple(out)


def refuse_history(name: str, values: list[Any]) -> None:
    """Writes into `out=` leave no history, so nothing there may need one."""
    if state.grad_enabled and needs_grad(values, {}):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )


def copy_out(result: Tensor, out: Any, name: str, rule: str, position: int = 0) -> None:
    """Writes the result at `position` into `out`, whose dtype obeys `rule`; see `public`."""
    if not isinstance(out, Tensor):
        raise must_be(name, "out", "Tensor", out)
    check_dtype(result.dtype, out.dtype, name, rule, position)
    before, wanted = out._array.shape, result._array.shape
    if before != wanted and out._array.size:
        warn_of_resizing(before, wanted)
    take_shape(out, result)
    check_memory(out)
    np.copyto(out._array, cast_array(result._array, result.dtype, out.dtype))
    bump(out.storage_)
    watcher = getattr(state.top, "written", None)
    if watcher is not None:
        watcher(out, result)


def check_dtype(result: DType, out: DType, name: str, rule: str, position: int = 0) -> None:
    """torch's errors for an `out=` tensor of a dtype that cannot hold the result."""
    if result is out or rule == "any":
        return
    if rule == "exact":
        raise RuntimeError(
            f"Expected out tensor to have dtype {c_word(result)}, but got {c_word(out)} instead"
        )
    if rule == "kind" and result.category != out.category:
        wanted = "complex" if result.category == COMPLEX else "floating point"
        raise RuntimeError(f"{name} expects a {wanted} output tensor, but got {type_word(out)}")
    if result.category <= out.category:
        return
    if rule.startswith("safe"):
        _, name, *results = rule.split()
        what = results[position]
        raise RuntimeError(f"{name}: Expected {what} to be safely castable from "
                           f"{type_word(result)} dtype, but got {what} with dtype "
                           f"{type_word(out)}")  # fmt: skip
    raise RuntimeError(f"result type {type_word(result)} can't be cast to the desired "
                       f"output type {type_word(out)}")  # fmt: skip


def warn_of_resizing(before: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """torch's warning where `out=` loses the elements it has."""
    warnings.warn(
        f"An output with one or more elements was resized since it had shape {list(before)}, "
        f"which does not match the required output shape {list(wanted)}. This behavior is "
        "deprecated, and in a future PyTorch release outputs will not be resized unless they have "
        "zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
        "elements with t.resize_(0).",
        UserWarning,
        stacklevel=5,
    )


value_module.write_out = write_out

"""Arguments checked, with torch's words for what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .bind import notify
from .dims import is_dim
from .places import user_level
from .types import BY_NAME, DType
from .value import Value


def kind_of(value: Any) -> str:
    """The class of `value` as torch's messages name it."""
    kind = type(value)
    if kind is DType:
        return "torch.dtype"
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def must_be(name: str, argument: str, wanted: str, value: Any, position: int = 0) -> TypeError:
    """torch's error for an argument of the wrong class; `position` counts from 1, 0 leaves it out.

    >>> must_be("eye", "n", "int", 2.5, 1)
    TypeError("eye(): argument 'n' (position 1) must be int, not float")
    """
    where = f" (position {position})" if position else ""
    error = TypeError(f"{name}(): argument '{argument}'{where} must be {wanted}, not "
                      f"{kind_of(value)}")  # fmt: skip
    error.wanted = wanted  # type: ignore[attr-defined]  # by which `refusals.py` knows it
    return error


def whole_number(name: str, argument: str, value: Any, position: int) -> int:
    """An argument that counts: an int, or what stands for one, but not a bool."""
    if value.__class__ is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise must_be(name, argument, "int", value, position)
    try:
        return int(value.__index__())
    except TypeError:  # a tensor or an array that is no single int
        raise must_be(name, argument, "int", value, position) from None


def fill_number(name: str, value: Any, position: int = 2) -> Any:
    """The argument `fill_value`: a number, or a tensor without dims that stands for one."""
    return value if is_number_tensor(value) else plain_number(name, "fill_value", value, position)


def is_number_tensor(value: Any) -> bool:
    """Does a tensor stand for the number it holds?"""
    return isinstance(value, Value) and value.ndim == 0 and not value.requires_grad


def is_number(value: Any) -> bool:
    """No tensor for the user: a number, be it one that is known at run time only."""
    return not isinstance(value, Value) or getattr(value, "wrapped", False)


def plain_number(name: str, argument: str, value: Any, position: int) -> Any:
    """A Python number: `value` itself, or what a NumPy scalar or a tensor without dims holds."""
    if value.__class__ in (int, float, bool):
        return value
    if is_number_tensor(value):
        return value.item()
    if isinstance(value, np.generic):
        return plain_scalar(value)
    if not isinstance(value, int | float | complex):
        raise must_be(name, argument, "Number", value, position)
    return value


def plain_scalar(value: Any) -> Any:
    """What torch takes a NumPy scalar for: an int, or else, and be it a bool, a float."""
    if isinstance(value, np.integer | np.complex128):
        return value.item()
    return float(value.real)


def check_elements(check: Callable[..., None], value: Any, *facts: Any) -> None:
    """Calls `check(array, *facts)`, which may raise, on the elements of an eager value, if any.

    Values in IR have no elements yet. Whoever looks on may repeat the check on other elements.
    """
    read = getattr(value, "_values_array", None)
    array = None if read is None else read()
    if array is not None and array.size:
        notify("elements_checked", check, value, facts)
        check(array, *facts)


def repeated(wrong: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a check that compiled programs do as well: `wrong(value, *facts)` says in ops which
    elements are refused. Indices need none, which native code looks at itself."""

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        check.wrong = wrong  # type: ignore[attr-defined]
        return check

    return decorate


# What torch's functions that are written in Python look for first, of arguments unseen.
_LACKING = {
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                     "binary_cross_entropy_with_logits"), "size"),
    **dict.fromkeys(("margin_ranking_loss", "embedding_bag"), "dim"),
    "normalize": "norm",
    "split": "split",
}  # fmt: skip


def not_a_tensor(name: str, argument: str, value: Any, position: int) -> Exception:
    """torch's error for an argument of the function `name` that must be a tensor."""
    wrong = must_be(name.rstrip("_"), argument, "Tensor", value, position)
    lacking = _LACKING.get(name.rstrip("_"))
    if lacking is None:
        return wrong
    return AttributeError(f"'{type(value).__name__}' object has no attribute '{lacking}': {wrong}")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line; whoever looks on is told."""
    notify("warned")
    warnings.warn(message, category, stacklevel=user_level())


_warn = warnings.warn  # the one that no recording watches
_SAID: set[str] = set()  # what `warn_once` said
repeating = [False]  # does it say things again, as `set_warn_always` asks?


def warn_once(message: str) -> None:
    """Warns at the user's line, the first time only: nobody who records a graph need know."""
    notify("warned_once")
    if message not in _SAID or repeating[0]:
        _SAID.add(message)
        _warn(message, UserWarning, stacklevel=user_level())


def warn_of_successor(old: str, new: str, more: str) -> None:
    """Says once what to call instead of an old function of `torch`."""
    warn_once(f"torch.{old} is deprecated in favor of torch.linalg.{new} and will be removed in a "
              f"future PyTorch release.\n{more}")  # fmt: skip


def as_dtype(dtype: Any, name: str = "") -> DType | None:
    """The argument `dtype` of the function `name` checked; None means "infer"."""
    if dtype is None or isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON_TYPES:
        return BY_NAME[_PYTHON_TYPES[dtype]]
    where = f"{name}(): " if name else ""
    raise TypeError(f"{where}argument 'dtype' must be torch.dtype, not {kind_of(dtype)}")


_PYTHON_TYPES: dict[type, str] = {
    float: "float64", int: "int64", bool: "bool", complex: "complex128",
}  # fmt: skip


def sizes(name: str, values: tuple[Any, ...], position: int = 1) -> tuple[int, ...]:
    """The argument `size` of `f(2, 3)` or `f((2, 3))`; sizes below 0 are refused elsewhere."""
    one = len(values) == 1
    if one and isinstance(values[0], list | tuple):
        one, values = False, tuple(values[0])
    return tuple([
        v if v.__class__ is int else _one_size(name, v, k, one, position)
        for k, v in enumerate(values)
    ])  # fmt: skip


def _one_size(name: str, value: Any, k: int, alone: bool, position: int) -> Any:
    """One of the sizes; torch tells an only one, the first and later ones apart."""
    if is_dim(value):
        return value
    if k or not isinstance(value, bool):
        try:
            return int(value.__index__())
        except (AttributeError, TypeError):  # a tensor or an array that is no single int
            pass
    if alone:
        raise must_be(name, "size", "tuple of ints", value, position)
    where = f"{name}(): argument 'size'"
    if k == 0:
        raise TypeError(f"{where} (position {position}) must be tuple of ints, but found element "
                        f"of type {kind_of(value)} at pos 0")  # fmt: skip
    raise TypeError(f'{where} failed to unpack the object at pos {k + 1} with error "type must be '
                    f'tuple of ints,but got {kind_of(value)}"')  # fmt: skip


_ORDERS = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


def format_order(memory_format: Any, ndim: int, name: str = "contiguous") -> tuple[int, ...] | None:
    """The dimensions in the order of a memory format, slowest first; None for the usual order."""
    if memory_format is not None and not hasattr(memory_format, "name"):
        raise must_be(name, "memory_format", "torch.memory_format", memory_format)
    order = _ORDERS.get(getattr(memory_format, "name", ""))
    if order is not None and len(order) != ndim:
        raise RuntimeError(f"required rank {len(order)} tensor to use {memory_format.name} format")
    return order

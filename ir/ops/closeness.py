"""Comparing whole tensors: equal, isclose, allclose; and facts that give a Python bool."""

from __future__ import annotations

from typing import Any

from ..types import BOOL, INTEGER, default_dtype, type_word
from ..value import public
from .kinds import require_value
from .reduce import check_tensor


@public("equal")
def equal(input: Any, other: Any) -> bool:
    """equal(input, other): same shape and same elements? NaN equals nothing."""
    check_tensor("equal", input)
    require_value("equal", other, "other", 1)
    if tuple(input.shape) != tuple(other.shape):
        return False
    return bool(input.eq(other).all())


@public("isclose")
def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False): elementwise."""
    check_tensor("isclose", input)
    require_value("isclose", other, "other", 1)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{type_word(input.dtype)} did not match {type_word(other.dtype)}")
    for word, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{word} must be greater than or equal to zero, but got {value}")
    close = input.eq(other)
    if equal_nan and input.dtype.category > INTEGER:
        close = close.logical_or(input.ne(input).logical_and(other.ne(other)))
    if rtol == 0 and atol == 0:
        return close
    if input.dtype.category == BOOL:
        input = input.to(default_dtype())
    if other.dtype.category <= INTEGER:
        other = other.to(default_dtype())
    allowed = (other * rtol).abs() + atol
    error = (input - other).abs()
    return close.logical_or(error.isfinite().logical_and(error <= allowed))


@public("allclose")
def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False): a Python bool."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@public("is_same_size")
def is_same_size(input: Any, other: Any) -> bool:
    """is_same_size(input, other): equal shapes?"""
    return tuple(input.shape) == tuple(other.shape)


@public("is_nonzero")
def is_nonzero(input: Any) -> bool:
    """is_nonzero(input): the truth of a tensor with one element."""
    if input.numel() == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    return bool(input)

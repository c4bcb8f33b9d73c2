"""What distributions share: broadcasting of parameters, odds and probabilities, lazy values."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

from .. import arange, broadcast_tensors, empty, finfo, get_default_dtype
from ..tracer.creation import tensor
from ..tracer.modes import enable_grad
from ..tracer.scalars import is_tensor
from ..tracer.tensor import Tensor

euler_constant = 0.57721566490153286060


def is_number(value: Any) -> bool:
    """Is it a Python number (or a NumPy scalar)?"""
    return isinstance(value, numbers.Number)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """The values as tensors of one shape; numbers take the dtype of the first tensor."""
    if not all(is_tensor(v) or is_number(v) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects "
                         "implementing __torch_function__.")  # fmt: skip
    dtype = next((v.dtype for v in values if is_tensor(v)), get_default_dtype())
    lifted = [v if is_tensor(v) else tensor(v, dtype=dtype) for v in values]
    return tuple(broadcast_tensors(*lifted))


def _standard_normal(shape: Any, dtype: Any, device: Any = None) -> Tensor:
    return empty(shape, dtype=dtype).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sums the last `dim` dimensions out."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log odds (binary), or from log probabilities along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept inside (0, 1)."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `logits_to_probs`, with probabilities clamped."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


class lazy_property:
    """A property computed at first use, with gradients, and kept in the instance from then on."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _lower_mask(n: int, diag: int) -> Tensor:
    index = arange(n)
    return index < index.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below diagonal `diag`, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}]. Use one inside.")
    return mat[..., _lower_mask(n, diag)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`, with zeros elsewhere."""
    # n solves n^2 + (1 + 2 diag) n - |diag| (diag + 1) = 2 len(vec)
    linear = 1 + 2 * diag
    n = (-linear + (linear**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed "
                         "as the lower triangular part of a square D x D matrix.")  # fmt: skip
    size = round(n)
    mat = vec.new_zeros(vec.shape[:-1] + (size, size))
    mat[..., _lower_mask(size, diag)] = vec
    return mat

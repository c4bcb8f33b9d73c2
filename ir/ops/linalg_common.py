"""What the linear algebra files share: checks in torch's words, and small matrix helpers in ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import must_be
from ..types import FLOAT, DType, TensorType, no_kernel, type_word
from ..value import Value, public
from .creation import full
from .products import transposed
from .slices import diagonal_scatter
from .views import zeros


class LinAlgError(RuntimeError):
    """Raised when a matrix lacks a property that the function needs, e.g. when it is singular."""


LinAlgError.__name__ = "_LinAlgError"  # as torch's shows itself


def linalg(*names: str, out: str = "exact") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Publishes a function in torch.linalg only; `out` as in `public`."""
    return public(*names, spaces="linalg", method=False, out=out)


def check_tensor(name: str, value: Any, argument: str = "A") -> None:
    if not isinstance(value, Value):
        raise must_be(name, argument, "Tensor", value)


def check_float(
    name: str, value: Any, *, low: bool = False, kernel: str = "", late: bool = False
) -> None:
    """Refuses integers and, unless `low`, 16-bit floats; these in the name of torch's `kernel`.

    `late` where torch leaves integers to the kernel, too.
    """
    dtype = value.dtype
    small = dtype.category == FLOAT and dtype.itemsize < 4
    if kernel and (small or (late and dtype.category < FLOAT)):
        raise no_kernel(kernel, dtype)
    if dtype.category < FLOAT:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got "
                           f"{type_word(dtype)}")  # fmt: skip
    if small and not low:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {type_word(dtype)}")


def check_matrix(name: str, value: Any, argument: str = "A") -> None:
    check_tensor(name, value, argument)
    if value.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_square(name: str, value: Any, argument: str = "A") -> None:
    check_matrix(name, value, argument)
    m, n = value.shape[-2:]
    if m != n:
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are "
                           f"{m} by {n} matrices")  # fmt: skip


def check_same_dtype(name: str, a: Any, b: Any, names: tuple[str, str] = ("A", "B")) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected {names[0]} and {names[1]} to have the same dtype, but found "
            f"{names[0]} of type {type_word(a.dtype)} and {names[1]} of type "
            f"{type_word(b.dtype)} instead"
        )


def check_solvable(name: str, a: Any, b: Any, left: bool = True) -> None:
    """A is square and B has as many rows (columns, if A stands on the right)."""
    check_square(name, a)
    check_matrix(name, b, "B")
    (n, k), (rows, columns) = a.shape[-2:], b.shape[-2:]
    if (n != rows) if left else (n != columns):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {equation} "
                           f"({n}x{k} and {rows}x{columns})")  # fmt: skip


def batch_place(info: np.ndarray) -> tuple[str, int]:
    """How torch names the first failed matrix of a batch, and its code."""
    flat = info.reshape(-1)
    first = int(np.flatnonzero(flat)[0])
    return (f"(Batch element {first}): " if info.ndim else ""), int(flat[first])


# --- types ---------------------------------------------------------------------------------------


def lead_of(type_: TensorType) -> tuple[int, ...]:
    return type_.shape[:-2]


def of_shape(type_: TensorType, *sizes: int, dtype: DType | None = None) -> TensorType:
    """The type with other matrix dimensions."""
    return TensorType(dtype or type_.dtype, (*type_.shape[:-2], *sizes))


# --- matrices in ops -----------------------------------------------------------------------------


def diagonal_of(matrix: Any) -> Any:
    return matrix.diagonal(0, -2, -1)


def set_diagonal(matrix: Any, values: Any) -> Any:
    """`matrix` with another diagonal."""
    return diagonal_scatter(matrix, values, offset=0, dim1=matrix.ndim - 2, dim2=matrix.ndim - 1)


def diagonal_matrix(values: Any) -> Any:
    """Matrices with `values` on the diagonal."""
    shape = (*values.shape, values.shape[-1])
    return set_diagonal(zeros(TensorType(values.dtype, shape)), values)


def identity(shape: tuple[int, ...], dtype: DType) -> Any:
    """A batch of identity matrices, of the given shape (..., m, n)."""
    ones = full(size=(*shape[:-2], min(shape[-2:])), fill_value=1, dtype=dtype)
    return set_diagonal(zeros(TensorType(dtype, tuple(shape))), ones)


def real_part(value: Any) -> Any:
    return value.real if value.dtype.is_complex else value


def scaled(matrix: Any, factor: Any) -> Any:
    """Each matrix of a batch times its number."""
    return matrix * factor.unsqueeze(-1).unsqueeze(-1)


def add(a: Any, b: Any) -> Any:
    """The sum of what is there: None stands for zero."""
    return b if a is None else a if b is None else a + b


__all__ = ["LinAlgError", "add", "transposed"]

"""Products made of other products: vdot, inner, kron, cross, vander, chains and powers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ..arguments import must_be, warn_once
from ..op import Decompose, Op, define
from ..types import TensorType, bool_, broadcast_shapes, normalize_dim, type_word
from ..value import Value, public
from .arithmetic import conj
from .einsum import tensordot
from .joining import cat
from .linalg_common import check_float, check_same_dtype, check_square, identity, linalg
from .linalg_det import inv, inverse_op
from .linalg_solve import solve
from .precision import full_precision
from .products import dot_type, drawn, matmul, mm, product, unsafe_view

# --- vectors -------------------------------------------------------------------------------------


vdot_op = define(
    "vdot", "self other -> result", infer=dot_type, numpy=lambda a, b: np.asarray(np.vdot(a, b)),
    lower=Decompose(lambda self, other: (conj(self) * other).sum()),
    samples=drawn(((4,), (4,), {})),
    vjp=dict(self=lambda grad, other: conj(grad) * other,
             other=lambda grad, self: grad * self),
)  # fmt: skip


@public("vdot")
def vdot(input: Any, other: Any) -> Any:
    """vdot(input, other): the dot product with `input` conjugated."""
    return product(vdot_op, input, other, (1, 1))


@linalg("vecdot")
def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """linalg.vecdot(x, y, *, dim=-1): sums of conj(x) * y along a dimension."""
    check_float("linalg.vecdot", x, low=True)
    check_same_dtype("linalg.vecdot", x, y, ("x", "y"))
    if x.ndim == y.ndim == 1:
        return vdot(x, y)
    return (conj(x) * y).sum(dim)


@public("inner")
def inner(input: Any, other: Any) -> Any:
    """inner(input, other): sums of products along the last dimensions."""
    if not input.ndim or not other.ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got "
                           f"shapes {list(input.shape)} and {list(other.shape)}")  # fmt: skip
    return tensordot(input, other, ([-1], [-1]))


@public("kron", out="cast")
def kron(input: Any, other: Any) -> Any:
    """kron(input, other): each element of `input` times all of `other`."""
    ndim = max(input.ndim, other.ndim)
    a = input.view((1,) * (ndim - input.ndim) + tuple(input.shape))
    b = other.view((1,) * (ndim - other.ndim) + tuple(other.shape))
    left = tuple(n for size in a.shape for n in (size, 1))
    right = tuple(n for size in b.shape for n in (1, size))
    shape = tuple(m * n for m, n in zip(a.shape, b.shape))
    return unsafe_view(a.reshape(left) * b.reshape(right), size=shape)


def _cross(a: np.ndarray, b: np.ndarray, *, dim: int) -> np.ndarray:
    a, b = np.moveaxis(a, dim, 0), np.moveaxis(b, dim, 0)
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return np.stack(parts, axis=dim)


def _cross_parts(self: Any, other: Any, *, dim: int) -> Any:
    """The components of each operand moved round by one and by two."""
    return self.roll(-1, dim) * other.roll(-2, dim) - self.roll(-2, dim) * other.roll(-1, dim)


cross_op: Op = define(
    "linalg_cross", "self other -> result",
    numpy=_cross, lower=Decompose(_cross_parts),
    infer=lambda self, other, *, dim: TensorType(
        self.dtype, broadcast_shapes(self.shape, other.shape)),
    samples=drawn(((2, 3), (1, 3), {"dim": 1})),
    vjp=dict(self=lambda grad, other, dim: cross_op(conj(other), grad, dim=dim),
             other=lambda grad, self, dim: cross_op(grad, conj(self), dim=dim)),
)  # fmt: skip


@linalg("cross")
def linalg_cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """linalg.cross(input, other, *, dim=-1): the cross product of 3-vectors along a dimension."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    along = normalize_dim(dim, input.ndim)
    if input.shape[along] != 3 or other.shape[along] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got "
                           f"{input.shape[along]} and {other.shape[along]}")  # fmt: skip
    broadcast_shapes(tuple(input.shape), tuple(other.shape))
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {type_word(input.dtype)} but found "
                           f"{type_word(other.dtype)}")  # fmt: skip
    return cross_op(input, other, dim=along)


@public("cross")
def cross(input: Any, other: Any, dim: Any = None) -> Any:
    """cross(input, other, dim=None): along the first dimension of size 3 if none is named."""
    if dim is None:
        warn_once("Using torch.cross without specifying the dim arg is deprecated.\nPlease either "
                  "pass the dim explicitly or simply use torch.linalg.cross.\nThe default value of "
                  "dim will change to agree with that of linalg.cross in a future "
                  "release.")  # fmt: skip
        dim = next((d for d, size in enumerate(input.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError(
                f"no dimension of size 3 in input, but cross needs one: {[*input.shape]}"
            )
    return linalg_cross(input, other, dim=dim)


@linalg("vander", out="none")
def vander(x: Any, *, N: Any = None) -> Any:
    """linalg.vander(x, *, N=None): columns 1, x, x^2, ..."""
    if x.dtype is bool_:
        raise RuntimeError("linalg.vander supports floating point, complex, and integer tensors, "
                           "but got Bool")  # fmt: skip
    x = x if x.ndim else x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand((*x.shape, count - 1))
    ones = x.new_ones((*x.shape, 1))
    powers = powers.cumprod(-1)
    return cat(ones.to(powers.dtype), powers, dim=x.ndim)


# --- chains and powers ---------------------------------------------------------------------------


def best_order(sizes: list[int]) -> list[list[int]]:
    """Where to split each chain of matrices so that the products cost least (the classic DP)."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j))  # fmt: skip
    return split


def _chain(matrices: list[Any], split: list[list[int]], i: int, j: int) -> Any:
    if i == j:
        return matrices[i]
    k = split[i][j]
    return mm(_chain(matrices, split, i, k), _chain(matrices, split, k + 1, j))


@linalg("multi_dot")
def multi_dot(tensors: Any) -> Any:
    """linalg.multi_dot(tensors): the product of a chain of matrices in the cheapest order."""
    if not isinstance(tensors, list | tuple):
        raise must_be("linalg_multi_dot", "tensors", "tuple of Tensors", tensors, 1)
    found = list(tensors)
    if len(found) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(found)}")
    first, last = found[0], found[-1]
    for k, value, allowed in ((0, first, (1, 2)), (len(found) - 1, last, (1, 2))):
        if value.ndim not in allowed:
            word = "first" if k == 0 else "last"
            raise RuntimeError(f"multi_dot(): the {word} tensor must be 1D or 2D but got "
                               f"{value.ndim}D")  # fmt: skip
    for k, value in enumerate(found[1:-1], 1):
        if value.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {k} must be 2D but got {value.ndim}D")
    if len({v.dtype for v in found}) > 1:
        raise RuntimeError("multi_dot(): all tensors must have be the same dtype")
    shape = (tuple(first.shape[:-1]) if first.ndim == 2 else ()) + tuple(last.shape[1:])
    matrices = [first.unsqueeze(0) if first.ndim == 1 else first, *found[1:-1],
                last.unsqueeze(-1) if last.ndim == 1 else last]  # fmt: skip
    for k, (a, b) in enumerate(pairwise(matrices)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {k} and {k + 1} with shapes {list(a.shape)} "
                               f"and {list(b.shape)} cannot be multiplied")  # fmt: skip
    sizes = [matrices[0].shape[0], *(m.shape[1] for m in matrices)]
    return _chain(matrices, best_order(sizes), 0, len(matrices) - 1).view(shape)


@public("chain_matmul", method=False)
def chain_matmul(*matrices: Any) -> Any:
    """chain_matmul(*matrices): see linalg.multi_dot."""
    warn_once("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. "
              "Use torch.linalg.multi_dot instead, which accepts a list of two or more tensors "
              "rather than multiple parameters.")  # fmt: skip
    for value in matrices:
        if not isinstance(value, Value) or value.ndim != 2:
            raise RuntimeError("chain_matmul(): Expected all tensors to be 2-dimensional.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0].clone() if len(matrices) == 1 else multi_dot(matrices)


@linalg("matmul")
def linalg_matmul(input: Any, other: Any) -> Any:
    """linalg.matmul(input, other): see torch.matmul."""
    return matmul(input, other)


@linalg("diagonal", out="none")
def linalg_diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """linalg.diagonal(A, *, offset=0, dim1=-2, dim2=-1): see torch.diagonal."""
    return A.diagonal(offset, dim1, dim2)


@linalg("matrix_power")
def linalg_matrix_power(input: Any, n: int) -> Any:
    """linalg.matrix_power(input, n): by repeated squaring; negative powers of the inverse."""
    check_square("linalg.matrix_power", input)
    if n == 0:
        return input.clone().copy_(identity(tuple(input.shape), input.dtype)) if hasattr(
            input, "copy_") else identity(tuple(input.shape), input.dtype)  # fmt: skip
    if n == 1:
        return input.clone()
    if n < 0:
        input, n = inv(input), -n
    result = None
    while True:
        if n & 1:
            result = input if result is None else matmul(result, input)
        n >>= 1
        if not n:
            return result
        input = matmul(input, input)


@public("matrix_power")
def matrix_power(input: Any, n: int) -> Any:
    """matrix_power(input, n): see linalg.matrix_power."""
    return linalg_matrix_power(input, n)


@linalg("tensorinv", out="safe tensorinv result")
@full_precision
def tensorinv(input: Any, ind: int = 2) -> Any:
    """linalg.tensorinv(A, ind=2): the inverse of A as a map of its last dimensions to its first."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    shape = tuple(input.shape)
    before, after = shape[:ind], shape[ind:]
    rows, columns = math.prod(after), math.prod(before)
    if rows != columns:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                           f"prod(self.shape[:ind]), but got {rows} != {columns}")  # fmt: skip
    result, _ = inverse_op(input.reshape((columns, rows)), check_errors=True)
    return result.reshape((*after, *before))


@linalg("tensorsolve", out="safe tensorsolve result")
@full_precision
def tensorsolve(input: Any, other: Any, dims: Any = None) -> Any:
    """linalg.tensorsolve(A, B, dims=None): X with tensordot(A, X, X.ndim) = B."""
    if dims is not None:
        last = [normalize_dim(d, input.ndim) for d in dims]
        input = input.permute([d for d in range(input.ndim) if d not in last] + last)
    shape = tuple(input.shape[other.ndim :])
    rows, columns = math.prod(other.shape), math.prod(shape)
    if rows != columns:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) "
                           f"== prod(self.shape[:other.ndim]), but got {columns} != "
                           f"{rows}")  # fmt: skip
    solved = solve(input.reshape((rows, columns)), other.flatten())
    return solved.reshape(shape)

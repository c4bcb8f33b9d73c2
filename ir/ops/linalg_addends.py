"""Products with an addend: addmv, addr, addbmm, baddbmm."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bind import casting
from ..op import Decompose, define
from ..types import FLOAT, TensorType, bool_, no_kernel, result_type, type_word
from ..value import public
from . import blas
from .arithmetic import conj
from .products import (
    bmm_op,
    bmm_type,
    check_expands,
    drawn,
    expanded,
    mv_op,
    mv_type,
    scale,
    transposed,
    with_addend,
)
from .totals import add_up


def _addmv_type(self: TensorType, mat: TensorType, vec: TensorType, **_: Any) -> TensorType:
    result = mv_type(mat, vec)
    check_expands(self, result.shape)
    return result


addmv_op = define(
    "addmv", "self mat vec -> result", numpy=with_addend(blas.matmul), infer=_addmv_type,
    lower=Decompose(expanded(mv_op)),
    samples=drawn(((3,), (3, 4), (4,), {}), ((1,), (3, 4), (4,), {"beta": 2, "alpha": 0.5})),
    vjp=dict(self=lambda grad, beta: scale(grad, beta),
             mat=lambda grad, vec, alpha: scale(grad.outer(conj(vec)), alpha),
             vec=lambda grad, mat, alpha: scale(mv_op(transposed(mat), grad), alpha)),
)  # fmt: skip


@public("addmv", inplace=True, overlap="copied")
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """addmv(input, mat, vec, *, beta=1, alpha=1): beta * input + alpha * (mat @ vec)."""
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, "
                           f"{vec.ndim}")  # fmt: skip
    n = input.shape[0] if input.ndim else 1
    if mat.shape[1] != vec.shape[0] or n not in (1, mat.shape[0]):
        raise RuntimeError(f"size mismatch, got input ({n}), mat ({mat.shape[0]}x{mat.shape[1]}), "
                           f"vec ({vec.shape[0]})")  # fmt: skip
    if not input.dtype is mat.dtype is vec.dtype:
        words = [type_word(v.dtype) for v in (input, mat, vec)]
        raise RuntimeError("addmv input tensors must have the same dtype, but got "
                           f"{words[0]}, {words[1]}, and {words[2]}")  # fmt: skip
    if mat.dtype is bool_:
        raise no_kernel("addmv_impl_cpu", bool_)
    return addmv_op(input, mat, vec, beta=beta, alpha=alpha)


def _addr_type(self: TensorType, vec1: TensorType, vec2: TensorType, **_: Any) -> TensorType:
    shape = (vec1.shape[0], vec2.shape[0])
    check_expands(self, shape)
    return TensorType(result_type((self, vec1, vec2)), shape)


addr_op = define(
    "addr", "self vec1 vec2 -> result", numpy=with_addend(np.multiply.outer), infer=_addr_type,
    lower=Decompose(expanded(lambda a, b: a.outer(b))), promote=result_type,
    samples=drawn(((3, 4), (3,), (4,), {}), ((4,), (3,), (4,), {"beta": 2, "alpha": 0.5})),
    vjp=dict(self=lambda grad, beta: scale(grad, beta),
             vec1=lambda grad, vec2, alpha: scale(mv_op(grad, conj(vec2).to(grad.dtype)), alpha),
             vec2=lambda grad, vec1, alpha: scale(
                 mv_op(grad.t(), conj(vec1).to(grad.dtype)), alpha)),
)  # fmt: skip


def check_factors(dtype: Any, beta: Any, alpha: Any) -> None:
    """Integers take integer factors only."""
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if dtype.category < FLOAT and isinstance(factor, float):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a "
                               "floating point number.")  # fmt: skip


@public("addr", inplace=True, overlap="copied", out="cast")
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """addr(input, vec1, vec2, *, beta=1, alpha=1): beta * input + alpha * outer(vec1, vec2)."""
    for place, vec in ((1, vec1), (2, vec2)):
        if vec.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument vec{place}, but got {vec.ndim}-D")
    check_factors(result_type((input, vec1, vec2)), beta, alpha)
    _addr_type(input.type_, vec1.type_, vec2.type_)
    return addr_op(input, vec1, vec2, beta=beta, alpha=alpha)


def _batched_type(self: TensorType, batch1: TensorType, batch2: TensorType, **_: Any) -> TensorType:
    result = bmm_type(batch1, batch2)
    check_expands(self, result.shape)
    return result


baddbmm_op = define(
    "baddbmm", "self batch1 batch2 -> result", numpy=with_addend(blas.matmul), infer=_batched_type,
    kind="product", lower=Decompose(expanded(bmm_op)),
    samples=drawn(((2, 3, 5), (2, 3, 4), (2, 4, 5), {"beta": 2}), ((5,), (2, 3, 4), (2, 4, 5), {})),
    vjp=dict(self=lambda grad, beta: scale(grad, beta),
             batch1=lambda grad, batch2, alpha: scale(bmm_op(grad, transposed(batch2)), alpha),
             batch2=lambda grad, batch1, alpha: scale(bmm_op(transposed(batch1), grad), alpha)),
)  # fmt: skip


@public("baddbmm", inplace=True, overlap="copied")
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """baddbmm(input, batch1, batch2, *, beta=1, alpha=1): with the products of a batch."""
    _batched_type(input.type_, batch1.type_, batch2.type_)
    check_addend(input, batch1)
    return baddbmm_op(input, batch1, batch2, beta=beta, alpha=alpha)


def check_addend(input: Any, product: Any) -> None:
    if input.dtype is not product.dtype and not casting():
        raise RuntimeError(f"Input dtypes must be the same, got: input {input.dtype.name}, batch1: "
                           f"{product.dtype.name}")  # fmt: skip


def _summed_type(self: TensorType, batch1: TensorType, batch2: TensorType, **_: Any) -> TensorType:
    result = bmm_type(batch1, batch2)
    check_expands(self, result.shape[1:])
    return TensorType(result.dtype, result.shape[1:])


def _spread(grad: Any, batch: TensorType) -> Any:
    return grad.unsqueeze(0).expand((batch.shape[0], *grad.shape))


addbmm_op = define(
    "addbmm", "self batch1 batch2 -> result", infer=_summed_type,
    numpy=with_addend(lambda a, b: add_up(blas.matmul(a, b), 0)),
    lower=Decompose(expanded(lambda a, b: bmm_op(a, b).sum(0))),
    samples=drawn(((3, 5), (2, 3, 4), (2, 4, 5), {"beta": 2}), ((5,), (2, 3, 4), (2, 4, 5), {})),
    vjp=dict(self=lambda grad, beta: scale(grad, beta),
             batch1=lambda grad, batch2, alpha: scale(
                 bmm_op(_spread(grad, batch2.type_), transposed(batch2)), alpha),
             batch2=lambda grad, batch1, alpha: scale(
                 bmm_op(transposed(batch1), _spread(grad, batch1.type_)), alpha)),
)  # fmt: skip


@public("addbmm", inplace="resizing", overlap="copied")
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """addbmm(input, batch1, batch2, *, beta=1, alpha=1): the products are summed over the batch."""
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if batch.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError("batch1 and batch2 must have same number of batches, got "
                           f"{batch1.shape[0]} and {batch2.shape[0]}")  # fmt: skip
    if batch1.shape[2] != batch2.shape[1]:
        first, second = ("x".join(map(str, b.shape[1:])) for b in (batch1, batch2))
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({first} and {second})")
    _summed_type(input.type_, batch1.type_, batch2.type_)
    check_addend(input, batch1)
    return addbmm_op(input, batch1, batch2, beta=beta, alpha=alpha)

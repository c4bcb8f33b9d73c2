"""Matrix products: mm, bmm, mv, dot and what is made of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Decompose, Template, define
from ..types import TensorType, broadcast_shapes
from ..value import Value, public
from .arithmetic import conj
from .kinds import operands


def same_dtype(name: str, a: TensorType, b: TensorType) -> None:
    if a.dtype is not b.dtype:
        words = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int"}
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: "
            f"{words.get(a.dtype.name, a.dtype.name)} != {words.get(b.dtype.name, b.dtype.name)}"
        )


def mm_type(self: TensorType, mat2: TensorType) -> TensorType:
    if self.ndim != 2:
        raise RuntimeError(f"self must be a matrix, got {self}")
    if mat2.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {mat2}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied "
                           f"({self.shape[0]}x{self.shape[1]} and "
                           f"{mat2.shape[0]}x{mat2.shape[1]})")  # fmt: skip
    same_dtype("mm", self, mat2)
    return TensorType(self.dtype, (self.shape[0], mat2.shape[1]))


def transposed(value: Any) -> Any:
    """The conjugate transpose of the last two dimensions."""
    return conj(value).transpose(-2, -1)


mm_op = define(
    "mm", "self mat2 -> result", infer=mm_type, numpy=np.matmul, lower=Template("matmul"),
    vjp=dict(self=lambda grad, mat2: mm_op(grad, transposed(mat2)),
             mat2=lambda grad, self: mm_op(transposed(self), grad)),
)  # fmt: skip


def bmm_type(self: TensorType, mat2: TensorType) -> TensorType:
    if self.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError(f"batch1 and batch2 must be 3D tensors, got {self} and {mat2}")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"[{self.shape[0]}, {self.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    same_dtype("bmm", self, mat2)
    return TensorType(self.dtype, (self.shape[0], self.shape[1], mat2.shape[2]))


bmm_op = define(
    "bmm", "self mat2 -> result", infer=bmm_type, numpy=np.matmul, lower=Template("matmul"),
    vjp=dict(self=lambda grad, mat2: bmm_op(grad, transposed(mat2)),
             mat2=lambda grad, self: bmm_op(transposed(self), grad)),
)  # fmt: skip


def mv_type(self: TensorType, vec: TensorType) -> TensorType:
    if self.ndim != 2 or vec.ndim != 1 or self.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({self.shape[0]}), mat ({self}), vec ({vec})")
    same_dtype("mv", self, vec)
    return TensorType(self.dtype, self.shape[:1])


mv_op = define(
    "mv", "self vec -> result", infer=mv_type, numpy=np.matmul,
    lower=Decompose(lambda self, vec: mm_op(self, vec.view((vec.shape[0], 1))).view(
        (self.shape[0],))),
    vjp=dict(self=lambda grad, vec: grad.outer(conj(vec)),
             vec=lambda grad, self: mv_op(transposed(self), grad)),
)  # fmt: skip


def dot_type(self: TensorType, tensor: TensorType) -> TensorType:
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.shape != tensor.shape:
        raise RuntimeError("inconsistent tensor size, expected tensor "
                           f"[{self.shape[0]}] and src [{tensor.shape[0]}] to have the same number "
                           "of elements, but got "
                           f"{self.shape[0]} and {tensor.shape[0]} elements respectively")  # fmt: skip
    same_dtype("dot", self, tensor)
    return TensorType(self.dtype, ())


dot_op = define(
    "dot", "self tensor -> result", infer=dot_type, numpy=lambda a, b: np.asarray(np.dot(a, b)),
    lower=Decompose(lambda self, tensor: (self * tensor).sum()),
    vjp=dict(self=lambda grad, tensor: grad * conj(tensor),
             tensor=lambda grad, self: grad * conj(self)),
)  # fmt: skip


def checked(op: Any) -> Any:
    """The public function of a product: inference first, since NumPy accepts more than torch."""

    def function(input: Any, other: Any) -> Any:
        operands(op.name, input, other)
        for value in (input, other):
            if not isinstance(value, Value):
                raise TypeError(f"{op.name}(): arguments must be Tensors, not "
                                f"{type(value).__name__}")  # fmt: skip
        op.infer(input.type_, other.type_)
        return op(input, other)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"{op.name}(input, {op.inputs[1]})."
    return function


def _public_product(op: Any, second: str) -> Any:
    function = checked(op)

    def named(input: Any, *args: Any, **kwargs: Any) -> Any:
        other = args[0] if args else kwargs[second]
        return function(input, other)

    named.__name__ = named.__qualname__ = op.name
    named.__doc__ = function.__doc__
    return public(op.name)(named)


mm = _public_product(mm_op, "mat2")
bmm = _public_product(bmm_op, "mat2")
mv = _public_product(mv_op, "vec")
dot = _public_product(dot_op, "tensor")


@public("outer", "ger")
def outer(input: Any, vec2: Any) -> Any:
    """outer(input, vec2)."""
    for name, v in (("self", input), ("vec2", vec2)):
        if v.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {v.ndim}-D")
    return input.unsqueeze(1) * vec2


@public("matmul")
def matmul(input: Any, other: Any) -> Any:
    """matmul(input, other): vectors, matrices and broadcast batches of matrices."""
    operands("matmul", input, other)
    if not (isinstance(input, Value) and isinstance(other, Value)):
        raise TypeError("matmul(): argument 'other' (position 2) must be Tensor, not "
                        f"{type(other).__name__}")  # fmt: skip
    a, b = input.ndim, other.ndim
    if a == 0 or b == 0:
        raise RuntimeError("both arguments to matmul need to be at least 1D, but they are "
                           f"{a}D and {b}D")  # fmt: skip
    if a == 1 and b == 1:
        return dot(input, other)
    if a == 2 and b == 1:
        return mv(input, other)
    if a == 1 and b == 2:
        return mm(input.unsqueeze(0), other).squeeze(0)
    if a == 2 and b == 2:
        return mm(input, other)
    if a >= 3 and b <= 2:
        return _fold_left(input, other)
    return _batched(input, other)


def _fold_left(input: Any, other: Any) -> Any:
    """A batch of matrices by one matrix or vector is one product of a tall matrix."""
    lead = tuple(input.shape[:-1])
    flat = input.reshape((math.prod(lead), input.shape[-1]))
    if other.ndim == 1:
        return mv(flat, other).view(lead)
    return mm(flat, other).view((*lead, other.shape[1]))


def _batched(input: Any, other: Any) -> Any:
    if input.ndim == 1:
        return _batched(input.unsqueeze(0), other).squeeze(-2)
    if other.ndim == 1:
        return _batched(input, other.unsqueeze(1)).squeeze(-1)
    if input.shape[-1] != other.shape[-2]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"[{math.prod(input.shape[:-2])}, {input.shape[-1]}] but got: "
            f"[{math.prod(other.shape[:-2])}, {other.shape[-2]}]."
        )
    lead = broadcast_shapes(tuple(input.shape[:-2]), tuple(other.shape[:-2]))
    count = math.prod(lead)
    left = input.expand((*lead, *input.shape[-2:])).reshape((count, *input.shape[-2:]))
    right = other.expand((*lead, *other.shape[-2:])).reshape((count, *other.shape[-2:]))
    return bmm(left, right).view((*lead, input.shape[-2], other.shape[-1]))


def _scale(value: Any, factor: Any) -> Any:
    return value if factor == 1 else value * conj(factor)


def _addmm(bias: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = np.matmul(a, b)
    if alpha != 1:
        product *= product.dtype.type(alpha)
    if beta == 0:
        return product
    product += bias if beta == 1 else bias * product.dtype.type(beta)
    return product


def _addmm_type(self: TensorType, mat1: TensorType, mat2: TensorType, **_: Any) -> TensorType:
    product = mm_type(mat1, mat2)
    if broadcast_shapes(self.shape, product.shape) != product.shape:
        raise RuntimeError(f"The expanded size of the tensor ({product.shape[-1]}) must match the "
                           f"existing size ({self.shape[-1]}) at non-singleton dimension 1.  Target"
                           f" sizes: {list(product.shape)}.  Tensor sizes: {list(self.shape)}")  # fmt: skip
    return product


addmm_op = define(
    "addmm", "self mat1 mat2 -> result", numpy=_addmm, infer=_addmm_type,
    lower=Decompose(lambda self, mat1, mat2, beta=1, alpha=1: (
        _scale(mm_op(mat1, mat2), alpha) if beta == 0
        else _scale(self, beta) + _scale(mm_op(mat1, mat2), alpha))),
    vjp=dict(self=lambda grad, beta: _scale(grad, beta),
             mat1=lambda grad, mat2, alpha: _scale(mm_op(grad, transposed(mat2)), alpha),
             mat2=lambda grad, mat1, alpha: _scale(mm_op(transposed(mat1), grad), alpha)),
)  # fmt: skip


@public("addmm", inplace=True)
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """addmm(input, mat1, mat2, *, beta=1, alpha=1): beta * input + alpha * (mat1 @ mat2)."""
    _addmm_type(input.type_, mat1.type_, mat2.type_)
    return addmm_op(input, mat1, mat2, beta=beta, alpha=alpha)


@public("linear", spaces="nn.functional", method=False)
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """linear(input, weight, bias=None): input @ weight.T + bias."""
    if weight.ndim == 1:
        product = matmul(input, weight)
        return product if bias is None else product + bias
    if bias is not None and input.ndim == 2:
        return addmm(bias, input, weight.t())
    if bias is not None and input.ndim == 3 and bias.ndim == 1:
        flat = input.reshape((-1, input.shape[-1]))
        result = addmm(bias, flat, weight.t())
        return result.view((*input.shape[:-1], weight.shape[0]))
    product = matmul(input, weight.t())
    return product if bias is None else product + bias

"""Matrix products: mm, bmm, mv, dot and what is made of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..bind import casting, state
from ..op import Decompose, Op, Template, define, same
from ..types import FLOAT, TensorType, bool_, broadcast_shapes, c_word, no_kernel, type_word
from ..value import public
from . import blas
from .arithmetic import conj
from .kinds import require_value
from .views import transpose_op


def same_dtype(a: TensorType, b: TensorType, kernel: str = "addmm_impl_cpu_") -> None:
    """Matrix products neither promote nor know bools."""
    if a.dtype is not b.dtype and not casting():
        first, second = c_word(a.dtype), c_word(b.dtype)
        raise RuntimeError("expected m1 and m2 to have the same dtype, but got: "
                           f"{first} != {second}")  # fmt: skip
    if a.dtype is bool_:
        raise no_kernel(kernel, bool_)


def drawn(*calls: Any, complex_: bool = False) -> Any:
    """Samples of an op: each call lists the shapes of its inputs, then its attributes."""

    def draw(rng: np.random.Generator) -> list[Any]:
        found = []
        for *shapes, attrs in calls:
            values = [rng.standard_normal(shape) for shape in shapes]
            if complex_:
                values = [v + 1j * rng.standard_normal(v.shape) for v in values]
            found.append((tuple(values), attrs))
        return found

    return draw


def mm_type(self: TensorType, mat2: TensorType) -> TensorType:
    if self.ndim != 2:
        raise RuntimeError(f"self must be a matrix, got {self}")
    if mat2.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {mat2}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied "
                           f"({self.shape[0]}x{self.shape[1]} and "
                           f"{mat2.shape[0]}x{mat2.shape[1]})")  # fmt: skip
    same_dtype(self, mat2)
    return TensorType(self.dtype, (self.shape[0], mat2.shape[1]))


def transposed(value: Any) -> Any:
    """The conjugate transpose of the last two dimensions."""
    if value.dtype.is_complex:
        value = conj(value)
    ndim = value.ndim
    return transpose_op(value, dim0=ndim - 2, dim1=ndim - 1)


def _layouts(*names: str) -> dict[str, Any]:
    return same(*(f"{name}_sym_{what}" for name in names for what in ("sizes", "strides")))


mm_op: Op = define(
    "mm", "self mat2 -> result", infer=mm_type, numpy=blas.matmul, lower=Template("matmul"),
    kind="product", batch="matmul", shown=_layouts("self", "mat2"),
    samples=drawn(((3, 4), (4, 2), {})),
    vjp=dict(self=lambda grad, mat2: mm_op(grad, transposed(mat2)),
             mat2=lambda grad, self: mm_op(transposed(self), grad)),
)  # fmt: skip


def bmm_type(self: TensorType, mat2: TensorType) -> TensorType:
    for word, batch in (("batch1", self), ("batch2", mat2)):
        if batch.ndim != 3:
            raise RuntimeError(f"{word} must be a 3D tensor, got {batch}")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: "
            f"[{self.shape[0]}, {self.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    if self.dtype is not mat2.dtype:
        raise RuntimeError(f"expected scalar type {type_word(self.dtype)} but found "
                           f"{type_word(mat2.dtype)}")  # fmt: skip
    same_dtype(self, mat2, "baddbmm")
    return TensorType(self.dtype, (self.shape[0], self.shape[1], mat2.shape[2]))


bmm_op: Op = define(
    "bmm", "self mat2 -> result", infer=bmm_type, numpy=blas.matmul, lower=Template("matmul"),
    kind="product", batch="matmul",
    samples=drawn(((2, 3, 4), (2, 4, 2), {})),
    vjp=dict(self=lambda grad, mat2: bmm_op(grad, transposed(mat2)),
             mat2=lambda grad, self: bmm_op(transposed(self), grad)),
)  # fmt: skip


def mv_type(self: TensorType, vec: TensorType) -> TensorType:
    if not self.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError("vector + matrix @ vector expected, got 1, "
                           f"{self.ndim}, {vec.ndim}")  # fmt: skip
    rows, columns = self.shape
    if columns != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{columns}), vec "
                           f"({vec.shape[0]})")  # fmt: skip
    if self.dtype is not vec.dtype:
        words = [type_word(t.dtype) for t in (vec, self, vec)]
        raise RuntimeError("addmv input tensors must have the same dtype, but got "
                           f"{words[0]}, {words[1]}, and {words[2]}")  # fmt: skip
    same_dtype(self, vec, "addmv_impl_cpu")
    return TensorType(self.dtype, self.shape[:1])


mv_op: Op = define(
    "mv", "self vec -> result", infer=mv_type, numpy=blas.matmul,
    lower=Decompose(lambda self, vec: mm_op(self, vec.view((vec.shape[0], 1))).view(
        (self.shape[0],))),
    samples=drawn(((3, 4), (4,), {})),
    vjp=dict(self=lambda grad, vec: grad.outer(conj(vec)),
             vec=lambda grad, self: mv_op(transposed(self), grad)),
)  # fmt: skip


def dot_type(self: TensorType, tensor: TensorType) -> TensorType:
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.shape != tensor.shape:
        m, n = self.shape[0], tensor.shape[0]
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{m}] and src [{n}] to have "
                           f"the same number of elements, but got {m} and {n} elements "
                           "respectively")  # fmt: skip
    if self.dtype is not tensor.dtype:
        raise RuntimeError("dot : expected both vectors to have same dtype, but found "
                           f"{type_word(self.dtype)} and {type_word(tensor.dtype)}")  # fmt: skip
    same_dtype(self, tensor, "dot")
    return TensorType(self.dtype, ())


dot_op = define(
    "dot", "self tensor -> result", infer=dot_type, numpy=lambda a, b: np.asarray(np.dot(a, b)),
    lower=Decompose(lambda self, tensor: (self * tensor).sum()),
    samples=drawn(((4,), (4,), {})),
    vjp=dict(self=lambda grad, tensor: grad * conj(tensor),
             tensor=lambda grad, self: grad * conj(self)),
)  # fmt: skip


def product(op: Any, left: Any, right: Any, ranks: tuple[int, int]) -> Any:
    """Runs a product; inference first where NumPy accepts more than torch."""
    require_value(op.name, left)
    require_value(op.name, right, op.inputs[1], 1)
    if casting():
        left, right = state.top.cast_operands(op, (left, right))  # type: ignore[attr-defined]
    if not (
        state.top is state.bottom and (left.ndim, right.ndim) == ranks
        and left.dtype is right.dtype and left.dtype.is_floating_point
        and (ranks != (3, 3) or len(left) == len(right))
    ):  # fmt: skip
        op.infer(left.type_, right.type_)
    return op(left, right)


@public("mm")
def mm(input: Any, mat2: Any) -> Any:
    """mm(input, mat2): the product of two matrices."""
    return product(mm_op, input, mat2, (2, 2))


@public("bmm")
def bmm(input: Any, mat2: Any) -> Any:
    """bmm(input, mat2): the products of two batches of matrices."""
    return product(bmm_op, input, mat2, (3, 3))


@public("mv")
def mv(input: Any, vec: Any) -> Any:
    """mv(input, vec): a matrix times a vector."""
    return product(mv_op, input, vec, (2, 1))


@public("dot")
def dot(input: Any, tensor: Any) -> Any:
    """dot(input, tensor): the dot product of two vectors, not conjugated."""
    return product(dot_op, input, tensor, (1, 1))


# The shape of a fresh product: its memory is shared with a value that nobody else sees, so it is no
# view.
unsafe_view: Op = define(
    "unsafe_view", "self -> result", moves_data=True, kind="view",
    node=lambda attrs: "SqueezeBackward4" if attrs.get("squeezed") else "UnsafeViewBackward0",
    numpy=lambda x, *, size, squeezed=False: x.reshape(size),
    infer=lambda self, *, size, squeezed=False: TensorType(self.dtype, size),
    lower=Decompose(lambda self, *, size, squeezed=False: self.view(size)),
    samples=drawn(((3, 4), {"size": (2, 6)})),
    vjp=dict(self=lambda grad, self_type: grad.reshape(self_type.shape)),
)  # fmt: skip


@public("outer", "ger", out="cast")
def outer(input: Any, vec2: Any) -> Any:
    """outer(input, vec2)."""
    for name, v in (("self", input), ("vec2", vec2)):
        if v.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {v.ndim}-D")
    return input.unsqueeze(1) * vec2


@public("matmul")
def matmul(input: Any, other: Any) -> Any:
    """matmul(input, other): vectors, matrices and broadcast batches of matrices."""
    require_value("matmul", input)
    require_value("matmul", other, "other", 1)
    a, b = input.ndim, other.ndim
    if a == 0 or b == 0:
        raise RuntimeError("both arguments to matmul need to be at least 1D, but they are "
                           f"{a}D and {b}D")  # fmt: skip
    if a == 1 and b == 1:
        return dot(input, other)
    if a == 2 and b == 1:
        return mv(input, other)
    if a == 1 and b == 2:
        return unsafe_view(mm(input.unsqueeze(0), other), size=(other.shape[1],), squeezed=True)
    if a == 2 and b == 2:
        return mm(input, other)
    if a >= 3 and b <= 2:
        return _fold_left(input, other)
    if a == 1:  # b >= 3
        product_ = _batched(input.unsqueeze(0), other)
        return unsafe_view(product_, size=(*other.shape[:-2], other.shape[-1]))
    if a == 2 and input.requires_grad:  # as torch: one product, whose gradient is one product
        return _fold_left(other.mT, input.t()).mT.contiguous()
    lead = broadcast_shapes(tuple(input.shape[:-2]), tuple(other.shape[:-2]))
    shape = (*lead, input.shape[-2], other.shape[-1])
    return unsafe_view(_batched(input, other), size=shape)


def _fold_left(input: Any, other: Any) -> Any:
    """A batch of matrices by one matrix or vector is one product of a tall matrix."""
    lead = tuple(input.shape[:-1])
    flat = input.reshape((math.prod(lead), input.shape[-1]))
    if other.ndim == 1:
        return unsafe_view(mv(flat, other), size=lead)
    return unsafe_view(mm(flat, other), size=(*lead, other.shape[1]))


def _batched(input: Any, other: Any) -> Any:
    """A batched product of matrices, with the batch broadcast and flattened."""
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
    return bmm(left, right)


# --- products with an addend ---------------------------------------------------------------------


def scale(grad: Any, factor: Any) -> Any:
    """A gradient through a product with a number."""
    return grad if factor == 1 else grad * conj(factor)


def with_addend(multiply: Any) -> Any:
    """beta * addend + alpha * product, where beta = 0 ignores even nan in the addend."""

    def evaluate(addend: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        result = multiply(a, b)
        if alpha != 1:
            result = result * result.dtype.type(alpha)
        if beta == 0:
            return result
        if beta != 1:
            addend = addend * result.dtype.type(beta)
        if not result.ndim:
            return result + addend
        result += addend
        return result

    return evaluate


def expanded(multiply: Any) -> Any:
    """The same in ops."""

    def expand(self: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        result = multiply(a, b)
        if result.dtype.category < FLOAT:  # factors are read in the product's dtype
            beta, alpha = (result.dtype.storage.type(n).item() for n in (beta, alpha))
        result = result if alpha == 1 else result * alpha
        if beta == 0:
            return result
        return (self if beta == 1 else self * beta) + result

    return expand


def check_expands(addend: TensorType, shape: tuple[int, ...]) -> None:
    """The addend must broadcast to the product's shape."""
    padded = (1,) * (len(shape) - addend.ndim) + addend.shape
    for d, (have, want) in enumerate(zip(padded, shape)):
        if addend.ndim > len(shape) or have not in (1, want):
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) "
                f"at non-singleton dimension {d}.  Target sizes: {list(shape)}.  Tensor sizes: "
                f"{list(addend.shape)}"
            )


def _addmm_type(self: TensorType, mat1: TensorType, mat2: TensorType, **_: Any) -> TensorType:
    for word, addend in (("self", self), ("mat1", mat1)):
        if addend.dtype is not mat2.dtype and not casting():
            words = type_word(addend.dtype), type_word(mat2.dtype)
            raise RuntimeError(f"{word} and mat2 must have the same dtype, but got {words[0]} and "
                               f"{words[1]}")  # fmt: skip
    result = mm_type(mat1, mat2)
    check_expands(self, result.shape)
    return result


addmm_op = define(
    "addmm", "self mat1 mat2 -> result", numpy=with_addend(blas.matmul), infer=_addmm_type,
    lower=Decompose(expanded(mm_op)), kind="product", shown=_layouts("mat1", "mat2"),
    samples=drawn(((3, 2), (3, 4), (4, 2), {}), ((2,), (3, 4), (4, 2), {"beta": 2, "alpha": 0.5})),
    vjp=dict(self=lambda grad, beta: scale(grad, beta),
             mat1=lambda grad, mat2, alpha: scale(mm_op(grad, transposed(mat2)), alpha),
             # mat2 is mostly a weight transposed: so is its gradient, made in the weight's layout
             mat2=lambda grad, mat1, alpha: scale(
                 transposed(mm_op(transposed(grad), mat1)), alpha)),
)  # fmt: skip


@public("addmm", inplace=True, overlap="copied")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """addmm(input, mat1, mat2, *, beta=1, alpha=1): beta * input + alpha * (mat1 @ mat2)."""
    if not (
        state.top is state.bottom and mat1.ndim == 2 == mat2.ndim
        and input.dtype is mat1.dtype is mat2.dtype and input.dtype.is_floating_point
    ):  # fmt: skip
        _addmm_type(input.type_, mat1.type_, mat2.type_)  # NumPy accepts more than torch
    return addmm_op(input, mat1, mat2, beta=beta, alpha=alpha)


def _is_dense(input: Any) -> bool:
    """Is the memory in the usual order? Values in IR have no strides."""
    array = getattr(input, "_array", None)
    return array is None or bool(array.flags.c_contiguous)


@public("linear", spaces="nn.functional", method=False)
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """linear(input, weight, bias=None): input @ weight.T + bias."""
    require_value("linear", input)
    if weight.ndim == 1:
        product = matmul(input, weight)
        return product if bias is None else product + bias
    if bias is not None and input.ndim == 2:
        return addmm(bias, input, weight.t())
    if bias is not None and bias.ndim == 1 and input.ndim and _is_dense(input):
        flat = input.view((math.prod(input.shape[:-1]), input.shape[-1]))
        result = addmm(bias, flat, weight.t())
        return result.view((*input.shape[:-1], weight.shape[0]))
    product = matmul(input, weight.t())
    return product if bias is None else product + bias

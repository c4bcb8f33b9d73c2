"""Complex numbers: parts, conjugates, polar form; gradients in torch's convention (conjugated).

Note [Conjugates]
    torch's `conj()` is a lazy view. Here it is a value of its own, marked for `is_conj()`; it does
    not see later writes to its source, and writes to it do not reach the source.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import warn_once
from ..bind import notify
from ..op import Decompose, Scalar, define
from ..types import COMPLEX, DType, TensorType, bool_, broadcast_shapes, default_dtype, type_word
from ..value import Value, public
from .kinds import require_value, view
from .mathematics import zero_of
from .precision import full_precision


def _samples(rng: np.random.Generator) -> list[Any]:
    z = rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3))
    return [((z,), {}), ((z[0, 0],), {}), ((z[:, :0],), {})]


# --- complex and real views of one memory --------------------------------------------------------


def _view_as_real(x: np.ndarray) -> np.ndarray:
    return x[..., None].view(x.real.dtype)


def _view_as_complex(x: np.ndarray) -> np.ndarray:
    if x.strides[-1] != x.itemsize:  # a gradient, laid out as its maker left it
        x = np.ascontiguousarray(x)
    return x.view(np.result_type(x.dtype, np.complex64))[..., 0]


view_as_real = view(
    "view_as_real", "self -> result", numpy=_view_as_real, samples=_samples,
    infer=lambda self: TensorType(self.dtype.to_real(), (*self.shape, 2)),
    put=lambda base, patch: view_as_complex(patch.contiguous()),
    vjp=dict(self=lambda grad: view_as_complex(grad.contiguous())),
)  # fmt: skip
view_as_complex: Any = view(
    "view_as_complex", "self -> result", numpy=_view_as_complex,
    infer=lambda self: TensorType(self.dtype.to_complex(), self.shape[:-1]),
    put=lambda base, patch: view_as_real(patch),
    vjp=dict(self=lambda grad: view_as_real(grad)),
    samples=lambda rng: [((rng.standard_normal((3, 2)),), {}), ((rng.standard_normal(2),), {})],
)  # fmt: skip


@public("view_as_real", method=False)
def view_as_real_(input: Any) -> Any:
    """view_as_real(input): real and imaginary parts along a new last dimension."""
    require_value("view_as_real", input)
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return view_as_real(input)


@public("view_as_complex", method=False)
@full_precision
def view_as_complex_(input: Any) -> Any:
    """view_as_complex(input): pairs along the last dimension as complex numbers."""
    require_value("view_as_complex", input)
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {type_word(input.dtype)}"
        )
    if not input.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    stride = getattr(input, "stride", None)
    if stride is not None and stride(-1) != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    return view_as_complex(input)


# The real part as a value: what `fit` takes of a complex gradient for a real input.
real_op = define(
    "real", "self -> result", numpy=lambda x: np.ascontiguousarray(x.real).reshape(x.shape),
    infer=lambda self: TensorType(self.dtype.to_real(), self.shape), kind="pointwise",
    vjp=dict(self=lambda grad, self_type: grad.to(self_type.dtype)), samples=_samples,
    lower=Scalar(lambda s, x: s.real(x)),
)  # fmt: skip


@public("real", method=False)
def real(input: Any) -> Any:
    """real(input): the real part, a view; the input itself where it is real."""
    require_value("real", input)
    return view_as_real(input).select(-1, 0) if input.dtype.is_complex else input


@public("imag", method=False)
def imag(input: Any) -> Any:
    """imag(input): the imaginary part, a view."""
    require_value("imag", input)
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return view_as_real(input).select(-1, 1)


def _part(function: Any) -> property:
    def write(self: Any, value: Any) -> None:
        part = function(self)
        part.copy_(value) if isinstance(value, Value) else part.fill_(value)

    return property(function, write, doc=function.__doc__)


Value.real = _part(real)  # type: ignore[attr-defined]
Value.imag = _part(imag)  # type: ignore[attr-defined]

# --- conjugates ----------------------------------------------------------------------------------


def _conjugate(name: str, node: str) -> Any:
    return define(
        name, "self -> result", numpy=np.conjugate, infer=lambda self: self, kind="pointwise",
        node=node, vjp=dict(self=lambda grad: conj(grad)), samples=_samples,
        lower=Scalar(lambda s, x: s.conj(x)),
    )  # fmt: skip


conj_op = _conjugate("conj", "ConjBackward0")
conj_physical_op = _conjugate("conj_physical", "ConjPhysicalBackward0")


@public("conj")
def conj(input: Any) -> Any:
    """conj(input): the conjugate; the input itself where it is real. See Note [Conjugates]."""
    require_value("conj", input)
    if not input.dtype.is_complex:
        return input
    result = conj_op(input)
    facts = getattr(result, "__dict__", None)  # Tensors have it, IR values need no mark
    if facts is not None and "_conjugated" not in input.__dict__:
        facts["_conjugated"] = True
    return result


@public("is_conj")
def is_conj(input: Any) -> bool:
    """is_conj(input): was it made by conj()?"""
    notify("mark_asked", input, "is_conj")
    return bool(getattr(input, "__dict__", {}).get("_conjugated"))


@public("is_neg")
def is_neg(input: Any) -> bool:
    """is_neg(input): negation is never lazy here."""
    return False


@public("conj_physical", inplace=True)
def conj_physical(input: Any) -> Any:
    """conj_physical(input): the conjugate, computed now."""
    require_value("conj_physical", input)
    return conj_physical_op(input) if input.dtype.is_complex else input


@public("resolve_conj")
def resolve_conj(input: Any) -> Any:
    """resolve_conj(input): a tensor without the mark of conj()."""
    require_value("resolve_conj", input)
    return input.clone() if is_conj(input) else input


@public("resolve_neg")
def resolve_neg(input: Any) -> Any:
    """resolve_neg(input): the input itself."""
    require_value("resolve_neg", input)
    return input


@public("adjoint")
def adjoint(input: Any) -> Any:
    """adjoint(input): the last two dimensions transposed, conjugated."""
    if input.ndim == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. "
                           "Got 1-D tensor.")  # fmt: skip
    if not input.ndim:
        return conj(input)
    return conj(input.transpose(-2, -1))


def _hermitian(self: Any) -> Any:
    """The conjugate transpose of a matrix."""
    if self.ndim not in (0, 2):
        batches = " For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""
        raise RuntimeError("tensor.H is only supported on matrices (2-D tensors). Got "
                           f"{self.ndim}-D tensor.{batches}")  # fmt: skip
    if self.ndim:
        return adjoint(self)
    warn_once("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().")
    return conj(self)


def _batched_hermitian(self: Any) -> Any:
    """The conjugate transpose of the last two dimensions."""
    if self.ndim == 0:
        warn_once("Tensor.mH is deprecated on 0-D tensors. Consider using x.conj().")
        return conj(self)
    if self.ndim < 2:
        raise RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got "
                           f"{self.ndim}-D tensor.")  # fmt: skip
    return adjoint(self)


Value.H = property(_hermitian)  # type: ignore[attr-defined]
Value.mH = property(_batched_hermitian)  # type: ignore[attr-defined]

# --- building and taking apart -------------------------------------------------------------------


def _check_parts(name: str, a: Any, b: Any, words: tuple[str, str]) -> None:
    for position, (word, value) in enumerate(zip(words, (a, b))):
        require_value(name, value, word, position)
    _check_dtypes(a.dtype, b.dtype)


def _check_dtypes(a: DType, b: DType) -> None:
    if any(dtype.name not in ("float32", "float64") for dtype in (a, b)):
        raise RuntimeError("Expected both inputs to be Half, Float or Double tensors but got "
                           f"{type_word(a)} and {type_word(b)}")  # fmt: skip
    if a is not b:
        raise RuntimeError(f"Expected object of scalar type {type_word(a)} but got scalar "
                           f"type {type_word(b)} for second argument")  # fmt: skip


def _complex(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(a.shape, b.shape)
    result = np.empty(shape, np.result_type(a.dtype, np.complex64))
    result.real, result.imag = a, b
    return result


def _complex_infer(self: TensorType, other: TensorType) -> TensorType:
    _check_dtypes(self.dtype, other.dtype)
    return TensorType(self.dtype.to_complex(), broadcast_shapes(self.shape, other.shape))


def _two_reals(rng: np.random.Generator) -> list[Any]:
    a, b = rng.uniform(0.5, 2, (2, 3)), rng.uniform(0.5, 2, (2, 3))
    return [((a, b), {}), ((a, b[0]), {}), ((a[0, 0], b[0, 0]), {})]


complex_op = define(
    "complex", "real imag -> result", numpy=_complex, infer=_complex_infer, kind="pointwise",
    vjp=dict(real=lambda grad: real(grad), imag=lambda grad: imag(grad)), samples=_two_reals,
    lower=Scalar(lambda s, a, b: s.complex(a, b)),
)  # fmt: skip
polar_op = define(
    "polar", "abs angle -> result", infer=_complex_infer, kind="pointwise", samples=_two_reals,
    numpy=lambda r, angle: _complex(r * np.cos(angle), r * np.sin(angle)),
    lower=Decompose(lambda abs, angle: complex_op(abs * angle.cos(), abs * angle.sin())),
    vjp=dict(abs=lambda grad, result: real(conj(grad) * result.sgn()),
             angle=lambda grad, result: real(conj(grad) * (result * 1j))),
)  # fmt: skip


@public("complex", method=False)
def complex_(real: Any, imag: Any) -> Any:
    """complex(real, imag): a complex tensor of these parts."""
    _check_parts("complex", real, imag, ("real", "imag"))
    return complex_op(real, imag)


@public("polar", method=False)
@full_precision
def polar(abs: Any, angle: Any) -> Any:
    """polar(abs, angle): abs * (cos(angle) + 1j * sin(angle))."""
    _check_parts("polar", abs, angle, ("abs", "angle"))
    return polar_op(abs, angle)


def _angle(x: np.ndarray) -> Any:
    if x.dtype.kind == "c":
        return np.angle(x)
    result = np.where(x < 0, x.dtype.type(math.pi), x.dtype.type(0))
    return np.where(np.isnan(x), x, result)


def _angle_dtype(dtype: DType) -> DType:
    if dtype.category == COMPLEX:
        return dtype.to_real()
    return dtype if dtype.is_floating_point else default_dtype()


def _angle_vjp(grad: Any, self: Any) -> Any:
    if not self.dtype.is_complex:
        return grad.new_zeros(grad.shape)
    slope = grad * (self / (self * conj(self))) * 1j
    return slope.where(self != 0, zero_of(slope))


angle_op = define(
    "angle", "self -> result", numpy=_angle, kind="pointwise",
    infer=lambda self: TensorType(_angle_dtype(self.dtype), self.shape),
    vjp=dict(self=_angle_vjp), samples=_samples, lower=Scalar(lambda s, x: s.angle(x)),
)  # fmt: skip


@public("angle", out="cast")
def angle(input: Any) -> Any:
    """angle(input): the argument of complex numbers; 0 or pi of real ones."""
    require_value("angle", input)
    dtype = input.dtype
    return angle_op(input if dtype.category > 1 else input.to(_angle_dtype(dtype)))


@public("isreal")
def isreal(input: Any) -> Any:
    """isreal(input): is the imaginary part zero?"""
    require_value("isreal", input)
    if input.dtype.is_complex:
        return imag(input) == 0
    return input.new_ones(tuple(input.shape), dtype=bool_)

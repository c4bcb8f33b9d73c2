"""Activation functions: the entries. Their public functions are in `nn_activation_calls.py`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import TABLE, Decompose, define
from ..types import TensorType
from .arithmetic import conj
from .choosing import choose
from .kinds import pointwise
from .mathematics import zero_of
from .nn_common import formally

ROOT_HALF = math.sqrt(0.5)
ROOT_2_PI = math.sqrt(2 / math.pi)


def activation(
    name: str, *, signature: str = "self -> result", sample: dict[str, Any] | None = None,
    **facts: Any,
) -> Any:  # fmt: skip
    """A pointwise entry without a public function of its own; `sample` gives its attributes."""
    if sample is not None:
        facts["samples"] = lambda rng: [((rng.uniform(-2, 2, shape),), dict(sample))
                                        for shape in ((3, 4), (), (0, 2))]  # fmt: skip
    return pointwise(name, signature, publish=False, **facts)


# --- pieces of lines -----------------------------------------------------------------------------


def _relu(x: np.ndarray) -> Any:
    if x.dtype == np.bool_:
        raise RuntimeError("Boolean inputs not supported for relu")
    if x.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    return np.maximum(x, x.dtype.type(0))


relu_op = pointwise(
    "relu", "self -> result", numpy=_relu, scalar=lambda s, x: s.maximum(x, s.const(0)),
    second="ThresholdBackwardBackward0",
    vjp=dict(self=lambda grad, result: formally(grad.masked_fill(result <= 0, 0), result)),
    domain=(0.3, 3),
)  # fmt: skip

hardtanh_op = activation(
    "hardtanh", second=True, sample={"min_val": -1.0, "max_val": 0.5},
    numpy=lambda x, *, min_val, max_val: np.clip(x, x.dtype.type(min_val), x.dtype.type(max_val)),
    scalar=lambda s, x, *, min_val, max_val: s.minimum(
        s.maximum(x, s.const(min_val)), s.const(max_val)),
    vjp=dict(self=lambda grad, self, min_val, max_val: formally(grad.where(
        (self > min_val).logical_and(self < max_val), zero_of(grad)), self)),
)  # fmt: skip
leaky_relu_op = activation(
    "leaky_relu", second=True, sample={"negative_slope": 0.1},
    numpy=lambda x, *, negative_slope: choose(x > 0, x, x * x.dtype.type(negative_slope)),
    scalar=lambda s, x, *, negative_slope: s.select(
        s.gt(x, s.const(0)), x, s.mul(x, s.const(negative_slope))),
    vjp=dict(self=lambda grad, self, negative_slope: formally(grad.where(
        self > 0, grad * negative_slope), self)),
)  # fmt: skip
threshold_op = activation(
    "threshold", second=True, sample={"threshold": 0.3, "value": -2.0},
    numpy=lambda x, *, threshold, value: choose(x <= threshold, x.dtype.type(value), x),
    scalar=lambda s, x, *, threshold, value: s.select(
        s.le(x, s.const(threshold)), s.const(value), x),
    vjp=dict(self=lambda grad, self, threshold: formally(
        grad.masked_fill(self <= threshold, 0), self)),
)  # fmt: skip
hardshrink_op = activation(
    "hardshrink", second=True, sample={"lambd": 0.5},
    numpy=lambda x, *, lambd: choose(np.abs(x) <= x.dtype.type(lambd), x.dtype.type(0), x),
    scalar=lambda s, x, *, lambd: s.select(s.le(s.abs(x), s.const(lambd)), s.const(0), x),
    vjp=dict(self=lambda grad, self, lambd: formally(
        grad.where(self.abs() > lambd, zero_of(grad)), self)),
)  # fmt: skip
softshrink_op = activation(
    "softshrink", second=True, sample={"lambd": 0.5},
    numpy=lambda x, *, lambd: x - np.clip(x, x.dtype.type(-lambd), x.dtype.type(lambd)),
    scalar=lambda s, x, *, lambd: s.sub(
        x, s.minimum(s.maximum(x, s.const(-lambd)), s.const(lambd))),
    vjp=dict(self=lambda grad, self, lambd: formally(
        grad.where(self.abs() > lambd, zero_of(grad)), self)),
)  # fmt: skip
hardsigmoid_op = activation(
    "hardsigmoid",
    numpy=lambda x: np.clip(x + x.dtype.type(3), 0, 6) / x.dtype.type(6),
    scalar=lambda s, x: s.div(_six(s, x), s.const(6)),
    vjp=dict(self=lambda grad, self: formally((grad * (1 / 6)).where(
        (self > -3).logical_and(self < 3), zero_of(grad)), self)),
)  # fmt: skip


def _six(s: Any, x: Any) -> Any:
    return s.minimum(s.maximum(s.add(x, s.const(3)), s.const(0)), s.const(6))


def _hardswish_vjp(grad: Any, self: Any) -> Any:
    middle = (grad * (self / 3 + 0.5)).masked_fill(self <= -3, 0)
    return grad.where(self >= 3, middle)


hardswish_op = activation(
    "hardswish", second=True,
    numpy=lambda x: x * np.clip(x + x.dtype.type(3), 0, 6) / x.dtype.type(6),
    scalar=lambda s, x: s.div(s.mul(x, _six(s, x)), s.const(6)),
    vjp=dict(self=_hardswish_vjp),
)  # fmt: skip
prelu_op = activation(
    "prelu", signature="self weight -> result", node="PreluKernelBackward0", second=True,
    numpy=lambda x, weight: choose(x > 0, x, weight * x),
    scalar=lambda s, x, w: s.select(s.gt(x, s.const(0)), x, s.mul(w, x)),
    vjp=dict(self=lambda grad, self, weight: formally(
                 grad.where(self > 0, grad * weight), self),
             weight=lambda grad, self: (grad * self).masked_fill(self > 0, 0)),
)  # fmt: skip

# --- exponentials --------------------------------------------------------------------------------


def _elu(x: np.ndarray, *, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    below = np.expm1(np.minimum(x, 0) * x.dtype.type(input_scale)) * x.dtype.type(alpha * scale)
    return choose(x < 0, below, x * x.dtype.type(scale))


def _elu_emit(s: Any, x: Any, *, alpha: Any, scale: Any = 1.0, input_scale: Any = 1.0) -> Any:
    below = s.mul(s.expm1(s.mul(x, s.const(input_scale))), s.const(alpha * scale))
    return s.select(s.lt(x, s.const(0)), below, s.mul(x, s.const(scale)))


def _elu_vjp(grad: Any, self: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    # clamped: exp of a large x would meet a zero gradient in the second order
    below = (self.clamp(max=0) * input_scale).exp() * (alpha * scale * input_scale)
    return (grad * scale).where(self > 0, grad * below)


_ELU_SAMPLE = {"alpha": 0.7, "scale": 1.2, "input_scale": 1.5}
elu_op = activation("elu", second=True, numpy=_elu, scalar=_elu_emit, vjp=dict(self=_elu_vjp),
                    sample=_ELU_SAMPLE, many_passes=True)  # fmt: skip
celu_op = activation("celu", second="EluBackwardBackward0", numpy=_elu, scalar=_elu_emit,
                     vjp=dict(self=_elu_vjp), sample=_ELU_SAMPLE,
                     shown={"scale": None, "input_scale": None})  # fmt: skip


def _softplus(x: np.ndarray, *, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = x * x.dtype.type(beta)
    soft = np.log1p(np.exp(np.minimum(scaled, threshold))) / x.dtype.type(beta)
    return choose(scaled > threshold, x, soft)


def _softplus_emit(s: Any, x: Any, *, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = s.mul(x, s.const(beta))
    soft = s.div(s.log1p(s.exp(scaled)), s.const(beta))
    return s.select(s.gt(scaled, s.const(threshold)), x, soft)


softplus_op = activation(
    "softplus", second=True, numpy=_softplus, scalar=_softplus_emit, many_passes=True,
    vjp=dict(self=lambda grad, self, beta, threshold: grad.where(
        self * beta > threshold, grad * (self * beta).sigmoid())),
)  # fmt: skip
logsigmoid_op = activation(
    "logsigmoid", node="LogSigmoidBackward0", second=True, many_passes=True,
    numpy=lambda x: np.subtract(np.minimum(x, 0), np.log1p(np.exp(-np.abs(x))), order="C"),
    scalar=lambda s, x: s.sub(s.minimum(x, s.const(0)), s.log1p(s.exp(s.neg(s.abs(x))))),
    vjp=dict(self=lambda grad, self: grad * (-self).sigmoid()),
)  # fmt: skip


def _silu_vjp(grad: Any, self: Any) -> Any:
    gate = self.sigmoid()
    return grad * conj(gate * (1 + self * (1 - gate)))


silu_op = activation(
    "silu", numpy=lambda x: x / (1 + np.exp(-x)), scalar=lambda s, x: s.mul(x, s.sigmoid(x)),
    vjp=dict(self=_silu_vjp),
)  # fmt: skip


def _mish_vjp(grad: Any, self: Any) -> Any:
    inner = softplus_op(self, beta=1.0, threshold=20.0).tanh()
    return grad * (inner + self * self.sigmoid() * (1 - inner * inner))


mish_op = activation(
    "mish", numpy=lambda x: x * np.tanh(_softplus(x)), vjp=dict(self=_mish_vjp),
    many_passes=True,
    scalar=lambda s, x: s.mul(x, s.tanh(_softplus_emit(s, x))),
)  # fmt: skip


def _gelu(x: np.ndarray, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        inner = np.tanh(ROOT_2_PI * (x + 0.044715 * x * x * x))
    else:
        inner = TABLE["erf"].numpy(x * x.dtype.type(ROOT_HALF))
    return 0.5 * x * (1 + inner)


def _gelu_emit(s: Any, x: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        cube = s.mul(s.mul(s.mul(x, x), x), s.const(0.044715))
        inner = s.tanh(s.mul(s.add(x, cube), s.const(ROOT_2_PI)))
    else:
        inner = s.erf(s.mul(x, s.const(ROOT_HALF)))
    return s.mul(s.mul(x, s.const(0.5)), s.add(s.const(1), inner))


def _gelu_vjp(grad: Any, self: Any, approximate: str) -> Any:
    square = self * self
    if approximate == "tanh":
        inner = ((self + 0.044715 * square * self) * ROOT_2_PI).tanh()
        slope = (1 - inner * inner) * ((1 + 3 * 0.044715 * square) * ROOT_2_PI)
        return grad * (0.5 * (1 + inner) + 0.5 * self * slope)
    below = 0.5 * (1 + (self * ROOT_HALF).erf())
    density = (square * -0.5).exp() * (0.5 * ROOT_2_PI)
    return grad * (below + self * density)


gelu_op = activation("gelu", second=True, numpy=_gelu, scalar=_gelu_emit, vjp=dict(self=_gelu_vjp),
                     many_passes=True)  # fmt: skip

# --- halves and noise ----------------------------------------------------------------------------


def _halves(x: Any, dim: int) -> tuple[Any, Any]:
    half = x.shape[dim] // 2
    return x.narrow(dim, 0, half), x.narrow(dim, half, half)


def _glu(x: np.ndarray, *, dim: int) -> Any:
    first, second = np.split(x, 2, axis=dim)
    return first / (1 + np.exp(-second))


def _glu_vjp(grad: Any, self: Any, dim: int) -> Any:
    first, second = _halves(self, dim)
    gate = second.sigmoid()
    return (grad * gate).cat_with(grad * first * gate * (1 - gate), dim=dim)


def _glu_expand(self: Any, *, dim: int) -> Any:
    first, second = _halves(self, dim)
    return first * second.sigmoid()


glu_op = define(
    "glu", "self -> result", numpy=_glu, lower=Decompose(_glu_expand), vjp=dict(self=_glu_vjp),
    second=True,
    infer=lambda self, *, dim: TensorType(
        self.dtype, (*self.shape[:dim], self.shape[dim] // 2, *self.shape[dim + 1 :])),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), dict(dim=1))],
)  # fmt: skip
rrelu_with_noise = activation(
    "rrelu_with_noise", signature="self noise -> result",
    numpy=lambda x, noise: choose(x > 0, x, x * noise),
    scalar=lambda s, x, noise: s.select(s.gt(x, s.const(0)), x, s.mul(x, noise)),
    vjp=dict(self=lambda grad, self, noise: formally(
        grad.where(self > 0, grad * noise), self)),
)  # fmt: skip
rrelu_mean = activation(
    "rrelu_mean", node="RreluWithNoiseBackward0", sample={"slope": 0.2},
    numpy=lambda x, *, slope: choose(x > 0, x, x * x.dtype.type(slope)),
    scalar=lambda s, x, *, slope: s.select(s.gt(x, s.const(0)), x, s.mul(x, s.const(slope))),
    vjp=dict(self=lambda grad, self, slope: formally(
        grad.where(self > 0, grad * slope), self)),
)  # fmt: skip

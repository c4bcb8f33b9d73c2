"""Special functions of `torch.special`: how they are built, and the elementary ones among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..op import Op, Scalar, define
from ..types import TensorType
from ..value import public
from .arithmetic import conj, lift
from .kinds import binary, pointwise, refuse, require_value, to_float, unary
from .layouts import in_memory_order
from .mathematics import sigmoid, zero_of


def in_double(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of flat float64 arrays as an evaluation of real floating arrays."""

    def evaluate(*arrays: Any) -> Any:
        refuse(name, "c", *arrays)
        dtype = np.result_type(*arrays)
        wide = np.broadcast_arrays(*(np.asarray(a, np.float64) for a in arrays))
        result = function(*(a.reshape(-1) for a in wide))
        return result.reshape(wide[0].shape).astype(dtype)

    return in_memory_order(evaluate)


def special(name: str, function: Callable[..., Any], signature: str = "self -> result",
            **facts: Any) -> Op:  # fmt: skip
    """A function of torch.special computed in double precision; no method, no in-place twin."""
    op = pointwise(f"special_{name}", signature, promote="float", publish=False,
                   numpy=in_double(f"special_{name}", function), **facts)  # fmt: skip
    alias(name, op)
    return op


def alias(name: str, target: Any) -> None:
    """Publishes an op, or a function, in torch.special under `name`."""
    if isinstance(target, Op):
        target = unary(target) if len(target.inputs) == 1 else binary(target, "self other")
        target.__name__ = target.__qualname__ = name
    public(name, spaces="special", method=False, out=getattr(target, "out", "cast"))(target)


alias("expit", sigmoid)

# --- x log y -------------------------------------------------------------------------------------


def _xlog(name: str, function: Any) -> Any:
    def evaluate(x: Any, y: Any) -> Any:
        refuse(name, "c", x, y)
        dtype = np.result_type(x, y)
        x, y = np.asarray(x, dtype), np.asarray(y, dtype)
        return np.where(np.isnan(y), y, np.where(x == 0, dtype.type(0), x * function(y)))

    return evaluate


def _xlog_emit(method: str) -> Any:
    def emit(s: Any, x: Any, y: Any) -> Any:
        zero = s.const(0)
        product = s.select(s.eq(x, zero), zero, s.mul(x, getattr(s, method)(y)))
        return s.select(s.isnan(y), y, product)

    return emit


def _xlog_self(method: str, pole: float) -> Any:
    def rule(grad: Any, self: Any, other: Any) -> Any:
        y = lift(other, grad)
        none = (y <= pole).logical_and(self.eq(0))
        return (grad * getattr(y, method)()).masked_fill(none, 0)

    return rule


xlogy = pointwise(
    "xlogy", "self other -> result", promote="float", spaces="torch special", domain=(0.3, 3),
    numpy=_xlog("xlogy", np.log), scalar=_xlog_emit("log"),
    number_nodes=("XlogyBackward1", "XlogyBackward2"),
    vjp=dict(self=_xlog_self("log", 0), other=lambda grad, self, other: grad * self / other),
)  # fmt: skip
xlog1py = pointwise(
    "special_xlog1py", "self other -> result", promote="float", publish=False, domain=(0.3, 3),
    numpy=_xlog("special_xlog1py", np.log1p), scalar=_xlog_emit("log1p"),
    number_nodes=("SpecialXlog1PyBackward1", "SpecialXlog1PyBackward2"),
    vjp=dict(self=_xlog_self("log1p", -1),
             other=lambda grad, self, other: grad * self / (other + 1)),
)  # fmt: skip
alias("xlog1py", xlog1py)


def _entr(x: np.ndarray) -> np.ndarray:
    refuse("special_entr", "c", x)
    value = np.where(x == 0, 0, -x * np.log(x))
    return np.where(x < 0, -np.inf, value).astype(x.dtype)


def _entr_emit(s: Any, x: Any) -> Any:
    zero = s.const(0)
    value = s.select(s.eq(x, zero), zero, s.neg(s.mul(x, s.log(x))))
    return s.select(s.lt(x, zero), s.const(-math.inf), value)


entr = pointwise("special_entr", "self -> result", promote="float", publish=False, numpy=_entr,
                 scalar=_entr_emit, domain=(0.3, 3),
                 vjp=dict(self=lambda grad, self: grad * -(self.log() + 1)))  # fmt: skip
alias("entr", entr)

# --- sinc and logit ------------------------------------------------------------------------------


def _sinc(x: np.ndarray) -> np.ndarray:
    angle = x * x.dtype.type(math.pi)
    return np.where(x == 0, 1, np.sin(angle) / angle).astype(x.dtype)


def _sinc_emit(s: Any, x: Any) -> Any:
    angle = s.mul(x, s.const(math.pi))
    return s.select(s.eq(x, s.const(0)), s.const(1), s.div(s.sin(angle), angle))


def _sinc_vjp(grad: Any, self: Any) -> Any:
    angle = self * math.pi
    square = angle * self
    slope = grad * conj((angle * angle.cos() - angle.sin()) / square)
    return slope.where(square != 0, zero_of(grad))


sinc = pointwise("sinc", "self -> result", promote="float", numpy=_sinc, scalar=_sinc_emit,
                 spaces="torch special", domain=(0.2, 2), vjp=dict(self=_sinc_vjp))  # fmt: skip


def _logit(x: np.ndarray, *, eps: float | None = None) -> Any:
    refuse("logit", "c", x)
    if eps is not None:
        x = np.clip(x, x.dtype.type(eps), x.dtype.type(1 - eps))
    return np.log(x / (1 - x))


def _logit_emit(s: Any, x: Any, *, eps: float | None = None) -> Any:
    if eps is not None:
        x = s.minimum(s.maximum(x, s.const(eps)), s.const(1 - eps))
    return s.log(s.div(x, s.sub(s.const(1), x)))


def _logit_vjp(grad: Any, self: Any, eps: Any) -> Any:
    low, outside = (0.0, math.nan) if eps is None else (eps, 0.0)
    slope = grad / (self * (1 - self))
    return slope.masked_fill((self < low).logical_or(self > 1 - low), outside)


logit_op = define(
    "logit", "self -> result", numpy=_logit, kind="pointwise", lower=Scalar(_logit_emit),
    infer=lambda self, *, eps=None: TensorType(to_float([self]), self.shape),
    promote=to_float, vjp=dict(self=_logit_vjp),
    samples=lambda rng: [((rng.uniform(0.1, 0.9, (2, 3)),), {}),
                         ((rng.uniform(0.25, 0.75, 4),), {"eps": 0.2})],
)  # fmt: skip


@public("logit", spaces="torch special", inplace=True, out="cast")
def logit(input: Any, eps: float | None = None) -> Any:
    """logit(input, eps=None): log(x / (1 - x)), with x clamped to [eps, 1 - eps]."""
    require_value("logit", input)
    # a negative eps means none, as in torch
    return logit_op(input) if eps is None or eps < 0 else logit_op(input, eps=eps)

"""scaled_dot_product_attention: one entry where torch has a fused kernel, else its composite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..bind import casting
from ..op import Decompose, define
from ..types import TensorType, bool_, c_word, float32, int64
from ..value import public
from . import blas
from .creation import iota
from .nn_dropout import dropout
from .softmax import total
from .totals import add_up

# --- softmax that gives 0 where everything is masked ---------------------------------------------


def _safe_softmax(x: np.ndarray, *, dim: int = -1) -> Any:
    if not x.size:
        return x.copy()
    largest = np.max(x, axis=dim, keepdims=True)
    masked = np.isneginf(largest)
    values = np.exp(x - np.where(masked, x.dtype.type(0), largest))
    values /= np.where(masked, x.dtype.type(1), add_up(values, dim, True))
    return values


def _safe_expand(self: Any, *, dim: int = -1) -> Any:
    largest = self.amax(dim, keepdim=True)
    masked = largest == -math.inf
    values = (self - largest.masked_fill(masked, 0)).exp()
    return values / values.sum(dim, keepdim=True).masked_fill(masked, 1)


def softmax_vjp(grad: Any, result: Any, dim: int) -> Any:
    weighted = grad * result
    return weighted - result * total(weighted, dim % grad.ndim)


safe_softmax = define(
    "safe_softmax", "self -> result", numpy=_safe_softmax, infer=lambda self, *, dim=-1: self,
    lower=Decompose(_safe_expand), vjp=dict(self=softmax_vjp), many_passes=True,
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": -1})],
)  # fmt: skip

# --- the fused entry -----------------------------------------------------------------------------


def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, *, is_causal: bool = False,
    scale: float,
) -> Any:  # fmt: skip
    scores = blas.matmul(query, np.swapaxes(key, -2, -1))
    scores *= scores.dtype.type(scale)
    if attn_mask is not None:
        if attn_mask.dtype == np.bool_:
            scores = np.where(attn_mask, scores, -np.inf).astype(scores.dtype, copy=False)
        else:
            scores += attn_mask
    if is_causal:
        below = np.tri(scores.shape[-2], scores.shape[-1], dtype=np.bool_)
        scores = np.where(below, scores, scores.dtype.type(-np.inf))
    return blas.matmul(_safe_softmax(scores), value)


def causal_mask(rows: int, columns: int) -> Any:
    """True where a query may look: at keys up to its own place."""
    return iota(size=columns, dtype=int64) <= iota(size=rows, dtype=int64).unsqueeze(1)


def _scores(query: Any, key: Any, attn_mask: Any, is_causal: bool, scale: float) -> Any:
    scores = (query @ key.transpose(-2, -1)) * scale
    if attn_mask is not None:
        if attn_mask.dtype is bool_:
            scores = scores.masked_fill(attn_mask.logical_not(), -math.inf)
        else:
            scores = scores + attn_mask
    if is_causal:
        allowed = causal_mask(scores.shape[-2], scores.shape[-1])
        scores = scores.masked_fill(allowed.logical_not(), -math.inf)
    return scores


def _attention_vjp(
    grad: Any, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool, scale: float
) -> tuple[Any, Any, Any]:
    weights = safe_softmax(_scores(query, key, attn_mask, is_causal, scale), dim=-1)
    slopes = softmax_vjp(grad @ value.transpose(-2, -1), weights, -1) * scale
    return (slopes @ key, slopes.transpose(-2, -1) @ query, weights.transpose(-2, -1) @ grad)


def _attention_samples(rng: np.random.Generator) -> list[Any]:
    query, key, value = (rng.standard_normal((2, 2, n, 4)) for n in (3, 5, 5))
    mask = rng.standard_normal((3, 5))
    return [((query, key, value), {"scale": 0.5, "is_causal": True}),
            ((query, key, value, mask), {"scale": 0.5}),
            ((query, key, value, mask > -0.5), {"scale": 0.5})]  # fmt: skip


attention = define(
    "scaled_dot_product_attention", "query key value attn_mask? -> result", numpy=_attention,
    infer=lambda query, key, value, attn_mask=None, *, is_causal=False, scale: TensorType(
        query.dtype, (*query.shape[:-1], value.shape[-1])),
    lower=Decompose(lambda query, key, value, attn_mask, *, is_causal=False, scale: safe_softmax(
        _scores(query, key, attn_mask, is_causal, scale), dim=-1) @ value),
    node="ScaledDotProductFlashAttentionForCpuBackward0", samples=_attention_samples,
    many_passes=True,
    vjp={("query", "key", "value"): _attention_vjp},
)  # fmt: skip


# --- the public function -------------------------------------------------------------------------


def _check(query: Any, key: Any, value: Any, attn_mask: Any) -> None:
    if not (query.dtype is key.dtype and query.dtype is value.dtype) and not casting():
        raise RuntimeError("Expected query, key, and value to have the same dtype, but got "
                           f"query.dtype: {c_word(query.dtype)} key.dtype: "
                           f"{c_word(key.dtype)} and value.dtype: {c_word(value.dtype)} "
                           "instead.")  # fmt: skip
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional, but "
                           f"got query.dim: {query.ndim} key.dim: {key.ndim} and value.dim: "
                           f"{value.ndim} instead.")  # fmt: skip
    if attn_mask is not None:
        known = (bool_, query.dtype, float32)
        if attn_mask.dtype not in known:
            raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query "
                               f"dtype, but got attn_mask.dtype: {c_word(attn_mask.dtype)} and  "
                               f"query.dtype: {c_word(query.dtype)} instead.")  # fmt: skip


def _rows_are_dense(value: Any) -> bool:
    array = getattr(value, "_array", None)
    return array is None or array.shape[-1] == 1 or array.strides[-1] == array.itemsize


def _is_fused(query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float) -> bool:
    """Does torch run its fused CPU kernel for these?"""
    if dropout_p != 0.0 or not query.ndim == key.ndim == value.ndim == 4:
        return False
    if not query.dtype.is_floating_point:
        return False
    if attn_mask is not None and (
        attn_mask.ndim not in (2, 4) or getattr(attn_mask, "requires_grad", False)
    ):
        return False
    if tuple(query.shape[:2]) != tuple(key.shape[:2]) or key.shape[:3] != value.shape[:3]:
        return False
    if not query.shape[3] == key.shape[3] == value.shape[3]:
        return False
    if query.shape[2] == 0 or key.shape[2] == 0:
        return False
    return all(_rows_are_dense(v) for v in (query, key, value))


def _composite(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool,
    scale: float,
) -> Any:  # fmt: skip
    """torch's own composite: both factors are scaled by the root, for range in half precision."""
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set "
                           "when is_causal=True")  # fmt: skip
    root = math.sqrt(abs(scale))
    query = query * (-root if scale < 0 else root)
    if is_causal:
        attn_mask = causal_mask(query.shape[-2], key.shape[-2])
    scores = query @ (key.transpose(-2, -1) * root)
    if attn_mask is not None:
        if attn_mask.dtype is bool_:
            closed = attn_mask.logical_not()
            nothing = query.new_zeros(tuple(attn_mask.shape))
            attn_mask = nothing.masked_fill(closed, -math.inf)
        scores = scores + attn_mask
    weights = safe_softmax(scores, dim=-1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p)
    return weights @ value


@public("scaled_dot_product_attention", spaces="nn.functional", method=False)
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0,
    is_causal=False, scale=None, enable_gqa=False): softmax(query @ key.T * scale) @ value."""
    _check(query, key, value, attn_mask)
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError("dropout probability has to be between 0 and 1, but got "
                           f"{dropout_p:g}")  # fmt: skip
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    if _is_fused(query, key, value, attn_mask, dropout_p):
        return attention(query, key, value, attn_mask, is_causal=is_causal, scale=float(scale))
    return _composite(query, key, value, attn_mask, dropout_p, is_causal, float(scale))

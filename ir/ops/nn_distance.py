"""Distances and similarities, the losses made of them, and bilinear forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Decompose, define
from ..types import FLOAT, TensorType, broadcast_shapes, int64, result_type, type_word
from ..value import public
from .creation import full, iota
from .joining import cat
from .nn_common import reduce_loss, reduction_name
from .norms import vector_norm_op
from .precision import full_precision

# --- similarity of pairs -------------------------------------------------------------------------


@public("cosine_similarity", spaces="torch nn.functional", method=False)
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """cosine_similarity(x1, x2, dim=1, eps=1e-08)."""
    dtype = result_type((x1, x2))
    if dtype.category != FLOAT:
        raise RuntimeError("expected common dtype to be floating point, yet common dtype is "
                           f"{type_word(dtype)}")  # fmt: skip
    x1, x2 = (x if x.dtype is dtype else x.to(dtype) for x in (x1, x2))
    shape = broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    x1, x2 = (x if tuple(x.shape) == shape else x.expand(shape) for x in (x1, x2))
    return (x1 / _bounded_norm(x1, dim, eps) * (x2 / _bounded_norm(x2, dim, eps))).sum(dim)


def _bounded_norm(x: Any, dim: int, eps: float) -> Any:
    """The norm, at least eps; its gradient passes as if there were no bound."""
    norm = x.norm(2, dim, keepdim=True)
    return norm.clone() + (norm.detach().clamp_min(eps) - norm.detach())


@public("pairwise_distance", spaces="torch nn.functional", method=False)
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False)."""
    difference = x1 - x2 + eps
    last = (difference.ndim - 1,) if difference.ndim else ()
    return vector_norm_op(difference, ord=p, dim=last, keepdim=keepdim, form=1)


@public("cosine_embedding_loss", spaces="nn.functional", method=False)
@full_precision
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None,
    reduction='mean')."""
    reduction = reduction_name(reduction, size_average, reduce)
    if target.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    wanted = target.ndim + 1
    if input1.ndim != wanted or input2.ndim != wanted:
        raise RuntimeError(f"{target.ndim}D target tensor expects {wanted}D input tensors, but "
                           f"found inputs with sizes {list(input1.shape)} and "
                           f"{list(input2.shape)}.")  # fmt: skip
    dim = target.ndim
    squares = [(x * x).sum(dim) + 1e-12 for x in (input1, input2)]
    cosine = (input1 * input2).sum(dim) / (squares[0] * squares[1]).sqrt()
    nothing = cosine.new_zeros(tuple(cosine.shape))
    alike = (1 - cosine).where(target == 1, nothing)
    apart = (cosine - margin).clamp_min(0).where(target == -1, nothing)
    return reduce_loss(alike + apart, reduction)


def _check_triplet(anchor: Any, positive: Any, negative: Any, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the "
                           f"same number of dimensions, but got: anchor {anchor.ndim}D, positive "
                           f"{positive.ndim}D, and negative {negative.ndim}D inputs")  # fmt: skip


@public("triplet_margin_loss", spaces="nn.functional", method=False)
@full_precision
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False,
    size_average=None, reduce=None, reduction='mean')."""
    reduction = reduction_name(reduction, size_average, reduce)
    _check_triplet(anchor, positive, negative, margin)
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduce_loss((near + margin - far).clamp_min(0), reduction)


@public("triplet_margin_with_distance_loss", spaces="nn.functional", method=False)
def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Any = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None,
    margin=1.0, swap=False, reduction='mean')."""
    reduction = reduction_name(reduction)
    _check_triplet(anchor, positive, negative, margin)
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduce_loss((near + margin - far).clamp_min(0), reduction)


# --- all pairs -----------------------------------------------------------------------------------


def _pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(count, 1)


def _p_norm(difference: np.ndarray, p: float) -> Any:
    size = np.abs(difference)
    if p == 0:
        return np.count_nonzero(size, axis=-1).astype(size.dtype)
    if p == math.inf:
        return size.max(-1, initial=0)
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return np.sqrt((size * size).sum(-1))
    return (size ** size.dtype.type(p)).sum(-1) ** size.dtype.type(1 / p)


def _pdist(x: np.ndarray, *, p: float = 2.0) -> Any:
    first, second = _pairs(x.shape[0])
    return _p_norm(x[first] - x[second], p)


def pair_slopes(difference: Any, distance: Any, p: float) -> Any:
    """The derivative of the p-norm of the last dimension; 0 where the distance is 0."""
    if p == 1:
        return difference.sign()
    if p == math.inf:
        return difference.sign().masked_fill(difference.abs() != distance, 0)
    flat = distance == 0
    safe = distance.masked_fill(flat, 1)
    if p == 2:
        return (difference / safe).masked_fill(flat, 0)
    size = difference.abs()
    still = size == 0
    powers = (size.masked_fill(still, 1) / safe).pow(p - 1).masked_fill(still, 0)
    return (difference.sign() * powers).masked_fill(flat, 0)


def _pair_rows(count: int) -> tuple[Any, Any]:
    """`_pairs` made by ops, as a rule must."""
    firsts = [full(size=(count - 1 - k,), fill_value=k, dtype=int64) for k in range(count - 1)]
    seconds = [iota(size=count - 1 - k, start=k + 1, dtype=int64) for k in range(count - 1)]
    return cat(*firsts, dim=0), cat(*seconds, dim=0)


def _pdist_vjp(grad: Any, self: Any, result: Any, p: float) -> Any:
    if p == 0 or self.shape[0] < 2 or not self.shape[1]:
        return self.new_zeros(tuple(self.shape))
    first, second = _pair_rows(self.shape[0])
    difference = self.index_select(0, first) - self.index_select(0, second)
    share = pair_slopes(difference, result.unsqueeze(-1), p) * grad.unsqueeze(-1)
    total = self.new_zeros(tuple(self.shape)).index_add(0, first, share)
    return total.index_add(0, second, -share)


pdist_op = define(
    "pdist", "self -> result", numpy=_pdist, vjp=dict(self=_pdist_vjp),
    infer=lambda self, *, p=2.0: TensorType(
        self.dtype, (self.shape[0] * (self.shape[0] - 1) // 2,)),
    samples=lambda rng: [((rng.standard_normal((4, 3)),), {"p": p}) for p in (1.0, 2.0, 3.0)],
)  # fmt: skip


@public("pdist", spaces="torch nn.functional", method=False)
def pdist(input: Any, p: float = 2.0) -> Any:
    """pdist(input, p=2): the distances of all pairs of rows."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return pdist_op(input.contiguous(), p=float(p))


# --- bilinear forms ------------------------------------------------------------------------------


def _form(x1: np.ndarray, weight: np.ndarray, x2: np.ndarray) -> Any:
    """sum over i and j of x1[b, i] * weight[o, i, j] * x2[b, j]."""
    width = x1.shape[1] * x2.shape[1]
    outer = (x1[:, :, None] * x2[:, None, :]).reshape(x1.shape[0], width)
    return outer @ weight.reshape(weight.shape[0], width).T


def _outer(x1: Any, x2: Any) -> Any:
    product = x1.unsqueeze(2) * x2.unsqueeze(1)
    return product.reshape((x1.shape[0], x1.shape[1] * x2.shape[1]))


def _flat_weight(weight: Any) -> Any:
    return weight.reshape((weight.shape[0], math.prod(weight.shape[1:])))


def _spread(grad: Any, weight: Any) -> Any:
    """sum over o of grad[b, o] * weight[o, i, j]."""
    return (grad @ _flat_weight(weight)).reshape((grad.shape[0], *weight.shape[1:]))


trilinear = define(
    "trilinear", "i1 i2 i3 -> result", numpy=_form,
    infer=lambda i1, i2, i3: TensorType(i1.dtype, (i1.shape[0], i2.shape[0])),
    lower=Decompose(lambda i1, i2, i3: _outer(i1, i3) @ _flat_weight(i2).t()),
    samples=lambda rng: [(tuple(rng.standard_normal(s) for s in ((2, 3), (5, 3, 4), (2, 4))), {})],
    vjp=dict(
        i1=lambda grad, i2, i3: (_spread(grad, i2) @ i3.unsqueeze(2)).squeeze(2),
        i2=lambda grad, i1, i3, i2_type: (grad.t() @ _outer(i1, i3)).reshape(i2_type.shape),
        i3=lambda grad, i1, i2: (i1.unsqueeze(1) @ _spread(grad, i2)).squeeze(1),
    ),
)  # fmt: skip


@public("bilinear", spaces="torch nn.functional", method=False)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """bilinear(input1, input2, weight, bias=None): x1 @ weight[o] @ x2 for each output o."""
    if input1.ndim != input2.ndim:
        raise RuntimeError("bilinear(): input dimensions do not match: got "
                           f"{input1.ndim} and {input2.ndim}")  # fmt: skip
    for d, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1])):
        if a != b:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {d}: got "
                               f"{a} and {b}")  # fmt: skip
    for k, x in ((1, input1), (2, input2)):
        if x.shape[-1] != weight.shape[k]:
            raise RuntimeError(f"bilinear(): input{k} size does not match weight size: got "
                               f"{x.shape[-1]} but expected {weight.shape[k]}")  # fmt: skip
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError("bilinear(): bias size does not match weight size: got "
                           f"{bias.shape[0]} but expected {weight.shape[0]}")  # fmt: skip
    lead = tuple(input1.shape[:-1])
    count = math.prod(lead)
    flat = [x.reshape((count, x.shape[-1])) for x in (input1, input2)]
    result = trilinear(flat[0], weight, flat[1]).reshape((*lead, weight.shape[0]))
    return result if bias is None else result + bias

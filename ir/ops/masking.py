"""Elements chosen by a mask: masked_select and masked_scatter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Decompose, Op, define
from ..types import TensorType, bool_, broadcast_shapes
from ..value import public
from .indexing import index_op, index_put_op
from .views import zeros


def _check_mask(name: str, mask: Any) -> Any:
    if mask.dtype is not bool_:
        raise RuntimeError(f"{name}: expected BoolTensor for mask, but got {mask.dtype.name}")
    return mask


masked_select_op = define(
    "masked_select", "self mask -> result", moves_data=True, data_shape=True,
    numpy=lambda x, mask: np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape))[
        np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))],
    samples=lambda rng: [((rng.standard_normal((3, 4)), np.arange(12).reshape(3, 4) % 3 == 0), {}),
                         ((rng.standard_normal((3, 4)), np.array([True, False, True, True])), {})],
    vjp=dict(self=lambda grad, self_type, mask: masked_scatter_op(
        zeros(TensorType(grad.dtype, broadcast_shapes(self_type.shape, tuple(mask.shape)))),
        mask, grad)),
)  # fmt: skip


@public("masked_select")
def masked_select(input: Any, mask: Any) -> Any:
    """masked_select(input, mask): the elements where the (broadcast) mask is true, 1-d."""
    _check_mask("masked_select", mask)
    broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    return masked_select_op(input, mask)


def _masked_scatter(x: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    result = np.array(np.broadcast_to(x, shape))
    chosen = np.broadcast_to(mask, shape)
    count = int(np.count_nonzero(chosen))
    if source.size < count:
        raise RuntimeError(
            "masked_scatter: expected source to have at least as many elements as the mask has "
            f"true ones: source has {source.size}, the mask {count}"
        )
    result[chosen] = source.reshape(-1)[:count]
    return result


def _ranks(mask: Any, shape: tuple[int, ...]) -> Any:
    """Which element of the source each place of the mask takes, in a shape known beforehand.

    A mask with too many true ones asks for elements that the source has not.
    """
    flat = mask.expand(shape).reshape((math.prod(shape),))
    return (flat.cumsum(0) - 1).clamp(0)


def _masked_scatter_expand(self: Any, mask: Any, source: Any) -> Any:
    shape = broadcast_shapes(tuple(self.shape), tuple(mask.shape))
    count = math.prod(source.shape)
    taken = index_op(source.reshape((count,)), _ranks(mask, shape), spec=(True,))
    return taken.view(shape).where(mask, self)


def _masked_scatter_source(grad: Any, mask: Any, source_type: TensorType) -> Any:
    shape, count = tuple(grad.shape), source_type.numel
    if not count:
        return zeros(source_type)
    chosen = grad.masked_fill(mask.logical_not(), 0).reshape((math.prod(shape),))
    start = zeros(TensorType(grad.dtype, (count,)))
    total = index_put_op(start, chosen, _ranks(mask, shape), spec=(True,), accumulate=True)
    return total.view(source_type.shape)


masked_scatter_op: Op = define(
    "masked_scatter", "self mask source -> result", moves_data=True, numpy=_masked_scatter,
    infer=lambda self, mask, source: TensorType(
        self.dtype, broadcast_shapes(self.shape, mask.shape)),
    lower=Decompose(_masked_scatter_expand),
    samples=lambda rng: [((rng.standard_normal((3, 4)), np.arange(12).reshape(3, 4) % 3 == 0,
                           rng.standard_normal(6)), {})],
    vjp=dict(self=lambda grad, mask: grad.masked_fill(mask, 0), source=_masked_scatter_source),
)  # fmt: skip


@public("masked_scatter", inplace=True, overlap="copied")
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """masked_scatter(input, mask, source): `source`'s elements in order where `mask` is true."""
    if mask.dtype is not bool_:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype "
                           f"{mask.dtype.name}")  # fmt: skip
    if source.dtype is not input.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got "
                           f"{input.dtype.name} and {source.dtype.name}")  # fmt: skip
    return masked_scatter_op(input, mask, source)


# --- x[mask] = number ----------------------------------------------------------------------------


def _spread_mask(mask: Any, ndim: int) -> Any:
    """A mask over the leading dimensions, broadcast over the rest."""
    return mask.reshape(tuple(mask.shape) + (1,) * (ndim - mask.ndim))


mask_put_op = define(
    "mask_put", "self value mask -> result", node="IndexPutBackward0",
    numpy=lambda x, value, mask: np.where(_spread_mask(mask, x.ndim), value, x),
    infer=lambda self, value, mask: self,
    lower=Decompose(lambda self, value, mask: value.where(_spread_mask(mask, self.ndim), self)),
    samples=lambda rng: [
        ((rng.standard_normal((2, 3)), rng.standard_normal(()), np.array([True, False])), {}),
        ((rng.standard_normal(3), rng.standard_normal(()), np.array([True, False, True])), {}),
        ((rng.standard_normal((2, 3)), rng.standard_normal(3), np.array([True, False])), {}),
        ((rng.standard_normal((2, 2, 3)), rng.standard_normal(1), np.array([[True, False]])), {}),
    ],
    vjp=dict(self=lambda grad, mask: grad.masked_fill(_spread_mask(mask, grad.ndim), 0),
             value=lambda grad, mask: grad.where(
                 _spread_mask(mask, grad.ndim), grad.new_zeros(()))),
)  # fmt: skip


@public("mask_put", spaces="", inplace=True, overlap="copied")
def mask_put(input: Any, value: Any, mask: Any) -> Any:
    """`value` where a mask over the leading dimensions is true; it fits those behind the mask."""
    return mask_put_op(input, value, mask)

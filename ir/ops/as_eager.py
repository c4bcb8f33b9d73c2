"""A pointwise op computed as eager execution computes it, for `numerics="strict"`.

`evaluate` is eager's own evaluation of an op on arrays; the api installs it.
"""

from __future__ import annotations

from typing import Any

from ..op import TABLE, Op, define
from ..types import FROM_NUMPY, TensorType

Settings = tuple[tuple[str, Any], ...]


def evaluate(op: Op, arrays: list[Any], attrs: dict[str, Any]) -> Any:
    return op.numpy(*arrays, **attrs)


def _numpy(*operands: Any, op: str, settings: Settings = (), dtype: Any = None) -> Any:
    target = TABLE[op]
    arrays = list(operands)
    if target.promote is not None:
        present = [TensorType(FROM_NUMPY[a.dtype], a.shape) for a in arrays if a is not None]
        wanted = target.promote(present).compute
        arrays = [None if a is None else a.astype(wanted, copy=False) for a in arrays]
    return evaluate(target, arrays, dict(settings))


def _infer(*types: Any, op: str, settings: Settings = (), dtype: Any = None) -> Any:
    """`dtype` is that of the result, where numbers among the operands are wider than the others."""
    inferred = TABLE[op].infer_types(types, dict(settings))
    if dtype is None:
        return inferred
    return [TensorType(dtype, each.shape) for each in inferred]


def _raises(node: Any) -> Any:
    looks = TABLE[node.attributes["op"]].raises
    return [] if looks is None else looks(node)


as_eager = define(
    "as_eager", "*operands? -> result", numpy=_numpy, infer=_infer, raises=_raises,
    samples=lambda rng: [((rng.standard_normal((2, 3)),), {"op": "tanh"})],
)  # fmt: skip

"""Several tensors side by side or against each other: hstack and its kin, meshgrid,
cartesian_prod, combinations, block_diag, broadcast_tensors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..arguments import must_be, warn_once
from ..op import Decompose, define
from ..types import TensorType, broadcast_shapes, default_dtype
from ..value import Value, public
from .creation import full
from .joining import cat_, stack_, tensor_list
from .slices import slice_op, slice_scatter


def _listed(name: str, tensors: Any) -> list[Any]:
    if not hasattr(tensors, "__iter__"):
        raise must_be(name, "tensors", "tuple of Tensors", tensors, 1)
    found = list(tensors)
    if not found:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return found


# --- at least so many dimensions -----------------------------------------------------------------


def _atleast(name: str, lift: Any) -> Any:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1 and not isinstance(tensors[0], Value):
            tensors = tuple(tensors[0])
            return tuple(lift(t) for t in tensors)
        lifted = tuple(lift(t) for t in tensors)
        return lifted[0] if len(lifted) == 1 else lifted

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(*tensors): views with at least {name[-2]} dimensions."
    return public(name, method=False)(function)


def _lift_1d(tensor: Any) -> Any:
    return tensor if tensor.ndim else tensor.reshape((1,))


def _lift_2d(tensor: Any) -> Any:
    if tensor.ndim >= 2:
        return tensor
    return tensor.unsqueeze(0) if tensor.ndim else tensor.reshape((1, 1))


def _lift_3d(tensor: Any) -> Any:
    if tensor.ndim >= 3:
        return tensor
    if not tensor.ndim:
        return tensor.reshape((1, 1, 1))
    return tensor.unsqueeze(-1) if tensor.ndim == 2 else tensor.unsqueeze(0).unsqueeze(-1)


atleast_1d = _atleast("atleast_1d", _lift_1d)
atleast_2d = _atleast("atleast_2d", _lift_2d)
atleast_3d = _atleast("atleast_3d", _lift_3d)


# --- stacks --------------------------------------------------------------------------------------


@public("hstack", method=False, out="cast")
def hstack(tensors: Any) -> Any:
    """hstack(tensors): side by side, along the second dimension (the first of vectors)."""
    lifted = [_lift_1d(t) for t in _listed("hstack", tensors)]
    return cat_(lifted, 0 if lifted[0].ndim == 1 else 1)


@public("vstack", "row_stack", method=False, out="cast")
def vstack(tensors: Any) -> Any:
    """vstack(tensors): on top of each other."""
    return cat_([_lift_2d(t) for t in _listed("vstack", tensors)], 0)


@public("dstack", method=False, out="cast")
def dstack(tensors: Any) -> Any:
    """dstack(tensors): along the third dimension."""
    return cat_([_lift_3d(t) for t in _listed("dstack", tensors)], 2)


@public("column_stack", method=False, out="cast")
def column_stack(tensors: Any) -> Any:
    """column_stack(tensors): vectors as columns, matrices side by side."""
    columns = [t.reshape((t.numel(), 1)) if t.ndim <= 1 else t
               for t in _listed("column_stack", tensors)]  # fmt: skip
    return hstack(columns)


# --- grids and products --------------------------------------------------------------------------


@public("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Any) -> Any:
    """broadcast_tensors(*tensors): all expanded to their common shape."""
    if len(tensors) == 1 and not isinstance(tensors[0], Value):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*(tuple(t.shape) for t in tensors))
    # those that have the shape are returned themselves, as torch does
    return tuple(t if tuple(t.shape) == shape else t.expand(shape) for t in tensors)


@public("meshgrid", method=False)
def meshgrid(*tensors: Any, indexing: Any = None) -> Any:
    """meshgrid(*tensors, indexing='ij'): coordinates of the grid that vectors span."""
    if len(tensors) == 1 and not isinstance(tensors[0], Value):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError('torch.meshgrid: indexing must be one of "xy" or "ij", but received: '
                           f"{indexing}")  # fmt: skip
    for tensor in tensors:
        if tensor.ndim > 1:
            raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but "
                               f"got: {tensor.ndim}D")  # fmt: skip
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    if indexing is None and len(tensors) > 1:
        warn_once("torch.meshgrid: in an upcoming release, it will be required to pass the "
                  "indexing argument.")  # fmt: skip
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(t.numel() for t in tensors)
    grids = [t.view([-1 if k == d else 1 for d in range(len(shape))] if t.numel() else
                    [0 if k == d else 1 for d in range(len(shape))]).expand(shape)
             for k, t in enumerate(tensors)]  # fmt: skip
    return (grids[1], grids[0], *grids[2:]) if swap else tuple(grids)


@public("cartesian_prod", method=False)
def cartesian_prod(*tensors: Any) -> Any:
    """cartesian_prod(*tensors): all tuples of elements, one a row."""
    for tensor in tensors:
        if tensor.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack_([g.reshape((-1,)) if g.numel() else g.reshape((0,))
                   for g in meshgrid(*tensors, indexing="ij")], 1)  # fmt: skip


@public("combinations", method=False)
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """combinations(input, r=2, with_replacement=False): of a vector's elements, one a row."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input.shape[0]), r)), np.int64).reshape(-1, r)
    return stack_([input[input._constant(rows[:, k].copy())] for k in range(r)], 1)


# --- block_diag ----------------------------------------------------------------------------------


def _block_shape(shapes: Any) -> tuple[int, int]:
    return sum(s[0] for s in shapes), sum(s[1] for s in shapes)


def _corners(shapes: Any) -> list[tuple[int, int]]:
    """Where each block begins."""
    rows = itertools.accumulate((s[0] for s in shapes), initial=0)
    columns = itertools.accumulate((s[1] for s in shapes), initial=0)
    return list(zip(rows, columns))


def _block_diag(*tensors: np.ndarray) -> np.ndarray:
    shapes = [t.shape for t in tensors]
    result = np.zeros(_block_shape(shapes), tensors[0].dtype)
    for tensor, (row, column) in zip(tensors, _corners(shapes)):
        result[row : row + tensor.shape[0], column : column + tensor.shape[1]] = tensor
    return result


def _block_rule(grad: Any, tensors_type: Any, i: int) -> Any:
    shapes = [t.shape for t in tensors_type]
    row, column = _corners(shapes)[i]
    rows = slice_op(grad, dim=0, start=row, stop=row + shapes[i][0], step=1)
    return slice_op(rows, dim=1, start=column, stop=column + shapes[i][1], step=1)


def _block_expand(*tensors: Any) -> Any:
    shapes = [tuple(t.shape) for t in tensors]
    size = _block_shape(shapes)
    result = full(size=size, fill_value=0, dtype=tensors[0].dtype)
    for tensor, (row, column) in zip(tensors, _corners(shapes)):
        rows = dict(dim=0, start=row, stop=row + tensor.shape[0], step=1)
        band = slice_scatter(slice_op(result, **rows), tensor, dim=1, start=column,
                             stop=column + tensor.shape[1], step=1)  # fmt: skip
        result = slice_scatter(result, band, **rows)
    return result


block_diag_op = define(
    "block_diag", "*tensors -> result", moves_data=True, numpy=_block_diag,
    infer=lambda *tensors: TensorType(tensors[0].dtype, _block_shape([t.shape for t in tensors])),
    lower=Decompose(_block_expand), vjp=dict(tensors=_block_rule),
    samples=lambda rng: [((rng.standard_normal((2, 3)), rng.standard_normal((1, 2))), {})],
)  # fmt: skip


@public("block_diag", method=False)
def block_diag(*tensors: Any) -> Any:
    """block_diag(*tensors): matrices along the diagonal of one."""
    for k, tensor in enumerate(tensors):
        if tensor.ndim > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                               f"Input {k} has {tensor.ndim} dimensions")  # fmt: skip
    if not tensors:
        return full(size=(1, 0), fill_value=0.0, dtype=default_dtype())
    return block_diag_op(*[_lift_2d(t) for t in tensor_list("block_diag", tensors)])

"""Distinct elements: unique, unique_consecutive; membership: isin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import define
from ..types import BOOL, COMPLEX, no_kernel, normalize_dim, result_type, type_word
from ..value import Value, public


def _no_rule(name: str) -> Any:
    def rule(grad_result: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented. Use no_grad() "
                                  "or detach() around it.")  # fmt: skip

    return rule


def _whole_samples(rng: np.random.Generator) -> list[Any]:
    return [((np.array([[3.0, 1.0, 1.0], [2.0, 3.0, 3.0]]),), {})]


def _line_samples(rng: np.random.Generator) -> list[Any]:
    x = np.array([[3.0, 1.0], [3.0, 1.0], [1.0, 2.0]])
    return [((x,), {"dim": 0}), ((x,), {"dim": 1})]


def _unique(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, equal_nan=False)
    return values, inverse.reshape(x.shape), counts


unique_all = define("unique", "self -> result inverse counts", numpy=_unique, data_shape=True,
                    node="Unique2Backward0", vjp=dict(self=_no_rule("_unique2")),
                    samples=_whole_samples)  # fmt: skip


def _unique_dim(x: np.ndarray, *, dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not x.size:
        none = np.zeros(0, np.int64)
        return x.copy(), none, none
    lines = np.moveaxis(x, dim, 0)
    flat = lines.reshape(len(lines), -1)
    order = np.lexsort(flat.T[::-1])  # the first column counts most
    first, inverse, counts = _runs(flat[order])
    back = np.empty(len(order), np.int64)
    back[order] = inverse
    return np.moveaxis(lines[order[first]], 0, dim), back, counts


def _runs(lines: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of equal neighbours: where each run begins, the run of each line, how long each is."""
    starts = np.ones(len(lines), np.bool_)
    different = lines[1:] != lines[:-1]
    starts[1:] = different.any(axis=1) if different.ndim > 1 else different
    first = np.flatnonzero(starts)
    return first, np.cumsum(starts) - 1, np.diff(np.append(first, len(lines)))


unique_dim = define("unique_dim", "self -> result inverse counts", numpy=_unique_dim,
                    vjp=dict(self=_no_rule("unique_dim")), samples=_line_samples,
                    data_shape=True)  # fmt: skip


def _consecutive(x: np.ndarray, *, dim: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lines = x.reshape(-1) if dim is None else np.moveaxis(x, dim, 0)
    if not len(lines):
        none = np.zeros(0, np.int64)
        return (lines.copy() if dim is None else x.copy()), none.reshape(x.shape) if (
            dim is None) else none, none  # fmt: skip
    first, inverse, counts = _runs(lines if dim is None else lines.reshape(len(lines), -1))
    if dim is None:
        return lines[first], inverse.reshape(x.shape), counts
    return np.moveaxis(lines[first], 0, dim), inverse, counts


unique_consecutive_op = define(
    "unique_consecutive", "self -> result inverse counts", numpy=_consecutive, data_shape=True,
    vjp=dict(self=_no_rule("unique_consecutive")),
    samples=lambda rng: [*_whole_samples(rng), *_line_samples(rng)],
)  # fmt: skip


def _asked(results: Any, return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = results
    if not return_inverse and not return_counts:
        return values
    wanted = [values]
    if return_inverse:
        wanted.append(inverse)
    if return_counts:
        wanted.append(counts)
    return tuple(wanted)


def _check_lines(input: Any, dim: int) -> int:
    dim = normalize_dim(dim, input.ndim)
    if any(n == 0 for k, n in enumerate(input.shape) if k != dim):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique "
                           "cannot be applied")  # fmt: skip
    return dim


def _check_order(input: Any) -> None:
    if input.dtype.is_complex:
        raise no_kernel("unique", input.dtype)


@public("unique", out="none")
def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: Any = None,
) -> Any:  # fmt: skip
    """unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None)."""
    _check_order(input)
    if dim is None:
        return _asked(unique_all(input), return_inverse, return_counts)
    dim = _check_lines(input, dim)
    return _asked(unique_dim(input, dim=dim), return_inverse, return_counts)


@public("unique_consecutive")
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """unique_consecutive(input, return_inverse=False, return_counts=False, dim=None)."""
    _check_order(input)
    dim = None if dim is None else _check_lines(input, dim)
    return _asked(unique_consecutive_op(input, dim=dim), return_inverse, return_counts)


isin_op = define(
    "isin", "elements test_elements -> result", promote=result_type,
    numpy=lambda elements, tests, *, assume_unique=False, invert=False: np.isin(
        elements, tests, assume_unique=False, invert=invert),
    samples=lambda rng: [((np.array([1.0, 2.0, 3.0]), np.array([[3.0, 1.0]])), {})],
)  # fmt: skip


@public("isin", method=False)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Any:
    """isin(elements, test_elements, *, assume_unique=False, invert=False)."""
    if not isinstance(elements, Value) and not isinstance(test_elements, Value):
        raise TypeError("isin(): one of 'elements' and 'test_elements' must be a Tensor")
    for value in (elements, test_elements):
        if isinstance(value, Value) and value.dtype.category in (BOOL, COMPLEX):
            raise RuntimeError("Unsupported input type encountered for isin(): "
                               f"{type_word(value.dtype)}; use real numbers")  # fmt: skip
    return isin_op(elements, test_elements, invert=bool(invert))

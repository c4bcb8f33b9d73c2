"""Differences and integrals of samples: diff, gradient, trapezoid; powers: vander."""

from __future__ import annotations

from typing import Any

from ..arguments import is_number
from ..types import FLOAT, INTEGER, bool_, default_dtype, int64, normalize_dim
from ..value import public
from .arithmetic import div_number, mul_number
from .joining import cat_


@public("diff", out="cast")
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """diff(input, n=1, dim=-1, prepend=None, append=None): n-th forward difference."""
    if not input.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return input.clone()
    dim = normalize_dim(dim, input.ndim)
    if prepend is not None or append is not None:
        parts = [p for p in (prepend, input, append) if p is not None]
        if any(p.ndim != input.ndim for p in parts):
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        input = cat_(parts, dim)
    for _ in range(min(n, input.shape[dim])):
        count = max(input.shape[dim] - 1, 0)
        after, before = input.narrow(dim, min(1, input.shape[dim]), count), input.narrow(
            dim, 0, count)  # fmt: skip
        input = after.logical_xor(before) if input.dtype is bool_ else after - before
    return input


# --- gradient ------------------------------------------------------------------------------------


def _slope(input: Any, dim: int, spacing: Any, edge_order: int) -> Any:
    """Central differences with second order at uneven steps; edges of order 1 or 2."""
    size = input.shape[dim]

    def part(start: int, length: int) -> Any:
        return input.narrow(dim, start, length)

    if is_number(spacing):
        middle = (part(2, size - 2) - part(0, size - 2)) / (2 * spacing)
        if edge_order == 1:
            first = (part(1, 1) - part(0, 1)) / spacing
            last = (part(size - 1, 1) - part(size - 2, 1)) / spacing
        else:
            first = (-1.5 * part(0, 1) + 2 * part(1, 1) - 0.5 * part(2, 1)) / spacing
            last = (0.5 * part(size - 3, 1) - 2 * part(size - 2, 1)
                    + 1.5 * part(size - 1, 1)) / spacing  # fmt: skip
        return cat_((first, middle, last), dim)
    shape = [-1 if d == dim else 1 for d in range(input.ndim)]
    steps = diff(spacing).reshape(shape)
    h, k = steps.narrow(dim, 0, size - 2), steps.narrow(dim, 1, size - 2)
    middle = (
        part(0, size - 2) * (-k / (h * (h + k)))
        + part(1, size - 2) * ((k - h) / (h * k))
        + part(2, size - 2) * (h / (k * (h + k)))
    )
    return cat_((_edge(part, steps, dim, size, edge_order, False), middle,
                 _edge(part, steps, dim, size, edge_order, True)), dim)  # fmt: skip


def _edge(part: Any, steps: Any, dim: int, size: int, edge_order: int, last: bool) -> Any:
    """The slope at an end, from the outside in."""
    outer, inner = (size - 1, size - 2) if last else (0, 1)
    h = steps.narrow(dim, size - 2 if last else 0, 1)
    if edge_order == 1:
        rise = part(outer, 1) - part(inner, 1)
        return (rise if last else -rise) / h
    k = steps.narrow(dim, size - 3 if last else 1, 1)
    third = part(size - 3 if last else 2, 1)
    slope = (
        part(outer, 1) * ((2 * h + k) / (h * (h + k)))
        - part(inner, 1) * ((h + k) / (h * k))
        + third * (h / (k * (h + k)))
    )
    return slope if last else -slope


@public("gradient", method=False)
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """gradient(input, *, spacing=1, dim=None, edge_order=1): estimated along each dimension."""
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if dim is None:
        dims = list(range(input.ndim))
    else:
        dims = [dim] if isinstance(dim, int) else list(dim)
    dims = [normalize_dim(d, input.ndim) for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"dim {dims[0]} appears multiple times in the list of dims")
    spacing = 1 if spacing is None else spacing
    steps = list(spacing) if isinstance(spacing, list | tuple) else [spacing] * len(dims)
    if len(steps) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list "
            f"of length {len(dims)}, but got a list of length {len(steps)}"
        )
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    if input.dtype.category == INTEGER:
        input = input.to(default_dtype())
    return tuple(_slope(input, d, step, edge_order) for d, step in zip(dims, steps))


# --- integrals -----------------------------------------------------------------------------------


def _spacing(name: str, y: Any, x: Any, dim: int) -> Any:
    """The steps between the sample points `x`, aligned with `y`."""
    if x.dtype is bool_:
        raise RuntimeError(f"{name}: received a bool input for `x`, but bool is not supported")
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.view([-1 if d == dim else 1 for d in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.view((1,) * (y.ndim - x.ndim) + tuple(x.shape))
    return diff(x, dim=dim)


def _samples_of(name: str, y: Any, dim: int) -> tuple[int, Any, Any]:
    if y.dtype is bool_:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    dim = normalize_dim(dim, y.ndim)
    count = max(y.shape[dim] - 1, 0)
    return dim, y.narrow(dim, 0, count), y.narrow(dim, min(1, y.shape[dim]), count)


@public("trapezoid", "trapz", method=False, out="none")
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """trapezoid(y, x=None, *, dx=1, dim=-1): the integral by trapezoids."""
    dim, left, right = _samples_of("trapezoid", y, dim)
    if y.shape[dim] == 0:
        return y.new_zeros([n for d, n in enumerate(y.shape) if d != dim])
    if x is not None:
        area = ((left + right) * _spacing("trapezoid", y, x, dim)).sum(dim)
        return div_number(area, 2.0)
    ends = y.select(dim, 0) + y.select(dim, -1)
    return mul_number(y.sum(dim) - ends * 0.5, 1.0 if dx is None else dx)


@public("cumulative_trapezoid", method=False)
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """cumulative_trapezoid(y, x=None, *, dx=1, dim=-1)."""
    dim, left, right = _samples_of("cumulative_trapezoid", y, dim)
    if x is not None:
        area = (left + right) * _spacing("cumulative_trapezoid", y, x, dim)
        return div_number(area.cumsum(dim), 2.0)
    return ((left + right) * ((1.0 if dx is None else dx) / 2.0)).cumsum(dim)


@public("vander", method=False)
def vander(x: Any, N: Any = None, *, increasing: bool = False) -> Any:
    """vander(x, N=None, increasing=False): powers of a vector's elements as columns."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    wide = x if x.dtype.category >= FLOAT else x.to(int64)
    columns = wide.new_ones((x.shape[0], min(count, 1)))
    if count > 1:
        powers = wide.unsqueeze(1).expand((x.shape[0], count - 1)).cumprod(1)
        columns = cat_((columns, powers), 1)
    return columns if increasing else columns.flip(1)

"""grid_sample and affine_grid.

A sampled value is a sum of taps: elements of the input with weights that depend on the grid. The
entries share `_taps`, so value, gradient of the input and gradient of the grid agree.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from ..arguments import warn
from ..numerics.spacing import evenly_spaced
from ..op import Template, define
from ..types import TensorType
from ..value import public
from .kinds import refuse
from .nn_resample import cubic_weights
from .precision import full_precision
from .totals import add_up

Ints = tuple[int, ...]


Factors = tuple[np.ndarray, np.ndarray, np.ndarray]  # weight, slope, curvature along a dimension


class Tap(NamedTuple):
    """One of the elements a sample is made of; arrays are (batch, points)."""

    place: np.ndarray
    inside: np.ndarray
    factors: list[Factors]  # per dimension of the input, first to last

    def weight(self, *along: int) -> np.ndarray:
        """The weight, differentiated once along each of the given dimensions."""
        product = math.prod(f[along.count(d)] for d, f in enumerate(self.factors))
        return np.where(self.inside, product, 0).astype(self.factors[0][0].dtype, copy=False)

    def towards(self, tangent: np.ndarray) -> Any:
        """The derivative of the weight in the direction `tangent`, (batch, points, dims)."""
        dims = len(self.factors)
        return sum(self.weight(d) * tangent[..., dims - 1 - d] for d in range(dims))


# --- coordinates ---------------------------------------------------------------------------------


def _unnormalized(x: np.ndarray, size: int, align: bool) -> tuple[np.ndarray, float]:
    """Grid coordinates in [-1, 1] as places, and how fast they move."""
    speed = (size - 1) / 2 if align else size / 2
    places = (x + 1) * x.dtype.type(speed)
    return places if align else places - x.dtype.type(0.5), speed


def _clipped(x: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    inside = (x > 0) & (x < size - 1)
    return np.clip(x, 0, size - 1), inside.astype(x.dtype)


def _reflected(x: np.ndarray, size: int, align: bool) -> tuple[np.ndarray, np.ndarray]:
    low, span = (0.0, size - 1) if align else (-0.5, size)
    if span == 0:
        return np.zeros_like(x), np.zeros_like(x)
    distance = np.abs(x - x.dtype.type(low))
    sign = np.where(x < low, -1, 1)
    extra, flips = np.fmod(distance, span), np.floor(distance / span)
    even = np.fmod(flips, 2) == 0
    place = np.where(even, extra + low, span - extra + low).astype(x.dtype)
    return place, np.where(even, sign, -sign).astype(x.dtype)


def _padded(x: np.ndarray, size: int, padding: str, align: bool) -> tuple[np.ndarray, Any]:
    """Coordinates brought inside as `padding` says, with the slope of doing so."""
    if padding == "border":
        return _clipped(x, size)
    if padding == "reflection":
        mirrored, slope = _reflected(x, size, align)
        clipped, inside = _clipped(mirrored, size)
        return clipped, slope * inside
    return x, np.ones_like(x)


# --- taps ----------------------------------------------------------------------------------------


def _axis_taps(
    x: np.ndarray, size: int, mode: str, padding: str, align: bool
) -> list[tuple[np.ndarray, Factors]]:
    """The places along one dimension, with their factors."""
    centre, speed = _unnormalized(x, size, align)
    speed = x.dtype.type(speed)
    if mode == "bicubic":
        low = np.floor(centre)
        return [(_bounded(low + k - 1, size, padding, align), factors)
                for k, factors in enumerate(_cubic_factors(centre - low, speed))]  # fmt: skip
    centre, slope = _padded(centre, size, padding, align)
    slope, flat = slope * speed, np.zeros_like(centre)
    if mode == "nearest":
        return [(_as_places(np.rint(centre)), (np.ones_like(centre), flat, flat))]
    low = np.floor(centre)
    part = centre - low
    return [(_as_places(low), (1 - part, -slope, flat)),
            (_as_places(low + 1), (part, slope, flat))]  # fmt: skip


def _as_places(x: np.ndarray) -> np.ndarray:
    """Integers; NaN and what is far outside become -1, which no element has."""
    return np.where(np.abs(x) < 2**31, x, -1).astype(np.int64)


def _bounded(x: np.ndarray, size: int, padding: str, align: bool) -> np.ndarray:
    return _as_places(_padded(x, size, padding, align)[0])


def _cubic_factors(part: np.ndarray, speed: Any) -> list[Factors]:
    def near(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (3 * 1.25 * x - 2 * 2.25) * x, 6 * 1.25 * x - 2 * 2.25

    def far(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (3 * -0.75 * x + 2 * 3.75) * x - 6, 6 * -0.75 * x + 2 * 3.75

    slopes = ((1, far(part + 1)), (1, near(part)), (-1, near(1 - part)), (-1, far(2 - part)))
    return [(weight, slope * (sign * speed), curve * (speed * speed))
            for weight, (sign, (slope, curve)) in zip(cubic_weights(part), slopes)]  # fmt: skip


def _taps(grid: np.ndarray, size: Ints, mode: str, padding: str, align: bool) -> list[Tap]:
    refuse("grid_sampler", "c", grid)
    dims = len(size)
    flat = grid.reshape(grid.shape[0], math.prod(grid.shape[1:-1]), dims)
    axes = [_axis_taps(flat[..., dims - 1 - d], size[d], mode, padding, align)
            for d in range(dims)]  # fmt: skip
    taps = []
    for chosen in itertools.product(*axes):
        inside: Any = True
        place: Any = 0
        for (index, _), n in zip(chosen, size):
            inside = inside & (index >= 0) & (index < n)
            place = place * n + np.clip(index, 0, n - 1)
        taps.append(Tap(place, inside, [factors for _, factors in chosen]))
    return taps


# --- evaluation ----------------------------------------------------------------------------------


def _flat_tangent(tangent: Any) -> Any:
    return tangent.reshape(tangent.shape[0], math.prod(tangent.shape[1:-1]), tangent.shape[-1])


def _gather(x: np.ndarray, tap: Tap) -> np.ndarray:
    flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    return np.take_along_axis(flat, tap.place[:, None], 2)


def _sample(
    x: np.ndarray, grid: np.ndarray, tangent: Any = None, *, mode: str, padding: str,
    align: bool = False,
) -> Any:  # fmt: skip
    """The samples; with a tangent, how they change as the grid moves along it."""
    direction = None if tangent is None else _flat_tangent(tangent)
    total: Any = 0
    for tap in _taps(grid, x.shape[2:], mode, padding, align):
        weight = tap.weight() if direction is None else tap.towards(direction)
        total = total + _gather(x, tap) * weight[:, None]
    return total.reshape(*x.shape[:2], *grid.shape[1:-1])


def _spread(
    grad: np.ndarray, grid: np.ndarray, tangent: Any = None, *, size: Ints, mode: str,
    padding: str, align: bool = False,
) -> np.ndarray:  # fmt: skip
    """The adjoint of sampling: each output's gradient over its taps."""
    direction = None if tangent is None else _flat_tangent(tangent)
    batch, channels, volume = *grad.shape[:2], math.prod(size)
    total = np.zeros(batch * channels * volume, grad.dtype)
    flat = grad.reshape(batch, channels, math.prod(grad.shape[2:]))
    planes = (np.arange(batch * channels) * volume).reshape(batch, channels, 1)
    for tap in _taps(grid, size, mode, padding, align):
        weight = tap.weight() if direction is None else tap.towards(direction)
        places = (planes + tap.place[:, None]).reshape(-1)
        np.add.at(total, places, (flat * weight[:, None]).reshape(-1))
    return total.reshape(batch, channels, *size)


def _grid_slopes(
    grad: np.ndarray, x: np.ndarray, grid: np.ndarray, tangent: Any = None, *, mode: str,
    padding: str, align: bool = False,
) -> np.ndarray:  # fmt: skip
    """The gradient of the grid; with a tangent, its derivative along that."""
    dims = grid.shape[-1]
    direction = None if tangent is None else _flat_tangent(tangent)
    flat_grad = grad.reshape(*grad.shape[:2], math.prod(grad.shape[2:]))
    total = np.zeros((*flat_grad.shape[::2], dims), grid.dtype)
    for tap in _taps(grid, x.shape[2:], mode, padding, align):
        share = add_up(_gather(x, tap) * flat_grad, 1)
        for d in range(dims):
            slope = tap.weight(d) if direction is None else sum(
                tap.weight(d, e) * direction[..., dims - 1 - e] for e in range(dims))  # fmt: skip
            total[..., dims - 1 - d] += share * slope
    return total.reshape(grid.shape)


# --- entries -------------------------------------------------------------------------------------


def _options(mode: str, padding: str, align: bool) -> dict[str, Any]:
    return {"mode": mode, "padding": padding, "align": align}


def _samples(rng: np.random.Generator) -> list[Any]:
    x, grid = rng.standard_normal((2, 3, 4, 5)), rng.uniform(-1.2, 1.2, (2, 3, 2, 2))
    return [((x, grid), _options(mode, padding, align)) for mode, padding, align in (
        ("bilinear", "zeros", False), ("bilinear", "reflection", True), ("bicubic", "zeros", False),
        ("nearest", "border", True))]  # fmt: skip


# An optional tangent makes one entry of two maps: sampling and its derivative in a direction,
# spreading and its derivative, slopes and curvature. With it they close, up to curvature.


def _sample_self(grad: Any, grid: Any, tangent: Any, self_type: TensorType, mode: str,
                 padding: str, align: bool) -> Any:  # fmt: skip
    return grid_spread(grad, grid, tangent, size=self_type.shape[2:],
                       **_options(mode, padding, align))  # fmt: skip


def _sample_grid(grad: Any, self: Any, grid: Any, tangent: Any, mode: str, padding: str,
                 align: bool) -> Any:  # fmt: skip
    return grid_slopes(grad, self, grid, tangent, **_options(mode, padding, align))


def _sample_tangent(grad: Any, self: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    return grid_slopes(grad, self, grid, None, **_options(mode, padding, align))


def _sampler(name: str, node: str, samples: Any) -> Any:
    return define(
        name, "self grid tangent? -> result", numpy=_sample, lower=Template("grid_sample"),
        infer=lambda self, grid, tangent=None, **_: TensorType(
            self.dtype, (*self.shape[:2], *grid.shape[1:-1])),
        node=node, samples=samples,
        vjp=dict(self=_sample_self, grid=_sample_grid, tangent=_sample_tangent),
    )  # fmt: skip


grid_sampler = _sampler("grid_sampler", "GridSampler2DBackward0", _samples)
grid_sampler_3d = _sampler(
    "grid_sampler_3d", "GridSampler3DBackward0",
    lambda rng: [((rng.standard_normal((1, 2, 3, 4, 5)), rng.uniform(-0.8, 0.8, (1, 2, 2, 2, 3))),
                  _options("bilinear", "border", False))],
)  # fmt: skip
grid_spread = define(
    "grid_spread", "self grid tangent? -> result", numpy=_spread,
    infer=lambda self, grid, tangent=None, *, size, **_: TensorType(
        self.dtype, (*self.shape[:2], *size)),
    samples=lambda rng: [((rng.standard_normal((2, 3, 3, 2)), rng.uniform(-1, 1, (2, 3, 2, 2))),
                          {**_options("bilinear", "zeros", False), "size": (4, 5)})],
    vjp=dict(
        self=lambda grad, grid, tangent, mode, padding, align: grid_sampler(
            grad, grid, tangent, **_options(mode, padding, align)),
        grid=lambda grad, self, grid, tangent, mode, padding, align: grid_slopes(
            self, grad, grid, tangent, **_options(mode, padding, align)),
        tangent=lambda grad, self, grid, mode, padding, align: grid_slopes(
            self, grad, grid, None, **_options(mode, padding, align)),
    ),
)  # fmt: skip


def _slopes_rule(grad: Any, grad_output: Any, self: Any, grid: Any, tangent: Any, mode: str,
                 padding: str, align: bool) -> tuple[Any, ...]:  # fmt: skip
    if tangent is not None:
        raise RuntimeError("the third derivative of grid_sample is not implemented")
    options = _options(mode, padding, align)
    return (grid_sampler(self, grid, grad, **options),
            grid_spread(grad_output, grid, grad, size=tuple(self.shape[2:]), **options),
            grid_slopes(grad_output, self, grid, grad, **options))  # fmt: skip


grid_slopes: Any = define(
    "grid_slopes", "grad_output self grid tangent? -> result", numpy=_grid_slopes,
    infer=lambda grad_output, self, grid, tangent=None, **_: grid,
    samples=lambda rng: [((rng.standard_normal((2, 3, 3, 2)), *_samples(rng)[0][0]),
                          _options("bicubic", "zeros", False))],
    vjp={("grad_output", "self", "grid"): _slopes_rule},
)  # fmt: skip

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _check(input: Any, grid: Any, mode: str) -> None:
    if input.dtype is not grid.dtype:
        raise RuntimeError("grid_sampler(): expected input and grid to have same dtype, but input "
                           f"has {input.dtype.name} and grid has {grid.dtype.name}")  # fmt: skip
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError("grid_sampler(): expected 4D or 5D input and grid with same number of "
                           f"dimensions, but got input with sizes {list(input.shape)} and grid "
                           f"with sizes {list(grid.shape)}")  # fmt: skip
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError("grid_sampler(): expected grid and input to have same batch size, but "
                           f"got input with sizes {list(input.shape)} and grid with sizes "
                           f"{list(grid.shape)}")  # fmt: skip
    if grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {input.ndim - 2} in last "
                           f"dimension, but got grid with sizes {list(grid.shape)}")  # fmt: skip
    if 0 in input.shape[2:]:
        raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, "
                           f"but input has sizes {list(input.shape)}")  # fmt: skip
    if input.ndim == 5 and mode == "bicubic":
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


_ALIGN_WARNING = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
    "Please specify align_corners=True if the old behavior is desired. See the documentation of "
    "grid_sample for details."
)


@public("grid_sample", spaces="nn.functional", method=False)
@full_precision
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: Any = None,
) -> Any:  # fmt: skip
    """grid_sample(input, grid, mode='bilinear', padding_mode='zeros', align_corners=None)."""
    if mode not in _MODES:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' "
                         f"or 'bicubic', but got: '{mode}'")  # fmt: skip
    if padding_mode not in _PADDINGS:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
                         f"'border', or 'reflection', but got: '{padding_mode}'")  # fmt: skip
    if align_corners is None:
        warn(_ALIGN_WARNING)
    _check(input, grid, mode)
    op = grid_sampler if input.ndim == 4 else grid_sampler_3d
    return op(input, grid, None, **_options(mode, padding_mode, bool(align_corners)))


# --- affine grids --------------------------------------------------------------------------------


def _line(count: int, align: bool, kind: Any) -> Any:
    """The coordinates along one dimension, rounded as torch's: many lie where slopes change."""
    if count == 1:
        return np.zeros(1, kind)
    line = evenly_spaced(kind(-1), kind(1), kind(2) / kind(count - 1), count)
    return line if align else line * kind(count - 1) / kind(count)


def _base(size: Ints, align: bool, dtype: np.dtype) -> np.ndarray:
    """The untransformed grid of (points, dims + 1), with a column of ones."""
    lines = [_line(n, align, dtype.type) for n in size]
    grids = np.meshgrid(*lines, indexing="ij")
    return np.stack([*grids[::-1], np.ones(size, dtype)], axis=-1).reshape(-1, len(size) + 1)


def _affine(theta: np.ndarray, *, size: Ints, align: bool = False) -> Any:
    grid = np.matmul(_base(size, align, theta.dtype), theta.swapaxes(1, 2))
    return grid.reshape(theta.shape[0], *size, len(size))


def _affine_adjoint(grad: np.ndarray, *, size: Ints, align: bool = False) -> Any:
    flat = grad.reshape(grad.shape[0], math.prod(size), len(size))
    return np.matmul(flat.swapaxes(1, 2), _base(size, align, grad.dtype))


affine_grid_op = define(
    "affine_grid", "self -> result", numpy=_affine, node="AffineGridGeneratorBackward0",
    infer=lambda self, *, size, align=False: TensorType(
        self.dtype, (self.shape[0], *size, len(size))),
    samples=lambda rng: [((rng.standard_normal((2, 2, 3)),), {"size": (3, 4)})],
    vjp=dict(self=lambda grad, size, align: affine_adjoint(grad, size=size, align=align)),
)  # fmt: skip
affine_adjoint: Any = define(
    "affine_adjoint", "self -> result", numpy=_affine_adjoint,
    infer=lambda self, *, size, align=False: TensorType(
        self.dtype, (self.shape[0], len(size), len(size) + 1)),
    samples=lambda rng: [((rng.standard_normal((2, 3, 4, 2)),), {"size": (3, 4), "align": True})],
    vjp=dict(self=lambda grad, size, align: affine_grid_op(grad, size=size, align=align)),
)  # fmt: skip


@public("affine_grid", spaces="nn.functional", method=False)
def affine_grid(theta: Any, size: Any, align_corners: Any = None) -> Any:
    """affine_grid(theta, size, align_corners=None): the grid for grid_sample of affine maps."""
    if align_corners is None:
        warn(_ALIGN_WARNING)
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = tuple(int(n) for n in size)
    if len(size) not in (4, 5):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
                                  f"transforms, respectively. Got size {size}.")  # fmt: skip
    dims = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1}"
                         f" for size {size}. Got {theta.shape}.")  # fmt: skip
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if theta.shape[0] != size[0]:
        raise RuntimeError("Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{size[0]}, {dims + 1}] but got: [{theta.shape[0]}, {dims + 1}]."
                           )  # fmt: skip
    return affine_grid_op(theta, size=size[2:], align=bool(align_corners))

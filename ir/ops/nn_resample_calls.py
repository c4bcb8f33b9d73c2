"""interpolate and adaptive average pools, as torch publishes them."""

from __future__ import annotations

import math
from typing import Any

from ..arguments import must_be, warn
from ..value import public
from .nn_common import check_value, floats_only
from .nn_pool_calls import adaptive_size
from .nn_resample import adaptive_avg_pool, resample, scaled_size
from .precision import full_precision

Ints = tuple[int, ...]

_MODE_DIMS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}
_INTERNAL = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}


# --- adaptive averages ---------------------------------------------------------------------------


def adaptive_average(name: str, dims: int, input: Any, output_size: Any) -> Any:
    """adaptive_avg_pool in one to three dimensions."""
    check_value(name, input=input)
    size = adaptive_size(name, input, output_size, dims, dims > 1)
    if dims == 1:
        return adaptive_avg_pool(input.unsqueeze(-2), size=(1, *size)).squeeze(-2)
    if all(n == 1 for n in size):
        return input.mean(tuple(range(-dims, 0)), keepdim=True)
    return adaptive_avg_pool(input, size=size)


def _publish_adaptive(dims: int) -> None:
    name = f"adaptive_avg_pool{dims}d"

    def pool(input: Any, output_size: Any) -> Any:
        return adaptive_average(name, dims, input, output_size)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"{name}(input, output_size)."
    spaces = "torch nn.functional" if dims == 1 else "nn.functional"
    public(name, spaces=spaces, method=False)(full_precision(pool) if dims == 3 else pool)


for _dims in (1, 2, 3):
    _publish_adaptive(_dims)


# --- interpolate ---------------------------------------------------------------------------------


def _is_int(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__index__")


def _listed(input: Any, value: Any, word: str, kind: str) -> Any:
    dims = input.ndim - 2
    if not isinstance(value, list | tuple):
        return (value,) * dims
    if len(value) != dims:
        noun = "output" if word == "output size" else "scale_factor"
        raise ValueError(
            f"Input and {noun} must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(input.shape[2:])} and {word} of {kind}{value}. Please "
            "provide input tensor in (N, C, d1, d2, ...,dK) format."
        )
    return tuple(value)


def _target(
    input: Any, size: Any, scale_factor: Any, mode: str, recompute: Any
) -> tuple[Ints, Any]:
    """The output size, and the scales where they are to be used as given."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError(
                "recompute_scale_factor is not meaningful with an explicit size. Leave it out."
            )
        listed = _listed(input, size, "output size", "")
        if not all(_is_int(n) for n in listed):
            raise TypeError("expected size to be one of int or Tuple[int] or Tuple[int, int] or "
                            "Tuple[int, int, int], but got size with types "
                            f"{[type(n) for n in listed]}")  # fmt: skip
        return tuple(n.__index__() for n in listed), None
    if isinstance(scale_factor, str):
        raise must_be("interpolate", "scale_factor", "tuple of floats", scale_factor)
    scales = tuple(float(s) for s in _listed(input, scale_factor, "scale_factor", "shape "))
    out = scaled_size(input.shape[2:], scales)
    return out, None if recompute or mode == "area" else scales


def _check_mode(input: Any, mode: str, align_corners: Any, antialias: bool) -> None:
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear"
                         " | bilinear | bicubic | trilinear")  # fmt: skip
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes "
                         "and requires a 4-D tensor as input")  # fmt: skip
    if mode == "lanczos" and input.ndim == 4:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")


def _check_dims(input: Any, mode: str) -> None:
    dims = _MODE_DIMS.get(mode)
    known = dims is not None or mode in ("nearest", "nearest-exact", "area")
    if known and input.ndim in (3, 4, 5):
        if dims is None or input.ndim == dims + 2:
            return
        if mode in ("linear", "bilinear", "trilinear"):
            raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {dims + 2}D "
                                      "input")  # fmt: skip
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the "
        "modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact "
        f"(got {mode})"
    )


def _check_sizes(input: Any, size: Ints) -> None:
    if min(size) <= 0 or 0 in input.shape[2:]:
        raise RuntimeError("Input and output sizes should be greater than 0, but got input (H: "
                           f"{list(input.shape[2:])}) output (H: {list(size)})")  # fmt: skip
    if not math.prod(input.shape[1:]):
        raise RuntimeError(f"Non-empty {input.ndim}D data tensor expected but got a tensor with "
                           f"sizes {list(input.shape)}")  # fmt: skip


@public("interpolate", spaces="nn.functional", method=False)
def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: Any = None, recompute_scale_factor: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    """interpolate(input, size=None, scale_factor=None, mode='nearest', align_corners=None,
    recompute_scale_factor=None, antialias=False)."""
    check_value("interpolate", input=input)
    _check_mode(input, mode, align_corners, antialias)
    out, scales = _target(input, size, scale_factor, mode, recompute_scale_factor)
    _check_dims(input, mode)
    if mode == "area":
        dims = input.ndim - 2
        return adaptive_average(f"adaptive_avg_pool{dims}d", dims, input, out)
    _check_sizes(input, out)
    if input.dtype.name != "uint8" or not mode.startswith("nearest"):
        floats_only("compute_indices_weights_" + mode.replace("-", "_"), input.dtype)
    internal = _INTERNAL.get(mode, mode) + ("-aa" if antialias else "")
    return resample(input, mode=internal, size=out, scales=scales, align=bool(align_corners))


def _deprecated(name: str, **fixed: Any) -> None:
    def function(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
        warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` "
                      "instead.")  # fmt: skip
        return interpolate(input, size, scale_factor, **fixed)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, size=None, scale_factor=None): deprecated."
    public(name, spaces="nn.functional", method=False)(function)


_deprecated("upsample_nearest", mode="nearest")
_deprecated("upsample_bilinear", mode="bilinear", align_corners=True)


@public("upsample", spaces="nn.functional", method=False)
def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: Any = None,
) -> Any:  # fmt: skip
    """upsample(input, size=None, scale_factor=None, mode='nearest', align_corners=None):
    deprecated, see interpolate."""
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` "
                  "instead.")  # fmt: skip
    return interpolate(input, size, scale_factor, mode, align_corners)

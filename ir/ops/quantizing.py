"""Fake quantization: values rounded to a grid, whose gradients pass where the grid reaches."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import define
from ..value import Value, public
from .kinds import require_value


def _levels(x: Any, scale: Any, zero_point: Any) -> Any:
    """The numbers of grid points, as whole floats, before they are limited."""
    return (x * (1 / scale)).round() + zero_point


def _fake_quantize(x: np.ndarray, scale: Any, zero_point: Any, *, quant_min: int, quant_max: int,
                   form: str = "") -> np.ndarray:  # fmt: skip
    levels = np.clip(_levels(x, scale, zero_point), quant_min, quant_max)
    return np.asarray((levels - zero_point) * scale, x.dtype)


def _inside(grad: Any, self: Any, scale: Any, zero_point: Any, quant_min: int,
            quant_max: int) -> Any:  # fmt: skip
    levels = _levels(self, scale, zero_point)
    return grad * ((levels >= quant_min) & (levels <= quant_max))


# its samples lie beyond the grid, where the rule is the derivative
fake_quantize_op = define(
    "fake_quantize", "self scale zero_point -> result", numpy=_fake_quantize,
    infer=lambda self, scale, zero_point, **attrs: self, vjp=dict(self=_inside),
    node=lambda attrs: f"FakeQuantizePer{attrs['form']}Backward0",
    samples=lambda rng: [((rng.uniform(5, 6, 5), np.array(0.1), np.array(1.0)), {
        "quant_min": 0, "quant_max": 15, "form": "TensorAffineCachemask"})],
)  # fmt: skip


def _check_range(zero_point: Any, quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`.")
    if isinstance(zero_point, int) and not quant_min <= zero_point <= quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


@public("fake_quantize_per_tensor_affine", method=False, out="none")
def fake_quantize_per_tensor_affine(input: Any, scale: Any, zero_point: Any, quant_min: int,
                                    quant_max: int) -> Any:  # fmt: skip
    """fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)."""
    require_value("fake_quantize_per_tensor_affine", input)
    _check_range(zero_point, quant_min, quant_max)
    form = "TensorAffineCachemask" + ("TensorQparams" if isinstance(scale, Value) else "")
    kind = input.dtype.storage
    parameters = [p.to(input.dtype) if isinstance(p, Value) else input._constant(np.array(p, kind))
                  for p in (scale, zero_point)]  # fmt: skip
    return fake_quantize_op(input, *parameters, quant_min=quant_min, quant_max=quant_max, form=form)


@public("fake_quantize_per_channel_affine", method=False, out="none")
def fake_quantize_per_channel_affine(input: Any, scale: Any, zero_point: Any, axis: int,
                                     quant_min: int, quant_max: int) -> Any:  # fmt: skip
    """fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max)."""
    require_value("fake_quantize_per_channel_affine", input)
    _check_range(0 if quant_min <= 0 <= quant_max else quant_min, quant_min, quant_max)
    if tuple(scale.shape) != (input.shape[axis],) or scale.shape != zero_point.shape:
        raise RuntimeError(
            "dimensions of scale and zero-point are not consistent with input tensor"
        )
    shape = tuple(-1 if d == axis % input.ndim else 1 for d in range(input.ndim))
    parameters = [p.to(input.dtype).view(shape) for p in (scale, zero_point)]
    return fake_quantize_op(input, *parameters, quant_min=quant_min, quant_max=quant_max,
                            form="ChannelAffineCachemask")  # fmt: skip

"""Optimizers whose formula needs whole tensors: norms, products of matrices."""

from __future__ import annotations

from typing import Any

from ..tracer.tensor import Tensor
from .optimizer import Optimizer


class TensorwiseOptimizer(Optimizer):
    """`_wengert_update` gets the parameter, its gradient and its state as tensors, no buffers."""

    def _wengert_update_one(
        self, settings: Any, maximize: bool, parameter: Any, grad: Any, kept: Any
    ) -> None:
        if parameter.is_complex():
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
        self._wengert_update(settings, parameter, -grad if maximize else grad, kept)


def require_at_least(low: float, **values: Any) -> None:
    """Raises "Learning rate should be >= 0 but is: -1" and the like; names have blanks as "_"."""
    for name, value in values.items():
        if name.endswith("rate") and isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not value >= low:
            raise ValueError(f"{name.replace('__', ' ')} should be >= {low:g} but is: {value}")

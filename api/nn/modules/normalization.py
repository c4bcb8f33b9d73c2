"""Normalisation without batch statistics: layers, groups, root mean square, local response."""

from __future__ import annotations

import numbers
from typing import Any

from ...tracer.tensor import Tensor
from .. import functional as F
from .. import init
from ._making import new_parameter
from ._names import shown
from .module import Module


class LocalResponseNorm(Module):
    """LocalResponseNorm(size, alpha=1e-4, beta=0.75, k=1)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, {shown(self, 'alpha', 'beta', 'k')}"


class CrossMapLRN2d(LocalResponseNorm):
    """CrossMapLRN2d(size, alpha=1e-4, beta=0.75, k=1): local response over channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)


class _Affine(Module):
    """Fills `weight` with ones and `bias` with zeros where there are such."""

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self._parameters.get("weight") is not None:
            init.ones_(self.weight)
        if self._parameters.get("bias") is not None:
            init.zeros_(self.bias)

    def _register(self, name: str, size: Any, wanted: bool, device: Any, dtype: Any) -> None:
        self.register_parameter(name, new_parameter(size, device, dtype) if wanted else None)


def _as_shape(normalized_shape: Any) -> tuple[int, ...]:
    if isinstance(normalized_shape, numbers.Integral):
        return (int(normalized_shape),)
    return tuple(normalized_shape)


class LayerNorm(_Affine):
    """LayerNorm(normalized_shape, eps=1e-5, elementwise_affine=True, bias=True)."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: Any = None, dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._register("weight", self.normalized_shape, elementwise_affine, device, dtype)
        self._register("bias", self.normalized_shape, elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, {shown(self, 'eps', 'elementwise_affine')}, "
                f"bias={self.bias is not None}")  # fmt: skip


class GroupNorm(_Affine):
    """GroupNorm(num_groups, num_channels, eps=1e-5, affine=True)."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups "
                             f"({num_groups})")  # fmt: skip
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._register("weight", num_channels, affine, device, dtype)
        self._register("bias", num_channels, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.num_groups}, {self.num_channels}, {shown(self, 'eps', 'affine')}, "
                f"bias={self.bias is not None}")  # fmt: skip


class RMSNorm(_Affine):
    """RMSNorm(normalized_shape, eps=None, elementwise_affine=True)."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._register("weight", self.normalized_shape, elementwise_affine, device, dtype)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, {shown(self, 'eps', 'elementwise_affine')}"

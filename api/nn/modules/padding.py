"""Padding layers: five modes, one to three dimensions."""

from __future__ import annotations

from typing import Any

from ...tracer.tensor import Tensor
from .. import functional as F
from ._making import ntuple
from .module import Module


class _PadNd(Module):
    """Pads the last `_dims` dimensions."""

    _dims: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = ntuple(padding, 2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """ConstantPad1d(padding, value)."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """ConstantPad2d(padding, value)."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """ConstantPad3d(padding, value)."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """ZeroPad1d(padding)."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """ZeroPad2d(padding)."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """ZeroPad3d(padding)."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """ReflectionPad1d(padding)."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """ReflectionPad2d(padding)."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """ReflectionPad3d(padding)."""

    _dims = 3


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """ReplicationPad1d(padding)."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """ReplicationPad2d(padding)."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """ReplicationPad3d(padding)."""

    _dims = 3


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        wanted = (self._dims + 1, self._dims + 2)
        if input.dim() not in wanted:
            raise ValueError(f"expected {wanted[0]}D or {wanted[1]}D input (got {input.dim()}D "
                             "input)")  # fmt: skip
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """CircularPad1d(padding)."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """CircularPad2d(padding)."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """CircularPad3d(padding)."""

    _dims = 3

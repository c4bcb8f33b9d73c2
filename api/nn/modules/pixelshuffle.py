"""PixelShuffle and PixelUnshuffle."""

from __future__ import annotations

from ...tracer.tensor import Tensor
from .. import functional as F
from ._names import shown
from .module import Module


class PixelShuffle(Module):
    """PixelShuffle(upscale_factor): (C * r^2, H, W) to (C, H * r, W * r)."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return shown(self, "upscale_factor")


class PixelUnshuffle(Module):
    """PixelUnshuffle(downscale_factor): (C, H * r, W * r) to (C * r^2, H, W)."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return shown(self, "downscale_factor")

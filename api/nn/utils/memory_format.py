"""Weights of convolutions in another order of memory."""

from __future__ import annotations

from typing import Any

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module


def _convert(module: Module, kinds: tuple[type, ...], memory_format: Any) -> Module:
    for part in module.modules():
        if isinstance(part, kinds):
            weight: Any = part.weight
            weight.data = weight.detach().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Stores the weights of all `Conv2d` and `ConvTranspose2d` in `module` in that order."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Stores the weights of all `Conv3d` and `ConvTranspose3d` in `module` in that order."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)

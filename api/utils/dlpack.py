"""`torch.utils.dlpack`: tensors handed to other libraries and taken from them, without a copy."""

from __future__ import annotations

from typing import Any

from ..tracer.creation import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Any) -> Any:
    """A DLPack capsule of the tensor's memory."""
    return tensor.__dlpack__()

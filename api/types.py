"""`torch.types`: the names that annotations use."""

import os
from typing import IO, TypeAlias

from .ir.types import DType
from .tracer.facts import Size, device

__all__ = ["Device", "FileLike", "Number"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_Number = (int, float, bool)
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_device, _dtype = device, DType
_int, _float, _bool, _complex = int, float, bool, complex

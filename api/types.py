"""`torch.types`: names for annotations."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, Union

from .ir.types import DType
from .tracer.memory import UntypedStorage as Storage
from .tracer.strided import layout
from .tracer.tensor import Size, Tensor, device

__all__ = ["Device", "FileLike", "Number", "Storage"]

_int, _float, _bool, _complex = builtins.int, builtins.float, builtins.bool, builtins.complex
_bytes, _str = builtins.bytes, builtins.str
_device, _dtype, _layout = device, DType, layout

Number: TypeAlias = int | float | bool
_Number = (int, float, bool)
BoolLikeType: TypeAlias = bool
FloatLikeType: TypeAlias = float
IntLikeType: TypeAlias = int
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge: TypeAlias = Tensor | Sequence[Tensor] | Any

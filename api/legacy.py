"""The old typed classes: `torch.FloatTensor([1, 2])`; `isinstance` goes by dtype."""

from __future__ import annotations

from typing import Any

from .ir.types import BY_NAME, DType
from .tracer.convert import _LEGACY
from .tracer.tensor import Tensor, _TensorMeta


class _LegacyMeta(_TensorMeta):
    """Tensors are instances of the class of their dtype; there are no others."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.legacy_dtype


def _make(name: str, dtype: DType) -> Any:
    body = {
        "__slots__": (), "legacy_dtype": dtype,
        "__doc__": f"{name}(data) or {name}(*sizes): a tensor of {dtype.name}.",
        "__module__": "torch",
    }  # fmt: skip
    return _LegacyMeta(name, (Tensor,), body)


for _dtype, _name in _LEGACY.items():
    globals()[_name] = _make(_name, BY_NAME[_dtype])

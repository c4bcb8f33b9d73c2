"""`torch.ops`: custom ops by name, `torch.ops.mylib.sin(x)`, and torch's own, `torch.ops.aten`."""

from __future__ import annotations

from typing import Any

from .aten import aten as aten
from .library.custom_ops import OPS, CustomOpDef


class _OpOverload:
    """`torch.ops.mylib.sin.default`."""

    def __init__(self, op: CustomOpDef):
        self.op, self._schema = op, op._schema

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.op._namespace}.{self.op._name}', overload='default')>"


class _OpOverloadPacket(_OpOverload):
    """`torch.ops.mylib.sin`."""

    @property
    def default(self) -> _OpOverload:
        return _OpOverload(self.op)

    def overloads(self) -> list[str]:
        """The names of its overloads."""
        return ["default"]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.op._namespace}.{self.op._name}')>"


class _OpNamespace:
    """`torch.ops.mylib`."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> _OpOverloadPacket:
        op = OPS.get(f"{self._name}::{name}")
        if op is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        return _OpOverloadPacket(op)


def __getattr__(name: str) -> _OpNamespace:
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return _OpNamespace(name)

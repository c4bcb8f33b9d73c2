"""`compile(module)`: a module whose forward is compiled; everything else is the module's own."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Any

from .compiling import CompiledFunction
from .full_graph import kind_of
from .nn.modules.module import Module
from .nn.modules.utils import consume_prefix_in_state_dict_if_present
from .replay import MISS
from .runtime import calling

_own = object.__getattribute__


class CompiledModule(Module):
    """Wraps a module: attributes, parameters and state_dict are those of the original."""

    __slots__ = ("_compiled",)  # native code reads it: runtime/calling.py

    def __init__(self, module: Any, options: dict[str, Any]):
        object.__setattr__(self, "_orig_mod", module)
        object.__setattr__(self, "_compiled", kind_of(options)(module, options))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _own(self, "_compiled")(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(_own(self, "_orig_mod"), name)

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return _own(self, name)
        module = _own(self, "_orig_mod")
        if name in _INSPECTION:
            return getattr(_own(self, "_compiled"), name)
        return getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Also of what torch saved of a compiled module, whose names begin with `_orig_mod.`."""
        prefix = "_orig_mod."
        if state_dict and all(key.startswith(prefix) for key in state_dict):
            state_dict = copy(state_dict)
            consume_prefix_in_state_dict_if_present(state_dict, prefix)
        return self._orig_mod.load_state_dict(state_dict, strict, assign)

    def __repr__(self) -> str:
        return f"OptimizedModule(\n  (_orig_mod): {self._orig_mod!r}\n)".replace("\n(", "\n  (")

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self) -> Any:
        return iter(self._orig_mod)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]


class DisabledModule(CompiledModule):
    """A module whose calls are left to Python; see `torch.compiler.disable`."""

    def __init__(self, module: Any, call: Any):
        object.__setattr__(self, "_orig_mod", module)
        object.__setattr__(self, "_compiled", call)


_OWN = {"_orig_mod", "_compiled", "__class__", "__call__", "__setattr__", "__getattr__",
        "__delattr__", "__repr__", "load_state_dict"}  # fmt: skip
_INSPECTION = {"explain", "dump", "show", "stages", "report", "export", "cache_clear", "graph",
               "traces"}  # fmt: skip


@cache
def call_natively() -> None:
    """From now on calls try shortcuts by native code, which does what `__call__` does."""
    if not calling.trouble():
        calling.Trial(CompiledFunction, "hot", MISS, "call_generally", "run_eagerly",
                      CompiledModule, "_compiled").install()  # fmt: skip

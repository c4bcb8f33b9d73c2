"""`compile(module)`: a module around the original, whose calls are compiled."""

from __future__ import annotations

from functools import cache
from typing import Any

from .compiling import CompiledFunction
from .full_graph import kind_of
from .nn.modules.module import Module
from .replay import MISS
from .runtime import calling

_INSPECTION = {"explain", "dump", "show", "stages", "report", "export", "cache_clear", "graph",
               "traces"}  # fmt: skip
# Hooks on calls are those of the original, where calls are recorded with them.
_OF_CALLS = {"register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
             "register_full_backward_pre_hook", "register_backward_hook", "forward"}  # fmt: skip
_get = object.__getattribute__


class OptimizedModule(Module):
    """A module whose one child, `_orig_mod`, is the original; its attributes are the child's.

    So the names of parameters and of the state begin with `_orig_mod.`, as in torch.
    """

    __slots__ = ("_compiled", "_settings")  # native code reads the first: runtime/calling.py

    def __init__(self, module: Any, options: dict[str, Any]):
        self._wrap(module, kind_of(options)(module, options), options)

    def _wrap(self, module: Any, call: Any, settings: Any) -> None:
        super().__init__()
        del self.__dict__["training"]  # asked of the original
        self.__dict__["_modules"]["_orig_mod"] = module
        object.__setattr__(self, "_compiled", call)
        object.__setattr__(self, "_settings", settings)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _get(self, "_compiled")(*args, **kwargs)

    def __getattribute__(self, name: str) -> Any:
        if name in _OF_CALLS:
            return getattr(_get(self, "__dict__")["_modules"]["_orig_mod"], name)
        return _get(self, name)

    def __getattr__(self, name: str) -> Any:
        if name in _INSPECTION:
            return getattr(self._compiled, name)
        for table in ("_modules", "_parameters", "_buffers"):
            if name in (members := self.__dict__[table]):
                return members[name]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self._orig_mod, self._settings)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self) -> Any:
        return iter(self._orig_mod)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]


class DisabledModule(OptimizedModule):
    """A module whose calls are left to Python; see `torch.compiler.disable`."""

    def __init__(self, module: Any, call: Any):
        self._wrap(module, call, call)


@cache
def call_natively() -> None:
    """From now on calls try shortcuts by native code, which does what `__call__` does."""
    if not calling.trouble():
        calling.Trial(CompiledFunction, "hot", MISS, "call_generally", "run_eagerly",
                      OptimizedModule, "_compiled").install()  # fmt: skip

"""Modules that are settings: `torch._dynamo.config.verbose = True`, `config.patch(verbose=True)`.

The names are known, as in torch: others raise. Values are kept here; who follows one is told.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class OptionModule(ModuleType):
    """A module whose attributes are options with known names; `install` makes one."""

    _values: dict[str, Any]
    _defaults: dict[str, Any]
    _synonyms: dict[str, str]
    _followers: dict[str, Callable[[Any], None]]

    def __getattr__(self, name: str) -> Any:
        name = self.__dict__.get("_synonyms", {}).get(name, name)
        if name not in self.__dict__.get("_values", ()):
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        name = self._synonyms.get(name, name)
        if name in self._values:
            self._values[name] = value
            self._followers.get(name, lambda value: None)(value)
        elif name.startswith("__") or isinstance(value, ModuleType):  # the import system's
            super().__setattr__(name, value)
        else:
            raise AttributeError(f"{self.__name__}.{name} does not exist")

    def patch(self, arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Any:
        """Other values for the length of a `with` block or of a function's calls.

        >>> with config.patch(verbose=True): ...
        >>> with config.patch("verbose", True): ...
        """
        changes = {arg1: arg2} if isinstance(arg1, str) else dict(arg1 or kwargs)
        if not changes:
            raise AssertionError("patch() needs names and values of options")
        return _Patch(self, changes)

    def shallow_copy_dict(self) -> dict[str, Any]:
        """All options and their values."""
        return dict(self._values)

    get_config_copy = to_dict = shallow_copy_dict

    def load_config(self, values: dict[str, Any]) -> None:
        """Takes what `shallow_copy_dict` gave."""
        for name, value in values.items():
            setattr(self, name, value)


class _Patch(contextlib.AbstractContextManager):
    """See `OptionModule.patch`; also a decorator."""

    def __init__(self, module: OptionModule, changes: dict[str, Any]):
        self.module, self.changes = module, changes
        self.before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self.before.append({name: getattr(self.module, name) for name in self.changes})
        self.module.load_config(self.changes)

    def __exit__(self, *error: Any) -> None:
        self.module.load_config(self.before.pop())

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def patched(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return patched


def install(
    name: str,
    options: dict[str, Any],
    synonyms: dict[str, str] | None = None,
    followers: dict[str, Callable[[Any], None]] | None = None,
) -> None:
    """Makes the module of this name one of options; `followers` are told a new value."""
    module = sys.modules[name]
    facts = {"_values": dict(options), "_defaults": dict(options), "_synonyms": synonyms or {},
             "_followers": followers or {}}  # fmt: skip
    module.__dict__.update(facts)
    module.__class__ = OptionModule

"""`wengert.as_torch()`: code that says `import torch` gets this package.

Never done implicitly. `as_torch()` holds until `undo()`, or for the length of a `with` block.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

_PACKAGE = __package__ or "wengert"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch.a.b` as the module `wengert.a.b` of this process, not a second copy."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        own = _PACKAGE + fullname[len("torch") :]
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name is None or not (own + ".").startswith(error.name + "."):
                raise  # the module is there, but something it needs is not
            return None
        spec = importlib.machinery.ModuleSpec(
            fullname, self, is_package=hasattr(module, "__path__")
        )
        spec._wengert_facts = (
            module,
            {  # type: ignore[attr-defined]
                name: getattr(module, name) for name in _FACTS if hasattr(module, name)
            },
        )
        return spec

    def create_module(self, spec: Any) -> ModuleType:
        return spec._wengert_facts[0]

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already; the import system renamed it, so give its names back."""
        spec = module.__spec__
        for name, value in getattr(spec, "_wengert_facts", (None, {}))[1].items():
            setattr(module, name, value)


_FACTS = ("__spec__", "__loader__", "__package__", "__path__", "__name__")


class as_torch:
    """as_torch(): installs the package under the name `torch`; also a context manager."""

    def __init__(self) -> None:
        known = sys.modules.get("torch")
        package = sys.modules[_PACKAGE]
        if known is not None and known is not package:
            raise RuntimeError(
                "torch is already imported in this process (from "
                f"{getattr(known, '__file__', 'an unknown place')}); call wengert.as_torch() "
                "before anything imports torch"
            )
        self.finder: Any = None
        if known is package:  # an outer call did it, and will undo it
            return
        self.finder = _Finder()
        sys.meta_path.insert(0, self.finder)
        sys.modules["torch"] = package

    def undo(self) -> None:
        """Forgets the name again; modules imported meanwhile keep what they have."""
        if self.finder is None:
            return
        sys.meta_path.remove(self.finder)
        for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
            del sys.modules[name]
        self.finder = None

    def __enter__(self) -> ModuleType:
        return sys.modules[_PACKAGE]

    def __exit__(self, *error: Any) -> None:
        self.undo()

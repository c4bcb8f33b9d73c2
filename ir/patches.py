"""What users replaced in the library itself: `F.relu = mine`, by hand or by a mocking tool.

Compiled traces were made of the library's own functions. So each replacement is an epoch, and a
trace serves while the same functions are replaced as when it was recorded.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from .bind import epoch

ROOMS = ("ir", "tracer", "codegen", "runtime")  # whose modules are no one's to change


class Patches:
    """The functions that are not the library's own now, by owner and name."""

    def __init__(self) -> None:
        self.now: dict[tuple[int, str], Any] = {}
        self.own: dict[tuple[int, str], Any] = {}
        self.is_watching = False  # nobody cares before something is compiled

    def replaced(self, owner: Any, name: str, value: Any) -> None:
        """`owner` gets another attribute; data may change, and new names nobody has read."""
        own = getattr(owner, name, None)
        if not self.is_watching or not callable(own):
            return
        key = id(owner), name
        if value is self.own.setdefault(key, own):
            self.now.pop(key, None)
        else:
            self.now[key] = value
        epoch.advance()

    def removed(self, owner: Any, name: str) -> None:
        """What is inherited shows again."""
        if self.now.pop((id(owner), name), None) is not None:
            epoch.advance()


patches = Patches()


class Watched:
    """What modules of the library, and the class of its tensors' class, do on assignment."""

    def __setattr__(self, name: str, value: Any) -> None:
        patches.replaced(self, name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        patches.removed(self, name)


class LibraryModule(Watched, types.ModuleType):
    """A module of the public face."""


def watch_library() -> None:
    """From now on replacements are seen; modules may be loaded later, so this is asked often."""
    patches.is_watching = True
    package = __name__.partition(".")[0]
    for name in list(sys.modules):  # making its items may let an import in
        module = sys.modules.get(name)
        first, _, rest = name.partition(".")
        if first == package and type(module) is types.ModuleType and (
                rest.partition(".")[0] not in ROOMS):  # fmt: skip
            module.__class__ = LibraryModule

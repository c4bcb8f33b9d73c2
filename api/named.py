"""Which attributes of what a body can reach are read by it.

Note [Names]
    Of an object of the user's only the attributes count that some code in sight names: a trainer
    may keep books that the body never opens. Code that asks by computed names (`getattr`, `vars`)
    may read all. What runs without being named (`__mul__`, `forward`) is in sight with its class.
"""

from __future__ import annotations

import types
from typing import Any

COMPUTED_NAMES = {"getattr", "hasattr", "vars", "__dict__", "eval", "exec", "globals", "attrgetter",
                  "asdict", "astuple", "copy", "deepcopy"}  # fmt: skip


class Names:
    """See Note [Names]."""

    def __init__(self) -> None:
        self.known: set[str] = {"forward", "backward", "setup_context", "vjp"}  # called by name
        self.all = False

    def add(self, code: types.CodeType) -> None:
        self.known.update(code.co_names)
        self.all = self.all or not COMPUTED_NAMES.isdisjoint(code.co_names)

    def __contains__(self, name: Any) -> bool:
        return self.all or name in self.known or (name[:2] == "__" and name[-2:] == "__")


class Everything:
    """Names that may be read by code that is not in sight: the library's own."""

    all = True

    def __contains__(self, name: Any) -> bool:
        return True


class Owner:
    """Something with attributes: `enter` is called with each, once a name for it is known."""

    def __init__(self, space: Any, names: Any, enter: Any):
        self.space, self.names, self.enter = space, names, enter
        self.met: set[Any] = set()

    def unmet(self) -> list[tuple[Any, Any]]:
        found = [(k, v) for k, v in self.space.items() if k in self.names and k not in self.met]
        self.met.update(name for name, _ in found)
        return found

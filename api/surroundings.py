"""What holds around a call without being named by it: where new tensors lie, hooks of all modules,
and settings of the library that a body asks for. Changes advance `epoch`."""

from __future__ import annotations

import sys
from typing import Any

from .facts import (
    are_deterministic_algorithms_enabled,
    get_float32_matmul_precision,
    get_num_threads,
)
from .guards import Guard
from .tracer.facts import WHERE

ASKED = {ask.__name__: ask for ask in (are_deterministic_algorithms_enabled, get_num_threads,
                                       get_float32_matmul_precision)}  # fmt: skip


def module_hooks() -> list[Any]:
    """Hooks that hold for every module."""
    tables = sys.modules.get(f"{__package__}.nn.modules._hooks")
    if tables is None:
        return []
    known = tables.Global
    return [hook for table in (known.forward_pre, known.forward, known.backward_pre, known.backward)
            for hook in table.values()]  # fmt: skip


class Surroundings(Guard):
    """They must be as they were; of settings those that code has names for."""

    def __init__(self, names: Any):
        self.names = names
        self.before: Any = None

    def begin(self) -> None:
        self.before = self.now()

    def now(self) -> Any:
        asked = {name: ask() for name, ask in ASKED.items() if name in self.names}
        return {"default device": WHERE[-1].type if WHERE else "cpu", **asked}, module_hooks()

    def change(self) -> str | None:
        before, now = self.before[0], self.now()[0]
        for name, value in now.items():
            if before[name] != value:
                return f"{name} changed from {before[name]} to {value}"
        hooks = self.before[1], self.now()[1]
        if len(hooks[0]) == len(hooks[1]) and all(a is b for a, b in zip(*hooks)):
            return None
        return "hooks of all modules changed"

    def words(self, watch: Any) -> Any:
        return []  # epochs tell

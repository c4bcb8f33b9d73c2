"""The Python values a body can see, as they were when it was recorded.

Modules report changes through `epoch`, so for them a hit costs one compare; the rest is watched in
memory (`runtime/watch.py`), and compared value by value only where a word has changed or nothing
can be watched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from .guards import Guard
from .ir.bind import epoch
from .ir.patches import patches
from .plain import first_change, outline
from .reach import HOOKS, Reach
from .settling import settle
from .varying import Varying

MAX_ALARMS = 8  # then watching costs more than comparing


class Environment(Reach):
    """What a function can see, and whether it still is the same."""

    def __init__(self, function: Any, leaves: list[Any], varying: Varying | None = None,
                 beside: Sequence[Any] = ()):  # fmt: skip
        super().__init__(function, leaves, varying, beside)
        self.varied = self.varying.among(self.floats)
        self.loose = [guard for guard in self.guards if guard.varying]
        self.findings.bound = self.bound_tensors()
        self.beside = self.findings.among(lambda p: p.covered and self.varying.at(p.owner))
        self.varies_in_modules = any(self.varying.at(module.__dict__) for module in self.modules)
        self.states = [ModuleState(module, frozenset(self.varying.at(module.__dict__)))
                       for module in self.modules]  # fmt: skip
        self.patches = dict(patches.now)
        self.looks: list[Guard] = []
        self.epoch = epoch.value
        self.unchanged: Any = None  # the watch over what `compare` looks at
        self.alarms = 0  # of the watch, in a row, without a change that matters
        self.of_modules: Any = None  # the watch over attributes of modules that no epoch tells of

    def rely_on(self, looks: Sequence[Guard]) -> None:
        """More must stay as it was; see Note [Looks at tensors]."""
        self.looks += looks
        self.guards += looks
        self.unchanged = None

    def quick_failure(self) -> str | None:
        """What no epoch tells of: all but modules."""
        reason = self.loose_failure()
        if reason is None and self.of_modules is not None and not self.of_modules():
            reason = self.failure()
        if reason is not None:
            return reason
        if self.unchanged is not None and self.unchanged():
            self.alarms = 0
            return None
        reason = self.compare()
        if reason is None and self.alarms < MAX_ALARMS:
            self.alarms += 1
            self.unchanged = watched(self.words)
        return reason

    def loose_failure(self) -> str | None:
        """What changed beside floats that vary: no watch tells, for these change all the time."""
        for guard in self.loose:
            changed = guard.change()
            if changed is not None:
                return changed
        return self.beside.change()

    def compare(self) -> str | None:
        """Each value with what it was."""
        for guard in self.guards:
            changed = guard.change()
            if changed is not None:
                return changed
        return self.findings.change()

    def failure(self) -> str | None:
        """Which value changed since, or None; looks at modules too."""
        found = self.compare()
        if found is not None:
            return found
        if patches.now != self.patches:
            return "a function of the library is replaced"
        for state in self.states:
            changed = state.change()
            if changed is not None:
                return changed
        self.epoch = epoch.value
        self.of_modules = watched(self.words_of_modules)
        return None

    def settle(self) -> None:
        """Plain numbers for symbolic sizes that the body left where others see them."""
        for module in self.modules:
            settle(module.__dict__)
        for guard in self.guards:
            guard.settle()

    def words(self) -> Any:
        """The words of memory behind all that `compare` looks at, but what `loose_failure` does.

        Raises Unwatchable.
        """
        from .runtime import watch

        words = [word for guard in self.guards if not guard.varying for word in guard.words(watch)]
        return [*words, *self.findings.words(watch)]

    def words_of_modules(self) -> Any:
        """Those that differ where somebody writes into the `__dict__` of a module."""
        from .runtime import watch

        modules = () if self.varies_in_modules else self.modules
        return [word for module in modules for word in watch.of_dict(module.__dict__)]

    def option_numbers(self) -> list[Any]:
        """The hyper-parameters of optimizers, which are read at each call."""
        return [value for optimizer in self.optimizers for group in optimizer.param_groups
                for name, value in group.items() if name != "params"]  # fmt: skip

    def parameters(self) -> list[Any]:
        """The parameters and buffers of the modules in sight."""
        return [tensor for module in self.modules
                for tensor in (*module._parameters.values(), *module._buffers.values())
                if tensor is not None]  # fmt: skip

    def bound_tensors(self) -> set[int]:
        """Ids of what is the same at each call: all but buffers of one module that it replaces."""
        times = Counter([*map(id, self.parameters()), *map(id, self.optimized())])
        return {k for k, count in times.items() if count > 1 or k not in self.replaceable}

    def optimized(self) -> list[Any]:
        """What optimizers in sight update, and what they keep of it."""
        updated = [tensor for optimizer in self.optimizers for group in optimizer.param_groups
                   for tensor in group["params"]]  # fmt: skip
        kept = [value for optimizer in self.optimizers for state in optimizer.state.values()
                if isinstance(state, dict) for value in state.values()]  # fmt: skip
        return updated + kept

    def parameter_names(self) -> dict[int, str]:
        """Names of the parameters and buffers of the modules in sight, by id."""
        names: dict[int, str] = {}
        for module in self.modules:
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                names.setdefault(id(tensor), name)
        return names


def watched(words: Any) -> Any:
    """A watch over words; None where that is impossible."""
    from .runtime import watch

    try:
        return watch.watch(words())
    except watch.Unwatchable:
        return None


class ModuleState:
    """Plain attributes of a module, and its hooks, as they were.

    An epoch tells that some module has changed; words of memory, that it was another one.
    """

    def __init__(self, module: Any, varying: frozenset[str]):
        self.module, self.varying = module, varying
        self.before = self.now()
        self.unchanged: Any = None
        self.held: list[Any] = []  # what is watched

    def now(self) -> dict[str, Any]:
        attributes = self.module.__dict__
        state = outline(attributes, varying=self.varying)
        state["its class"] = id(type(self.module))
        for table in HOOKS:
            for name, value in (attributes.get(table) or {}).items():
                state[f"{table}.{name}"] = id(value)
        return state

    def tables(self) -> list[Any]:
        attributes = self.module.__dict__
        found = (attributes.get(table) for table in HOOKS)
        return [attributes, *(table for table in found if table is not None)]

    def words(self) -> Any:
        from .runtime import watch

        self.held = self.tables()
        return [word for table in self.held for word in watch.of_dict(table)] + [
            *watch.of_class(self.module)]  # fmt: skip

    def change(self) -> str | None:
        """Which attribute changed."""
        if self.unchanged is not None and self.unchanged():
            return None
        changed = first_change(self.before, self.now())
        if changed is not None:
            return f"{type(self.module).__name__}.{changed[0]} changed"
        self.unchanged = None if self.varying else watched(self.words)
        return None

"""Guards: the kinds of Python values that a trace relies on, and how each is compared.

`reach.py` finds the values; `environment.py` asks all guards of a trace.
"""

from __future__ import annotations

import builtins
import operator
import types
from typing import Any

import numpy as np

from .ir.dims import plain_values
from .plain import OBJECT, PLAIN, first_change, is_library, outline, same, same_items
from .settling import is_symbolic, settle


class Guard:
    """Something that must be as it was when the call was recorded."""

    varying: Any = ()  # names of floats that are data; see Note [Varying floats]

    def begin(self) -> None:
        """All that can be reached is known."""

    def change(self) -> str | None:
        """What is not as it was."""
        raise NotImplementedError

    def words(self, watch: Any) -> Any:
        """The words of memory that differ where something changed."""
        raise watch.Unwatchable(type(self).__name__)

    def settle(self) -> None:
        """Plain numbers for symbolic sizes that the body left here."""

    def describe(self) -> list[str]:
        """Lines for reports."""
        return []


class Value(Guard):
    """A plain value at a place: a closure cell, a global variable, a slot."""

    def __init__(self, place: Any, value: Any):
        self.place, self.value = place, value

    def change(self) -> str | None:
        now = self.place.read()
        if same(now, self.value):
            return None
        return f"{self.place.text} changed from {self.value!r} to {now!r}"

    def words(self, watch: Any) -> Any:
        return self.place.words(watch)

    def settle(self) -> None:
        now = self.place.read()
        if is_symbolic(now):
            self.place.write(plain_values(now))

    def describe(self) -> list[str]:
        return [f"{self.place.text} == {self.value!r}"]


class Absent(Guard):
    """Names that code looks up among the globals, and that are Python's own or nobody's."""

    def __init__(self, space: dict[str, Any]):
        self.space = space
        self.before: dict[str, Any] = {}

    def add(self, name: str) -> Any:
        """One more; returns what Python itself has by that name."""
        return self.before.setdefault(name, vars(builtins).get(name))

    def change(self) -> str | None:
        for name, before in self.before.items():
            if name in self.space or vars(builtins).get(name) is not before:
                return f"global {name} is another object now"
        return None

    def words(self, watch: Any) -> Any:
        known = [name for name in self.before if name in vars(builtins)]
        words = [word for name in known for word in watch.of_entry(vars(builtins), name)]
        return [*words, *watch.of_names(self.space), *watch.of_names(vars(builtins))]


class Float(Value):
    """A float at a place, whichever; see Note [Varying floats]."""

    def __init__(self, place: Any, value: Any):
        super().__init__(place, value)
        self.varying = {place.name}

    def change(self) -> str | None:
        now = self.place.read()
        return None if type(now) is float else f"{self.place.text} is no float any more: {now!r}"

    def describe(self) -> list[str]:
        return [f"{self.place.text} is a float"]


class Items(Guard):
    """The plain items of a dict, list or deque, how many there are, and their order."""

    def __init__(self, container: Any, varying: Any = ()):
        self.container, self.varying = container, frozenset(varying)
        self.before = self.now()

    def now(self) -> dict[Any, Any]:
        return outline(self.entries(), varying=self.varying)

    def entries(self) -> Any:
        value = self.container
        return value if isinstance(value, dict) else dict(enumerate(value))

    def change(self) -> str | None:
        changed = first_change(self.before, self.now())
        if changed is None:
            return None
        return f"item {changed[0]!r} of a {type(self.container).__name__} changed"

    def words(self, watch: Any) -> Any:
        if isinstance(self.container, list):
            return watch.of_list(self.container)
        return watch.of_dict(self.container) if isinstance(self.container, dict) else (
            super().words(watch))  # fmt: skip

    def settle(self) -> None:
        settle(self.container)


class Contents(Guard):
    """All of a small set or array, in the order in which Python gives it."""

    def __init__(self, value: Any):
        self.value = value
        self.before = self.now()

    def now(self) -> Any:
        value = self.value
        if isinstance(value, np.ndarray):
            return [str(value.dtype), str(value.shape), value.tobytes()]
        return list(value) if isinstance(value, set) else [bytes(value)]

    def change(self) -> str | None:
        if same_items(self.now(), self.before):
            return None
        return f"the contents of a {type(self.value).__name__} changed"

    def words(self, watch: Any) -> Any:
        return watch.of_set(self.value) if type(self.value) is set else super().words(watch)


class Attributes(Guard):
    """The plain attributes of an object, as far as names count."""

    def __init__(self, owner: Any, names: Any, varying: Any = ()):
        self.owner, self.names, self.varying = owner, names, frozenset(varying)
        self.kind = type(owner)
        self.before: dict[str, Any] = {}

    def begin(self) -> None:
        """All names are known: from now on these attributes must stay as they are."""
        self.before = self.now()

    def now(self) -> dict[str, Any]:
        return outline(self.owner.__dict__, self.names, self.varying)

    def change(self) -> str | None:
        if type(self.owner) is not self.kind:
            return f"a {self.kind.__name__} is of another class now"
        changed = first_change(self.before, self.now(), ordered=self.names.all)
        return None if changed is None else f"{self.kind.__name__}.{changed[0]} changed"

    def words(self, watch: Any) -> Any:
        return [*watch.of_class(self.owner), *watch.of_attributes(self.owner)]

    def settle(self) -> None:
        settle(self.owner.__dict__)

    def describe(self) -> list[str]:
        plain = ", ".join(f"{k}={v!r}" for k, v in self.before.items())
        return [f"{type(self.owner).__name__}: {plain}"] if plain else []


class ClassBody(Attributes):
    """What a class has under the names that count: values, and methods by identity."""

    def __init__(self, cls: type, space: dict[str, Any], names: Any):
        super().__init__(cls, names)
        self.space = space

    def now(self) -> dict[str, Any]:
        return {k: v for k, v in self.space.items() if k in self.names}

    def change(self) -> str | None:
        before, now = self.before, self.now()
        for name in before.keys() | now.keys():
            old, new = before.get(name, OBJECT), now.get(name, OBJECT)
            if old is not new and not (isinstance(old, PLAIN) and same(old, new)):
                return f"{self.owner.__name__}.{name} changed"
        return None

    def words(self, watch: Any) -> Any:
        return watch.of_dict(self.space)

    def settle(self) -> None:
        pass

    def describe(self) -> list[str]:
        return []


class Code(Guard):
    """A function's code, its name, and the defaults of its parameters."""

    def __init__(self, function: types.FunctionType):
        self.function = function
        self.before = self.now()

    def now(self) -> Any:
        f = self.function
        return f.__code__, f.__defaults__, tuple((f.__kwdefaults__ or {}).items()), f.__name__

    def change(self) -> str | None:
        (*now, named, name), (*known, others, known_name) = self.now(), self.before
        if is_each(now, known) and name == known_name and len(named) == len(others) and all(
                a[0] == b[0] and a[1] is b[1] for a, b in zip(named, others)):  # fmt: skip
            return None
        return f"the code or the defaults of {self.function.__name__} changed"

    def words(self, watch: Any) -> Any:
        return watch.of_function(self.function)


class Members(Guard):
    """The objects in a list, or the names and objects in a dict, by identity.

    What lies under the names `but` is looked at elsewhere.
    """

    def __init__(self, items: Any, why: str = "", but: Any = ()):
        self.items, self.why, self.but = items, why, but
        self.before = self.now()

    def now(self) -> list[Any]:
        if not self.but:
            return flat(self.items)
        return [*self.items, *(v for k, v in self.items.items() if k not in self.but)]

    def change(self) -> str | None:
        if is_each(self.now(), self.before):
            return None
        return self.why or ("a list of tensors changed" if isinstance(self.items, list) else
                            "what is registered in a module changed")  # fmt: skip

    def words(self, watch: Any) -> Any:
        return (watch.of_list if isinstance(self.items, list) else watch.of_dict)(self.items)


def flat(items: Any) -> list[Any]:
    return [*items, *items.values()] if isinstance(items, dict) else list(items)


def is_each(some: list[Any], others: list[Any]) -> bool:
    """Are these the same objects?"""
    return len(some) == len(others) and all(map(operator.is_, some, others))


class OptimizerState(Guard):
    """Which parameters have state in an optimizer, and in which objects it is kept.

    A body that only empties gradients (the closure of an L-BFGS, say) does not look at the state.
    """

    def __init__(self, optimizer: Any, names: Any):
        self.optimizer, self.names = optimizer, names
        self.looked_at = True
        self.before: list[Any] = []

    def begin(self) -> None:
        optimizer = self.optimizer
        known = all(is_library(base.__module__) for base in type(optimizer).__mro__[:-1])
        self.looked_at = not known or "zero_grad" in vars(optimizer) or any(
            name in self.names for name in dir(optimizer)
            if name[:2] != "__" and name not in ("zero_grad", "param_groups", "defaults")
        )  # fmt: skip
        self.before = self.now()

    def now(self, but: frozenset[int] = frozenset()) -> list[Any]:
        """What is compared, but for the state of the parameters with these ids."""
        state, groups = self.optimizer.state, self.optimizer.param_groups
        if not self.looked_at:
            return [groups]
        kept = [x for owner, kept in state.items() if kept and id(owner) not in but
                for x in (owner, kept, *flat(kept))]  # fmt: skip
        return [state, groups, *kept]

    def begun(self, parameters: list[Any]) -> None:
        """The state of some parameters was made, and counts from now on; all else is as before."""
        before = self.now(but=frozenset(map(id, parameters)))
        if is_each(before, self.before):
            self.before = self.now()

    def change(self) -> str | None:
        if is_each(self.now(), self.before):
            return None
        return "the state of an optimizer changed"

    def words(self, watch: Any) -> Any:
        words = watch.of_attributes(self.optimizer)
        if self.looked_at:
            state = self.optimizer.state
            words += watch.of_dict(state)
            words += [word for inner in state.values() for word in watch.of_dict(inner)]
        return words

"""Python floats that a recorded call takes as data: which they are, and what was asked of them."""

from __future__ import annotations

import operator
import weakref
from typing import Any

from .class_tests import compares_identity, tells_numbers
from .environment import Environment
from .ir.dims import Sizes, has_dims, plain_values
from .loose_numbers import Loose, put
from .one_object import may_write, seen_twice
from .plain import same
from .pytree import flatten, names_and_members, rebuild
from .sources import Argument, HyperParameter, Placed, is_same
from .tracer.recorder import Recorder
from .tracer.scalars import RunTimeNumber, run_time_number
from .tracer.tensor import Tensor

NO_SIZES = Sizes()


class NumberInputs:
    """The run-time numbers of a recording: arguments, hyper-parameters, floats that vary."""

    environment: Environment
    known_containers: set[int]
    leaves: list[Any]
    names: list[str]
    recorder: Recorder

    def __init__(self) -> None:
        self.numbers: dict[int, Any] = {}  # id of a run-time number -> how to read it at a call
        self.number_places: dict[int, int] = {}  # those that are arguments
        self.placed: list[tuple[Any, Any, float]] = []  # those at places: with what lies there
        self.hypers: dict[Any, Any] = {}
        self.hyper_guards: list[Any] = []
        self.left_plain: set[int] = set()  # floats whose class the body may look at
        self.left_in_place: list[Any] = []

    def tensor_names(self) -> set[str]:
        """The arguments that are known to be tensors."""
        return {name for name, leaf in zip(self.names, self.leaves) if isinstance(leaf, Tensor)}

    def with_numbers(self, call: Any, leaves: list[Any], specialised: set[int]) -> list[Any]:
        """The arguments' leaves with floats replaced by run-time numbers."""
        floats = {k for k, leaf in enumerate(leaves) if type(leaf) is float} - specialised
        tensors = self.tensor_names()
        functions = self.environment.functions() if floats else []
        if floats and tells_numbers(functions, tensors):
            self.left_plain = floats
            return leaves
        if floats and compares_identity(functions, tensors):
            self.environment.problem("the body may ask whether a number is another (`is`); "
                                     "compare with ==")  # fmt: skip
            return leaves
        if floats and may_write(functions):
            self.left_plain = floats & seen_twice(call, self.environment.seen)
        replaced = []
        for place, leaf in enumerate(leaves):
            if place in floats - self.left_plain:
                leaf = self.number(leaf, Argument(place))
                self.number_places[id(leaf)] = place
            replaced.append(leaf)
        return replaced

    def numbers_at_places(self) -> list[tuple[Any, Any, float]]:
        """Run-time numbers for floats that vary; see Note [Varying floats]."""
        varied = self.environment.varied.values()
        functions = self.environment.functions() if varied else []
        if tells_numbers(functions, set()) or compares_identity(functions, set()):
            self.left_in_place = [place for place, _ in varied]
            return []
        return [(place, self.number(value, Placed(place)), value) for place, value in varied]

    def without_numbers(self, output: Any) -> Any:
        """What the caller gets: numbers for those known by name; the one that it gave is itself."""
        leaves: list[Any] = []
        structure = flatten(output, leaves)
        if any(isinstance(leaf, RunTimeNumber) or has_dims(leaf) for leaf in (*leaves, structure)):
            return self.plain_members(output)
        return output

    def plain_members(self, value: Any) -> Any:
        """Containers with numbers are made anew, but those that the body did not make."""
        found = names_and_members(value)
        if found is None:
            return self.plain_leaf(value)
        names, items = found
        new = [self.plain_members(item) for item in items]
        changed = {id(a): b for a, b in zip(items, new) if a is not b}
        plain_names = plain_values(names)
        if plain_names is names and not changed:
            return value
        if id(value) in self.known_containers:
            put(value, changed)  # names are plain there: see `settle`
            return value
        return rebuild(type(value), plain_names, new)

    def loose_numbers(self) -> Loose:
        """The run-time numbers of this recording; with it they go, unless somebody holds them."""
        computed = (entry.tensor for entry in self.recorder.entries.values())
        numbers = {id(n): n for n, _ in self.numbers.values()}
        numbers.update((id(t), t) for t in computed if isinstance(t, RunTimeNumber))
        loose: Loose = [(weakref.ref(n), self.plain_leaf(n)) for n in numbers.values()]
        dims = ((made, made()) for made in getattr(self.recorder, "sizes", NO_SIZES).made)
        return loose + [(made, dim.value) for made, dim in dims if dim is not None]

    def plain_leaf(self, leaf: Any) -> Any:
        if not isinstance(leaf, RunTimeNumber):
            return plain_values(leaf)
        place = self.number_places.get(id(leaf))
        return leaf._array.item() if place is None else self.leaves[place]

    def number(self, value: float, read: Any) -> Any:
        made = run_time_number(value)
        self.numbers[id(made)] = (made, read)
        return made

    def hyper_parameter(self, group: Any, name: str, index: int | None, value: float) -> Any:
        """An optimizer's hyper-parameter: read again at each call."""
        if type(value) is RunTimeNumber:  # it varies at a place of its own, for code of the user's
            return value
        key = (id(group), name, index)
        known = self.hypers.get(key)
        if known is not None and not same(known._array.item(), float(value)):
            return value  # the body changes options, so it is not replayed: see `run`
        if known is None:
            known = self.hypers[key] = self.number(value, HyperParameter(group, name, index))
        return known

    def hyper_branch(self, group: Any, name: str, outcome: bool) -> None:
        """What is computed depends on whether a hyper-parameter is set."""
        self.hyper_guards.append((HyperParameter(group, name), operator.ne, 0, outcome))

    def comparisons(self) -> list[Any]:
        """Guards on run-time numbers that are given."""
        guards = list(self.hyper_guards)
        guards += [(HyperParameter(group, name), is_same, value, True)
                   for group, name, value in self.environment.groups]  # fmt: skip
        guards += [(HyperParameter(group, name), is_same, value, True)
                   for group, name, value in self.unread_options()]  # fmt: skip
        guards += [(self.numbers[id(number)][1], how, other, outcome)
                   for number, how, other, outcome in self.recorder.comparisons]  # fmt: skip
        return guards

    def unread_options(self) -> list[tuple[Any, str, Any]]:
        """Numbers among the options of optimizers that formulas took as they were.

        A rate that no formula took only begins a state.
        """
        read = {(group, name) for group, name, _ in self.hypers}
        options = [(group, name, value) for optimizer in self.environment.optimizers
                   for group in optimizer.param_groups for name, value in group.items()
                   if name not in ("params", "lr") and (id(group), name) not in read]  # fmt: skip
        return [(group, name, list(value) if type(value) is list else value)
                for group, name, value in options if is_number(value)]  # fmt: skip

    def used_places(self) -> set[int]:
        """Float arguments whose value Python saw: the next call specialises on them."""
        used = self.used_numbers()
        return self.left_plain | {place for key, place in self.number_places.items() if key in used}

    def used_floats(self) -> list[Any]:
        """As `used_places`: where floats lie that were taken for data."""
        used = self.used_numbers()
        return self.left_in_place + [
            place for place, number, _ in self.placed if id(number) in used
        ]

    def used_of_tensors(self) -> bool:
        """Did Python see numbers that are computed of what `item()` gave?"""
        return bool(self.recorder.of_tensors) and any(
            id(number) not in self.numbers for number in self.recorder.used_numbers
        )

    def used_numbers(self) -> set[int]:
        """Ids of the run-time numbers whose value Python saw, or may have computed with."""
        seen = {id(number) for number in self.recorder.used_numbers}
        return seen if seen <= self.numbers.keys() else set(self.numbers)


def is_number(value: Any) -> bool:
    """A number, or several."""
    if isinstance(value, tuple | list):
        return all(isinstance(item, int | float | None) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)

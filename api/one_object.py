"""Which containers among the arguments are one object: part of what selects a trace.

Note [Containers that are one]
    A body may be given a list twice, or one that it also finds by a name of its own. It sees that
    if it asks (`a is b`), or if it writes to one and reads the other. Bodies that write to what
    they were given run in Python at each call. So what is left is code that asks: it is looked for
    when a call is recorded, and only where there is some the containers are compared at each call.

    While a call is recorded, a container with floats is made anew, with run-time numbers. One that
    the body may see in two places is not, where there is code that may write to it: its floats stay
    plain, and later calls specialise.
"""

from __future__ import annotations

import dis
import itertools
import types
from collections.abc import Iterable, Iterator
from typing import Any

from .class_tests import compares_identity
from .ir.texts import function_of
from .pytree import names_and_members
from .quiet_code import codes_in

ASKERS = {"is_", "is_not", "deepcopy"}  # functions of Python's that ask, beside `is`
WRITERS = {"append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse",
           "setattr", "setdefault", "sort", "update"}  # fmt: skip
STORES = {"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE", "STORE_ATTR", "DELETE_ATTR"}
AUGMENTED = {"+=", "*=", "|="}  # which change lists and dicts
MAX_TERMS = 64  # of a test that is written out


def may_write(functions: Iterable[types.FunctionType]) -> bool:
    """May one of them write to a container?"""
    for function in functions:
        for code in codes_in(function.__code__):
            if not WRITERS.isdisjoint(code.co_names):
                return True
            if any(map(writes, dis.get_instructions(code))):
                return True
    return False


def writes(step: dis.Instruction) -> bool:
    """Does an instruction write to a container?"""
    name = step.opname
    return name in STORES or step.argrepr in AUGMENTED or name.startswith("INPLACE_")


def containers_of(call: tuple[Any, Any]) -> Iterator[Any]:
    """The containers among the arguments, in order, each as often as it is there."""
    args, kwargs = call
    stack = [*reversed([*args, *kwargs.values()])]
    while stack:
        value = stack.pop()
        found = names_and_members(value)
        if found is not None:
            yield value
            stack += reversed(found[1])


def seen_twice(call: tuple[Any, Any], others: set[int]) -> set[int]:
    """The places of leaves in containers that are there twice, or whose ids are among `others`."""
    found = [c for c in containers_of(call) if not isinstance(c, tuple)]
    ids = [id(c) for c in found]
    twice = {i for i in ids if i in others or ids.count(i) > 1} if ids else set()
    if not twice:
        return set()
    places: set[int] = set()
    count = itertools.count()

    def walk(value: Any, inside: bool) -> None:
        members = names_and_members(value)
        if members is not None:
            for item in members[1]:
                walk(item, inside or id(value) in twice)
        elif (place := next(count)) is not None and inside:
            places.add(place)

    walk(call, False)
    return places


class OneObject:
    """What a compiled function knows of it; see Note [Containers that are one]."""

    def __init__(self) -> None:
        self.matters = False
        self.known: dict[int, Any] = {}  # containers that bodies find by names of their own

    def learn(self, recording: Any) -> bool:
        """Looks at the code that was in sight of a recording; may that ask?"""
        environment = recording.environment
        functions, tensors = environment.functions(), recording.tensor_names()
        names = (name for f in functions for code in codes_in(f.__code__) for name in code.co_names)
        self.known.update((id(value), value) for value in recording.back.known)
        if compares_identity(functions, tensors) or not ASKERS.isdisjoint(names) or (
                recording.back.unsure):  # fmt: skip
            self.matters = True
            self.known.update((id(value), value) for value in environment.keep
                              if names_and_members(value) is not None)  # fmt: skip
        return self.matters

    def pattern(self, containers: Iterable[Any]) -> Any:
        """For each container the first that is itself, or its id where bodies know it; None where
        all are others."""
        first: dict[int, Any] = {}
        found = [("known", id(c)) if id(c) in self.known else first.setdefault(id(c), k)
                 for k, c in enumerate(containers)]  # fmt: skip
        return None if found == [*range(len(found))] else tuple(found)

    def checked(self, replay: Any, call: tuple[Any, Any], miss: object) -> Any:
        """`replay`, which answers `miss` where containers are one in another way than in `call`."""
        if not self.matters or replay is None:
            return replay
        terms, space = self.terms(call)
        if not terms:
            return replay
        if len(terms) > MAX_TERMS:
            terms = ["pattern(containers((args, kwargs))) == expected"]
            expected = self.pattern(containers_of(call))
            space.update(pattern=self.pattern, containers=containers_of, expected=expected)
        text = TEXT.format(test=" and ".join(terms))
        space.update(known=self.known, replay=replay, miss=miss)
        return function_of(text, "<wengert checked>", space)

    def terms(self, call: tuple[Any, Any]) -> tuple[list[str], dict[str, Any]]:
        """What is true of calls with the pattern of this one, and values that the text uses."""
        terms: list[str] = []
        space: dict[str, Any] = {}
        others: list[tuple[str, Any]] = []
        for expression, value in expressions(call, space):
            same = next((e for e, other in others if other is value), None)
            if id(value) in self.known:
                name = f"c{len(space)}"
                space[name] = value
                terms.append(f"{expression} is {name}")
            elif same is not None:
                terms.append(f"{expression} is {same}")
            else:
                terms += [f"{expression} is not {e}" for e, other in others
                          if type(other) is type(value)]  # fmt: skip
                if any(type(other) is type(value) for other in self.known.values()):
                    terms.append(f"id({expression}) not in known")
                others.append((expression, value))
        return terms, space


TEXT = """
def checked(args, kwargs):
    try:
        if not ({test}):
            return miss
    except (IndexError, KeyError, TypeError, AttributeError):  # of another structure
        return miss
    return replay(args, kwargs)
"""


def expressions(call: tuple[Any, Any], space: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The containers, each with an expression that finds it; `space` holds what these use."""
    args, kwargs = call
    stack = [(f"args[{k}]", value) for k, value in enumerate(args)]
    stack += [(f"kwargs[{name!r}]", value) for name, value in kwargs.items()]
    stack.reverse()
    while stack:
        expression, value = stack.pop()
        found = names_and_members(value)
        if found is None:
            continue
        yield expression, value
        names, items = found
        if type(value) is dict or not (names is None or isinstance(value, dict)):
            keys = [f"k{len(space) + k}" for k in range(len(items))]
            space.update(zip(keys, names))
            form = "{0}[{1}]" if type(value) is dict else "getattr({0}, {1})"
        else:
            keys = [*map(str, range(len(items)))]
            form = "{0}[{1}]" if names is None else "[*{0}.values()][{1}]"
        inner = [(form.format(expression, key), item) for key, item in zip(keys, items)]
        stack += reversed(inner)

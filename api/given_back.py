"""Containers that a body hands back as it was given them: the caller gets its own.

Note [Handed back]
    Replays know the leaves of a call, not its containers. So where a result has one that the call
    was given, a replay makes the other leaves, with an `Answer` before them: code that puts the
    result together, which finds the caller's own among the arguments. Tuples that the body finds by
    a name of its own, or has as constants, are guarded by identity: the same is handed out at each
    call.

    A container may have been in two places when the call was recorded. Which one the body handed
    back is not known then, so other calls must have it in both (`one_object.py`).
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from typing import Any

from .arguments import GivenArguments, remade
from .ir.texts import function_of
from .one_object import containers_of, expressions
from .pytree import names_and_members
from .quiet_code import codes_in
from .unpacking import Writer, packing


class Back:
    """Stands for a container among the arguments, which an expression finds."""

    def __init__(self, expression: str, space: dict[str, Any]):
        self.expression, self.space = expression, space

    def finds(self, own: Any, call: tuple[Any, Any]) -> bool:
        """Does it find that one? There are dicts with attributes beside their items."""
        text = f"def find(args, kwargs):\n    return {self.expression}"
        try:
            return function_of(text, "<wengert find>", dict(self.space))(*call) is own
        except (LookupError, AttributeError):
            return False


class Same:
    """Stands for a tuple that is the same at each call."""

    def __init__(self, value: Any):
        self.value = value


class HandedBack:
    """What a recorded body returns of what it was given.

    `output` is that with `Back` and `Same`; `made` are the containers beside these that could be
    changed. `unsure`: it is not known which of two that are one the body means; `known` are those
    that it also has by itself.
    """

    def __init__(self, output: Any, given: GivenArguments, environment: Any):
        self.unsure, self.known = False, list[Any]()
        self.made: list[int] = []
        self.marks: dict[int, Any] = {}
        returned = {id(value): value for value in nested(output)}
        if returned:
            constants = constant_tuples(environment.functions())
            self.look_for(returned, given, environment.seen | constants)
        self.output = self.marked(output)

    def look_for(self, returned: dict[int, Any], given: GivenArguments, known: set[int]) -> None:
        """Finds those containers among arguments, and tuples that the body knows."""
        space: dict[str, Any] = {}
        uses = collections.Counter(map(id, containers_of(given.given)))
        pairs = zip(expressions(given.given, space), expressions(given.call, {}))
        for (expression, own), (_, value) in pairs:
            if id(value) not in returned or id(value) in self.marks:
                continue
            mark = Back(expression, space)
            if mark.finds(own, given.given):
                self.marks[id(value)] = mark
                if id(own) in known:
                    self.known.append(own)
                self.unsure = self.unsure or uses[id(own)] > 1 or id(own) in known
        for key, value in returned.items():
            if key in known and key not in self.marks and isinstance(value, tuple):
                self.marks[key] = Same(value)

    def marked(self, value: Any) -> Any:
        """`value` with marks in the place of such containers."""
        found = names_and_members(value)
        if found is None:
            return value
        if (mark := self.marks.get(id(value))) is not None:
            return mark
        if not isinstance(value, tuple):
            self.made.append(id(value))
        new = [self.marked(item) for item in found[1]]
        return value if all(a is b for a, b in zip(found[1], new)) else remade(value, new)


def nested(value: Any) -> Iterator[Any]:
    """All containers of a nesting."""
    found = names_and_members(value)
    if found is not None:
        yield value
        for item in found[1]:
            yield from nested(item)


def constant_tuples(functions: Iterable[Any]) -> set[int]:
    """The ids of tuples that are constants of the code of functions."""
    stack = [constant for function in functions for code in codes_in(function.__code__)
             for constant in code.co_consts if type(constant) is tuple]  # fmt: skip
    found: set[int] = set()
    while stack:
        value = stack.pop()
        found.add(id(value))
        stack += [item for item in value if type(item) is tuple]
    return found


# --- at replays -----------------------------------------------------------------------------------


class Answer:
    """`put` makes the result of a call, of what a replay made and the arguments."""

    __slots__ = ("put",)

    def __init__(self, put: Any):
        self.put = put


def answering(structure: Any, leaves: list[Any]) -> tuple[Any, list[Any]]:
    """What replays make where containers are handed back: an `Answer`, and the other leaves."""
    if not any(isinstance(leaf, Back) for leaf in leaves):
        return structure, leaves
    writer, others, names = Writer(), list[Any](), list[str]()
    for leaf in leaves:
        if isinstance(leaf, Back):
            names.append(leaf.expression)
            writer.constants.update(leaf.space)
        else:
            others.append(leaf)
            names.append(f"made[{len(others)}]")
    result = packing(structure, iter(names), writer.constant)
    put = writer.function("put", None, [f"return {result}"], given=("made", "args", "kwargs"))
    return (tuple, *[None] * (1 + len(others))), [Answer(put), *others]


def answer(made: Any, args: Any, kwargs: Any) -> Any:
    """The result of a replay that made this; other paths of a trace may hand back nothing."""
    if made.__class__ is tuple and made and made[0].__class__ is Answer:
        return made[0].put(made, args, kwargs)
    return made


def with_answer(replay: Any) -> Any:
    """`replay`, which answers with the caller's own containers."""

    def answered(args: Any, kwargs: Any) -> Any:
        made = replay(args, kwargs)
        if made.__class__ is tuple and made and made[0].__class__ is Answer:
            return made[0].put(made, args, kwargs)
        return made

    return None if replay is None else answered

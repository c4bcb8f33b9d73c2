"""`__torch_function__`: arguments that say themselves what a function does with them.

Note [Asked arguments]
    A class may define `__torch_function__(function, types, args, kwargs)`. Public functions, and
    methods of such tensors, ask it for their result; classes stand before those they inherit from,
    and NotImplemented hands the question on. Tensors proper are never asked: `ASKED` lists the
    classes of tensors that are, and while there are none the question costs one look. Inside the
    inherited answer (`tracer/subclasses.py`) nobody is asked (`state.asking`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any

from .bind import notify, state

ASKED: set[type] = set()  # classes of tensors that users wrote; see Note [Asked arguments]
UNASKED = object()  # the answer where there was nobody to ask


class Unanswered(TypeError):
    """All that were asked returned NotImplemented; users see a TypeError."""


Unanswered.__name__ = Unanswered.__qualname__ = "TypeError"


def is_asked(kind: type) -> bool:
    """Does the class say what functions do with its instances?"""
    return kind in ASKED or turn(kind) == "first"


def turn(kind: type) -> str:
    """When instances are asked: "first", "late", that is where a function fails, or "never"."""
    function = getattr(kind, "__torch_function__", None)
    return "never" if function is None else getattr(function, "turn", "first")


def in_order(relevant: Iterable[Any]) -> list[Any]:
    """One argument of each class to be asked; classes stand before those they inherit from."""
    found: list[Any] = []
    for arg in relevant:
        kind = type(arg)
        if not is_asked(kind) or any(type(a) is kind for a in found):
            continue
        place = next((k for k, a in enumerate(found) if issubclass(kind, type(a))), len(found))
        found.insert(place, arg)
    return found


def among(args: Iterable[Any]) -> Iterable[Any]:
    """The arguments and, of lists and tuples, their items."""
    for value in args:
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value


def ask(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What the arguments say is the function's result; UNASKED if none of them has a say."""
    if not state.asking:
        return UNASKED
    asked = in_order(among((*args, *kwargs.values())))
    if state.modes:
        return answer_of_mode(function, asked, args, kwargs)
    if not asked:
        return UNASKED
    notify("overridden", type(asked[0]))
    return answer(function, asked, args, kwargs)


def answer_of_mode(function: Any, asked: list[Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What the innermost mode says, and where that is nothing, the arguments."""
    modes = state.modes
    notify("overridden", type(modes[-1]))
    kinds = tuple(map(type, asked))
    state.modes = modes[:-1]  # what it calls is asked of those around it
    try:
        result = modes[-1].__torch_function__(function, kinds, args, kwargs)
    finally:
        state.modes = modes
    return answer(function, asked, args, kwargs) if result is NotImplemented else result


def answer(function: Callable[..., Any], asked: list[Any], args: Any, kwargs: Any) -> Any:
    """The first answer of those to be asked."""
    kinds = tuple(map(type, asked))
    for arg in asked:
        result = arg.__torch_function__(function, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{getattr(function, '__module__', None) or 'torch'}.{function.__name__}"
    raise Unanswered(f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers "
                     f"returned NotImplemented: no implementation found for '{name}' on types that "
                     f"implement __torch_function__: {[*kinds]}")  # fmt: skip


def asking(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `torch` that asks its arguments first."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        answered = ask(called, args, kwargs) if ASKED else UNASKED
        return function(*args, **kwargs) if answered is UNASKED else answered

    called.__module__ = __name__.partition(".")[0]
    return called


@contextmanager
def unasked() -> Any:
    """A block in which no tensor is asked: functions do what they do with plain ones."""
    before = state.asking
    state.asking = False
    try:
        yield
    finally:
        state.asking = before

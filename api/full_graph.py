"""Compiled functions of other kinds: `fullgraph=True`, `backend="eager"`, and generators."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .compile_options import EAGER
from .compiling import CompiledFunction

CUSTOM = "custom op"  # how the reason begins for what is allowed to stay in Python


class FullGraph(CompiledFunction):
    """Raises where a call can't be compiled as one graph.

    That is known when a call was recorded, so the body has run by then, once. The parts of it that
    are custom ops of `torch.library` may stay in Python, as in torch.
    """

    def limit_branches(self, key: Any, recording: Any) -> None:
        recorder = recording.recorder
        if recording.used_of_tensors():
            self.refusals[key] = ("what is computed of item() hands a value to Python; return the "
                                  "tensor and read it outside")  # fmt: skip
        custom = [reason for reason in recording.problems if reason.startswith(CUSTOM)]
        if custom:
            # beside what was seen in the body itself: the rest may be the op's own doing
            own = [reason for reason in recorder.problems if reason not in custom]
            recording.problems[:] = own + custom
        if recorder.branches:
            place = recorder.branches[0].place
            recording.problems.insert(0, f"a loop or branches on values ({place}) choose between "
                                      "graphs; use where() or torch.cond()")  # fmt: skip

    def record_call(self, key: Any, call: Any, *rest: Any) -> Any:
        result = super().record_call(key, call, *rest)
        self.check(key)
        return result

    def run_body(self, key: Any, args: Any, kwargs: Any) -> Any:
        self.check(key)
        return super().run_body(key, args, kwargs)

    def check(self, key: Any) -> None:
        reason = self.refusals.get(key)
        if reason is not None and not reason.startswith(CUSTOM):
            from ._dynamo.exc import Unsupported

            raise Unsupported(f"{self.name} can't be compiled as one graph, which fullgraph=True "
                              f"asks for: {self.with_code(reason)}")  # fmt: skip


class RunEagerly(CompiledFunction):
    """`backend="eager"`: nothing is recorded."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def explain(self) -> str:
        return f"{self.name}:\n  runs its Python body at each call: backend='eager' was asked for"


class RunsLater(RunEagerly):
    """Of a generator or coroutine function, whose call runs nothing.

    The body runs in Python as its values are asked for, in the modes of whoever asks. What tells
    such functions from others (`inspect.isgeneratorfunction`, and so `no_grad()` as a decorator)
    looks for these attributes.
    """

    def __init__(self, function: Any, options: dict[str, Any]):
        super().__init__(function, options)
        plain = unwrapped(function)
        self.__code__ = plain.__code__
        self.__defaults__, self.__kwdefaults__ = plain.__defaults__, plain.__kwdefaults__
        vars(self).setdefault("__name__", plain.__name__)

    def explain(self) -> str:
        return (f"{self.name}:\n  runs its Python body as its values are asked for: it is a "
                "generator or coroutine; compile the functions that it calls")  # fmt: skip


def unwrapped(function: Any) -> Any:
    """The function behind `functools.partial` and the binding to an object."""
    while isinstance(function, functools.partial) or inspect.ismethod(function):
        is_bound = inspect.ismethod(function)
        function = function.__func__ if is_bound else function.func
    return function


def runs_later(function: Any) -> bool:
    """Does a call of it run nothing yet?"""
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return inspect.isfunction(unwrapped(function)) and any(is_one(function) for is_one in kinds)


def kind_of(options: dict[str, Any], function: Any = None) -> type[CompiledFunction]:
    """The class for these options. Whether a body is one graph is found by recording it."""
    if options.get("fullgraph"):
        return FullGraph
    if runs_later(function):
        return RunsLater
    return RunEagerly if options.get("backend") in EAGER else CompiledFunction

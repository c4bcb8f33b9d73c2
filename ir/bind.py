"""The interpreter stack: who runs an op that is called now.

Every op call ends in `state.top(op, inputs, attrs)`. At the bottom lies eager execution (installed
by the tracer); recording, IR building and batching push themselves on top for a while. The stack is
thread-local, so a recording in one thread never sees the ops of another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Interpreter = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class _State(threading.local):
    """Class attributes are every thread's defaults."""

    bottom: Interpreter  # these by `install_bottom`
    top: Interpreter
    marking: Interpreter
    grad_enabled: bool = True
    inference: bool = False
    grad_asked: bool = True  # what the user set; inference mode records nothing whatever it is
    cut: Any = None  # where grad mode was switched off, for errors about missing history
    pushing: bool = False  # is a pull made to be differentiated: the first pass of forward mode?
    asking: bool = True  # may arguments say what functions do? Note [Asked arguments]
    modes: tuple[Any, ...] = ()  # asked before arguments, the last first; Note [Function modes]
    levels: int = 0  # how many transforms of torch.func differentiate the function that runs now
    # The node whose derivative rule runs now: IR building notes it as the origin of what it adds.
    origin: Any = None


state = _State()


class Epoch:
    """Counts changes of Python state that compiled traces rely on.

    These are `module.training`, plain module attributes, hooks, the default dtype and what memory
    tensors have. While it stands still, guards need not look at any of them.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def advance(self) -> None:
        self.value += 1


epoch = Epoch()


def install_bottom(interpreter: Interpreter, marking: Interpreter) -> None:
    """Makes `interpreter` the one that runs ops when nothing else is on the stack.

    `marking` takes its place in inference mode.
    """
    _State.bottom = staticmethod(interpreter)
    _State.top = staticmethod(interpreter)
    _State.marking = staticmethod(marking)


@contextmanager
def interpreting(interpreter: Interpreter) -> Iterator[Interpreter]:
    """Runs the ops of the block by `interpreter`; the previous one returns at the end."""
    previous = state.top
    state.top = interpreter
    try:
        yield interpreter
    finally:
        state.top = previous


@contextmanager
def grad_mode(enabled: bool) -> Iterator[None]:
    """Whether derivative rules of the block must be differentiable themselves."""
    previous = state.grad_enabled
    state.grad_enabled = enabled
    try:
        yield
    finally:
        state.grad_enabled = previous


def notify(event: str, *facts: Any) -> None:
    """Tells the interpreter on top of the stack something that is not an op, if it listens."""
    if state.top is not state.bottom:
        watcher = getattr(state.top, event, None)
        if watcher is not None:
            watcher(*facts)


def casting() -> bool:
    """Does the interpreter on top cast operands itself, so that their dtypes may differ?"""
    return getattr(state.top, "casts", False)

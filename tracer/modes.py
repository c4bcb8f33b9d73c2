"""Grad mode and inference mode: contexts, decorators, nested, thread-local."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from ..ir.bind import state
from ..ir.places import user_place


class _ModeContext:
    """A context manager that is a decorator as well, also for generators, and is re-entrant."""

    def __call__(self, function: Any) -> Any:
        if inspect.isclass(function):
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return in_mode

    def _wrap_generator(self, function: Any) -> Any:
        """The mode holds while the generator runs, not while its consumer does."""

        @functools.wraps(function)
        def in_mode(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            send, value = generator.send, None
            try:
                while True:
                    try:
                        with self.clone():
                            request = send(value)
                    except StopIteration as stop:
                        return stop.value
                    send = generator.send
                    try:
                        value = yield request
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        send, value = generator.throw, error
            finally:
                generator.close()

        return in_mode

    def clone(self) -> Any:
        return type(self)()


def get_mode() -> tuple[bool, bool, bool, Any]:
    """All of this thread's grad and inference mode, for `restore_mode`."""
    return state.grad_enabled, state.grad_asked, state.inference, state.cut


def restore_mode(mode: tuple[bool, bool, bool, Any]) -> None:
    """Brings back what `get_mode` gave."""
    state.grad_enabled, state.grad_asked, state.inference, state.cut = mode


def set_mode(enabled: bool) -> None:
    """Sets grad mode; in inference mode it is only noted: history is recorded in neither case."""
    state.grad_asked = enabled
    state.grad_enabled = enabled and not state.inference
    if not enabled:  # for errors about missing history
        state.cut = ("no_grad()", user_place())


class set_grad_mode:
    """Grad mode for a block; the library's own context, which notes no place."""

    __slots__ = ("enabled", "previous")

    def __init__(self, enabled: bool):
        self.enabled = enabled

    def __enter__(self) -> None:
        self.previous = state.grad_enabled
        state.grad_enabled = self.enabled

    def __exit__(self, *error: Any) -> None:
        state.grad_enabled = self.previous


class _GradMode(_ModeContext):
    enabled = False

    def __init__(self) -> None:
        self.previous: list[Any] = []

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        if function is None:
            return self
        self.previous = []
        return self(function)  # @no_grad without parentheses

    def __enter__(self) -> None:
        self.previous.append(get_mode())
        set_mode(self.enabled)

    def __exit__(self, *error: Any) -> None:
        restore_mode(self.previous.pop())


class no_grad(_GradMode):
    """Ops in the block record no history."""


class enable_grad(_GradMode):
    """Ops in the block record history, also inside `no_grad`."""

    enabled = True


class set_grad_enabled(_ModeContext):
    """Sets grad mode at once; as a context it restores the previous mode at the end."""

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, "
                f"not {type(mode).__name__}"
            )
        self.previous = get_mode()
        self.mode = mode
        set_mode(mode)

    def __call__(self, function: Any) -> Any:
        restore_mode(self.previous)  # as a decorator it changes nothing now
        return super().__call__(function)

    def __enter__(self) -> None:
        set_mode(self.mode)

    def __exit__(self, *error: Any) -> None:
        restore_mode(self.previous)

    def clone(self) -> Any:
        return set_grad_enabled(self.mode)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class inference_mode(_ModeContext):
    """Like `no_grad`, and results never take part in autograd afterwards."""

    def __init__(self, mode: bool = True):
        self.mode = mode
        self.previous: list[Any] = []

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if isinstance(mode, bool):
            return self
        self.__init__(True)
        return self(mode)

    def __enter__(self) -> None:
        self.previous.append((get_mode(), state.top))
        state.inference = self.mode
        set_mode(not self.mode)
        if state.top is state.bottom or state.top is state.marking:
            state.top = state.marking if self.mode else state.bottom

    def __exit__(self, *error: Any) -> None:
        mode, state.top = self.previous.pop()
        restore_mode(mode)

    def clone(self) -> Any:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Is grad mode on in this thread?"""
    return state.grad_enabled or (state.inference and state.grad_asked)


def is_inference_mode_enabled() -> bool:
    """Is inference mode on in this thread?"""
    return state.inference

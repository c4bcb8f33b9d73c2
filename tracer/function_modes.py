"""`TorchFunctionMode`: an object that is asked what functions do while its block runs.

Note [Function modes]
    A mode is asked before the arguments are, the innermost first, and what it calls itself is asked
    of the modes around it (`ir/overriding.py`). Methods of plain tensors ask nobody, so that they
    cost nothing; while a thread is in a mode the class has the methods of `Asked` in their place
    (Note [Subclasses]), which look for modes of their own thread. Users who look for
    `torch.Tensor.add` meanwhile find the method that modes are shown. An interpreter that hands ops
    on lies on the stack: so nothing takes a short way, and compiled functions run in Python.
"""

from __future__ import annotations

import threading
from typing import Any

from ..ir.bind import state
from ..ir.overriding import ASKED
from .subclasses import asked_class
from .tensor import Tensor, _TensorMeta

_KEPT = {"__doc__", "__hash__", "__module__", "__slots__"}  # of Tensor


class HandingOn:
    """The interpreter below, but not the one that short ways look for."""

    def __init__(self, below: Any):
        self.below = below

    def __call__(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return self.below(op, inputs, attrs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.below, name)


class Switch:
    """Puts asking methods in the place of the plain ones while any thread is in a mode."""

    def __init__(self) -> None:
        self.lock, self.users = threading.Lock(), 0
        self.plain: dict[str, Any] = {}  # what users are shown
        self.before: dict[str, Any] = {}  # what the class itself had

    def on(self) -> None:
        with self.lock:
            self.users += 1
            if self.users > 1:
                return
            asking = {k: v for k, v in vars(asked_class()).items() if k not in _KEPT}
            self.plain = {name: getattr(Tensor, name) for name in asking}
            self.before = {k: v for k, v in vars(Tensor).items() if k in asking}
            for name, method in asking.items():
                type.__setattr__(Tensor, name, method)  # no patch of a user's
            _TensorMeta.__getattribute__ = shown_attribute  # type: ignore[method-assign]
            ASKED.add(TorchFunctionMode)

    def off(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users:
                return
            ASKED.discard(TorchFunctionMode)
            del _TensorMeta.__getattribute__
            for name in self.plain:
                if name in self.before:
                    type.__setattr__(Tensor, name, self.before[name])
                else:
                    type.__delattr__(Tensor, name)


switch = Switch()


def shown_attribute(cls: Any, name: str) -> Any:
    """An attribute of the class `Tensor`, or of one that inherits it, as it is without modes."""
    found = type.__getattribute__(cls, name)
    asked = asked_class()
    if name in switch.plain and found is vars(asked)[name] and not issubclass(cls, asked):
        return switch.plain[name]
    return found


class TorchFunctionMode:
    """with Mode(): its `__torch_function__(func, types, args, kwargs)` gives results of functions.

    Within that method the mode is off, so it may call `func(*args, **kwargs)`.
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        raise NotImplementedError

    def __enter__(self) -> Any:
        switch.on()
        state.modes = (*state.modes, self)
        state.top = HandingOn(state.top)
        return self

    def __exit__(self, *error: Any) -> None:
        state.modes = state.modes[:-1]
        state.top = state.top.below  # type: ignore[attr-defined]
        switch.off()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """The old spelling of `Mode(*args)`."""
        import warnings

        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just "
                      "`with Mode()`", stacklevel=2)  # fmt: skip
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets functions do what they do."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))

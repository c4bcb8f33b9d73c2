"""`torch.jit`: functions run as they are; `torch.compile` is what makes them fast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin
from typing import Final as Final

from . import serialization
from .futures import Future
from .nn.modules.module import Module


class _Save:
    """The method `save` of a scripted module, as an attribute of the module."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, f: Any, **kwargs: Any) -> None:
        save(self.module, f)


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The object itself."""
    if isinstance(obj, Module) and not hasattr(obj, "save"):
        obj.save = _Save(obj)
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function itself."""
    return script(func)


def trace_module(mod: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """The module itself."""
    return script(mod)


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """save(m, f): the whole object as a pickle, so that loading needs its class."""
    serialization.save(m, f)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, **kwargs: Any) -> Any:
    """load(f): what `save` wrote."""
    return serialization.load(f, map_location=map_location, weights_only=False)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """fork(func, *args): the result as a future; `func` runs at once."""
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """wait(future): what `fork` computed."""
    return future.wait()


def isinstance_of(obj: Any, target_type: Any) -> bool:
    """Is `obj` of a class, or a container whose members are, as in `List[int]`?"""
    kind, inside = get_origin(target_type), get_args(target_type)
    if kind is None:
        return isinstance(obj, target_type)
    if kind not in (list, tuple, dict):  # a union
        return any(isinstance_of(obj, one) for one in inside)
    if not isinstance(obj, kind):
        return False
    if isinstance(obj, Mapping):
        return all(isinstance_of(k, inside[0]) and isinstance_of(v, inside[1])
                   for k, v in obj.items())  # fmt: skip
    if kind is tuple:
        return len(obj) == len(inside) and all(map(isinstance_of, obj, inside))
    return all(isinstance_of(item, inside[0]) for item in obj)


def _as_it_is(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function itself, with or without arguments to the decorator."""
    return function if callable(function) else lambda decorated: decorated


ignore = unused = export = script_method = interface = _as_it_is


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """False."""
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


script_if_tracing = optimize_for_inference = freeze = _as_it_is


class ScriptModule(Module):
    """A module; those that `script` is given stay what they are."""


class ScriptFunction:
    """No function is one."""


class TracerWarning(Warning):
    """Never given: nothing is traced."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing to do."""


class Attribute:
    """Attribute(value, type): a value with the type that TorchScript should give it."""

    def __init__(self, value: Any, type: Any) -> None:
        self.value, self.type = value, type


def __getattr__(name: str) -> Any:
    if name == "isinstance":  # a name that this module itself uses for Python's
        return isinstance_of
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

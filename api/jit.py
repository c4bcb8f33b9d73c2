"""`torch.jit`: functions run as they are; `torch.compile` is what makes them fast."""

from __future__ import annotations

from typing import Any
from typing import Final as Final

from .nn.modules.module import Module


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The object itself."""
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function itself."""
    return func


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

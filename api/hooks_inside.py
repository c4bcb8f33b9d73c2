"""Hooks of tensors from outside that backward runs inside a compiled function.

Note [Hooks inside]
    They are part of the body, though no code of it names them. So what they read is guarded as
    what the body reads, from the recording on that follows the one which saw them run; and where
    one may do more than compute, the body runs in Python at every call.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from .custom_backwards import can_change
from .environment import Environment
from .plain import is_library
from .quiet_code import is_quiet

LOUD = "a hook that backward runs inside may do more than compute; call backward outside"
ALWAYS_NEW = "hooks that backward runs inside are others at each call; register them once, outside"
NEW = "a hook that backward runs inside reads values of Python's; later calls compare them"
MAX_ROUNDS = 8  # recordings of a function that saw new hooks


class HooksInside:
    """The hooks that were seen to run inside a function, and read what may change."""

    def __init__(self) -> None:
        self.known: list[Any] = []
        self.rounds = 0

    def problem(self, hooks: Sequence[Any]) -> str:
        """What stands against replaying a call in which these ran."""
        if not all(map(only_computes, hooks)):
            return LOUD
        known = {id(hook) for hook in self.known}
        new = [hook for hook in dict.fromkeys(hooks) if id(hook) not in known
               and can_change(Environment(hook, []))]  # fmt: skip
        if not new:
            return ""
        self.rounds += 1
        if self.rounds > MAX_ROUNDS:
            return ALWAYS_NEW
        self.known += new
        return NEW


def only_computes(hook: Any) -> bool:
    """Is a hook a function that leaves nothing behind but through tensors it is given?"""
    if not isinstance(hook, types.FunctionType):
        return is_library(getattr(type(hook), "__module__", "") or "")
    return is_quiet(hook)

"""Parts of a compiled body that stay in Python: `disable(fn)`, `graph_break()`, custom ops.

Note [Left to Python]
    Such a part runs as eager runs it, at every call. A recording around it learns that it can't be
    replayed; the body then runs at each call, and what lies before and after the part is postponed
    and compiled (`bodies.py`). What is pending is computed before the part begins.
"""

from __future__ import annotations

import functools
from typing import Any

from .compiling import CompiledFunction
from .ir.bind import state
from .ir.dims import plain_values
from .pytree import flatten, unflatten
from .tracer.deferral import Deferral
from .tracer.recorder import Recorder
from .tracer.scalars import RunTimeNumber


class left_to_python:
    """The block runs eagerly; a recording around it gets the reason. See Note [Left to Python]."""

    def __init__(self, reason: str):
        self.reason = reason

    def __enter__(self) -> None:
        self.top = top = state.top
        if isinstance(top, Deferral):
            top.settle()
        else:
            tell_below(top, self.reason)
        if isinstance(top, Recorder | Deferral):
            state.top = state.marking if state.inference else state.bottom

    def __exit__(self, *error: Any) -> None:
        state.top = self.top


def tell_below(top: Any, reason: str) -> None:
    """A recording may lie below the levels of vmap, whose ops go on through them."""
    while not isinstance(top, Recorder) and hasattr(top, "below"):
        top = top.below
    if isinstance(top, Recorder):
        top.refuse(reason)


def plain_arguments(args: Any) -> Any:
    """Arguments as the caller of a recording gave them: its numbers and sizes as Python's."""
    if not isinstance(state.top, Recorder):
        return args
    leaves: list[Any] = []
    structure = flatten(args, leaves)
    plain = [x._array.item() if isinstance(x, RunTimeNumber) else plain_values(x) for x in leaves]
    if all(a is b for a, b in zip(leaves, plain)):
        return args
    return unflatten(structure, iter(plain))


def graph_break(msg: str = "") -> None:
    """graph_break(): what is before it and what is after it are compiled apart."""
    with left_to_python(f"graph_break() is called{': ' * bool(msg)}{msg}"):
        pass


def original(fn: Any) -> Any:
    """The function behind a compiled or disabled one, the module behind a compiled one."""
    while True:
        if isinstance(fn, CompiledFunction):
            fn = fn.function
        elif "_orig_mod" in getattr(fn, "_modules", ()):
            fn = fn._modules["_orig_mod"]
        else:
            return fn


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """disable(fn): the function, never compiled: compiled ones that call it run it in Python.

    With `recursive=False` what `fn` calls is still compiled as part of a compiled caller.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    fn = original(fn)
    if not callable(fn):
        raise AssertionError(f"A callable function is expected, but {type(fn)} is provided.")
    if not recursive:
        return fn
    if hasattr(fn, "_parameters") and hasattr(fn, "_modules"):
        from .compiled_module import DisabledModule

        return DisabledModule(fn, disabled(fn, reason))
    if isinstance(fn, type):
        fn.__init__ = disabled(fn.__init__, reason)  # type: ignore[misc]
        return fn
    return disabled(fn, reason)


def disabled(fn: Any, reason: str | None) -> Any:
    """`fn` left to Python."""
    name = getattr(fn, "__qualname__", type(fn).__name__)
    why = f"{name} is disabled for compilation{f', {reason}' if reason else ''}"

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = plain_arguments((args, kwargs))
        with left_to_python(why):
            return fn(*args, **kwargs)

    run._torchdynamo_disable = True  # type: ignore[attr-defined]
    return run

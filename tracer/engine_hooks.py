"""Hooks that run on the way of a backward, and anomaly mode's checks.

Their order is told in engine.py, Note [Order of hooks].
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..ir.bind import notify
from ..ir.places import describe_place
from .accumulate import store_retained
from .tape import AccumulateGrad, Node
from .tensor import Tensor


def padded(node: Node, slots: list[Any]) -> list[Any]:
    """One entry per output of the node, None where no gradient arrived."""
    missing = len(node.output_types()) - len(slots)
    return slots + [None] * missing if missing > 0 else slots


def tensor_hooks(node: Node, slots: list[Any]) -> list[Any]:
    """Hooks of the tensors a node gave, then the gradients that are kept."""
    extra = node.extra
    if extra is None:
        return slots
    slots = list(padded(node, slots))
    for number, table in extra.tensor_hooks.items():
        if number < len(slots) and not (node.joins and slots[number] is None):
            slots[number] = run_tensor_hooks(table, slots[number])
    for number, references in extra.retained.items():
        for reference in references:
            tensor = reference()
            if tensor is not None and number < len(slots) and slots[number] is not None:
                store_retained(tensor, slots[number])
    return slots


def run_tensor_hooks(table: dict[int, Any], grad: Any) -> Any:
    for hook in list(table.values()):
        result = hook(grad)
        if result is not None:
            check_hook_result(hook, grad, result)
            grad = result
    return grad


def check_hook_result(hook: Any, grad: Any, result: Any) -> None:
    """torch's rules on what a tensor hook may return."""
    name = getattr(hook, "__name__", type(hook).__name__)
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'"
                        + return_instead(hook, "a Tensor or None"))  # fmt: skip
    if grad is None:
        raise RuntimeError("can't replace a None gradient with a non-None value"
                           + return_instead(hook, "None"))  # fmt: skip
    if result.dtype is not grad.dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {grad.type()} got "
                           f"{result.type()})" + return_instead(hook, str(grad.dtype)))  # fmt: skip
    if tuple(result.shape) != tuple(grad.shape):
        raise RuntimeError(f"hook '{name}' has changed the size of value"
                           + return_instead(hook, f"a {list(grad.shape)}"))  # fmt: skip


def return_instead(hook: Any, wanted: str) -> str:
    """What the user shall change, and where."""
    code = getattr(hook, "__code__", None)
    place = "" if code is None else f" at {code.co_filename}:{code.co_firstlineno}"
    return f"; return {wanted} from the hook{place}"


def tell_of_hooks(node: Any) -> None:
    """A recording is told of the functions that run with a node."""
    extra = node.extra
    tables = [] if extra is None else [extra.prehooks, extra.posthooks,
                                       *extra.tensor_hooks.values()]  # fmt: skip
    if isinstance(node, AccumulateGrad) and node.variable._leaf is not None:
        facts = node.variable._leaf
        tables += [facts.hooks or {}, facts.post_hooks or {}]
    for table in tables:
        for hook in table.values():
            notify("hook_runs", hook)


def run_posthooks(node: Node, results: list[Any], slots: list[Any]) -> list[Any]:
    inputs = tuple(results)
    for hook in list(node.extra.posthooks.values()):
        changed = hook(inputs, tuple(slots))
        if changed is not None:
            inputs = checked_tuple(hook, changed, len(inputs))
    return list(inputs)


def checked_tuple(hook: Any, changed: Any, count: int) -> tuple[Any, ...]:
    """What a node's hook returned, which must be a tuple of as many gradients as it got."""
    if not isinstance(changed, tuple):
        if count != 1 or not isinstance(changed, Tensor):
            raise TypeError(f"expected tuple, but hook returned '{type(changed).__name__}'"
                            + return_instead(hook, f"{count} gradients or None"))  # fmt: skip
        changed = (changed,)
    if len(changed) != count:
        name = getattr(hook, "__name__", "hook")
        raise RuntimeError(f"hook '{name}' has returned an incorrect number of values (got "
                           f"{len(changed)}, but expected {count})"
                           + return_instead(hook, "as many as it takes"))  # fmt: skip
    return changed


# --- anomaly mode --------------------------------------------------------------------------------


def check_nan(node: Node, results: Any) -> None:
    for position, grad in enumerate(results):
        if grad is not None and bool(grad.isnan().any()):
            text = f"Function '{node.name()}' returned nan values in its {position}th output."
            warn_of(node)
            raise RuntimeError(f"{text} The forward call was at {describe_place(node.place)}.")


def is_told(error: Exception) -> bool:
    """Was it said which node failed? So it is where a compiled node ran op by op."""
    return any(note.startswith("Error detected in") for note in getattr(error, "__notes__", ()))


def warn_of(node: Node) -> None:
    """Tells where the forward call of a failing node was, as torch does, by a warning."""
    stack = node.extra.metadata.get("traceback_") if node.extra is not None else None
    trace = "".join(stack) if stack else f"  {describe_place(node.place)}\n"
    warnings.warn(f"Error detected in {node.name()}. Traceback of forward call that caused the "
                  f"error:\n{trace}", UserWarning, stacklevel=2)  # fmt: skip


@contextmanager
def noting(node: Node) -> Iterator[None]:
    """Errors of the ops that a node stands for say where these were called together."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "add_note"):
            error.add_note(f"It is part of {node.name()}: that call was at "
                           f"{describe_place(node.place)}")  # fmt: skip
        raise


def note_forward(error: Exception, node: Node) -> None:
    """Adds to an error where the user called what the node differentiates; since Python 3.11."""
    if node.place is not None and hasattr(error, "add_note") and not is_told(error):
        error.add_note(f"Error detected in {node.name()}: its forward call was at "
                       f"{describe_place(node.place)}")  # fmt: skip

"""Hook handles, and hooks on saved values."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

from ..ir.bind import epoch

_ids = itertools.count()


class _Hooks(threading.local):
    """The stack of `saved_tensors_hooks` of this thread."""

    def __init__(self) -> None:
        self.saved: list[tuple[Any, Any]] = []
        self.disabled: str | None = None


active = _Hooks()


class RemovableHandle:
    """Returned by `register_*hook`; `remove()` takes the hook away. Also a context manager."""

    def __init__(self, table: dict[int, Any], hook: Any):
        self.id = next(_ids)
        self._table = table
        table[self.id] = hook
        epoch.advance()  # compiled traces look at hooks again

    def remove(self) -> None:
        self._table.pop(self.id, None)
        epoch.advance()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


class saved_tensors_hooks:
    """Values saved in the block go through `pack`, and through `unpack` when backward wants them."""

    def __init__(self, pack_hook: Any, unpack_hook: Any):
        self.pair = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        if active.disabled is not None:
            raise RuntimeError(active.disabled)
        active.saved.append(self.pair)

    def __exit__(self, *error: Any) -> None:
        active.saved.pop()


class disable_saved_tensors_hooks:
    """Refuses `saved_tensors_hooks` in the block, with the given message."""

    def __init__(self, error_message: str):
        self.message = error_message

    def __enter__(self) -> None:
        if active.saved:
            raise RuntimeError(self.message)
        self.previous, active.disabled = active.disabled, self.message

    def __exit__(self, *error: Any) -> None:
        active.disabled = self.previous


class save_on_cpu(saved_tensors_hooks):
    """Everything is on the CPU already: values are copied when saved and handed back as they are."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda tensor: tensor.detach().clone(), lambda tensor: tensor)


def register_multi_grad_hook(tensors: Any, fn: Any, *, mode: str = "all") -> Any:
    """Calls `fn` once the gradients of all (or any) of `tensors` are there in a backward."""
    tensors = tuple(tensors)
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    seen: dict[int, list[Any]] = {}
    lock = threading.Lock()

    def hook_of(position: int) -> Any:
        def hook(grad: Any) -> None:
            from .engine import current_run

            run = current_run()
            with lock:
                grads = seen.setdefault(run.id, [0, [None] * len(tensors)])
                grads[0] += 1
                grads[1][position] = grad
                count, values = grads
                expected = run.expected(tensors)
            if mode == "all" and count == expected:
                seen.pop(run.id, None)
                fn(values)
            elif mode == "any" and count == 1:
                fn(grad)

        return hook

    handles = [tensor.register_hook(hook_of(k)) for k, tensor in enumerate(tensors)]
    return _Handles(handles)


class _Handles:
    def __init__(self, handles: list[Any]):
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def weak(value: Any) -> Any:
    return weakref.ref(value)

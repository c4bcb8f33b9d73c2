"""Hook handles, and hooks on saved values."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from ..ir.bind import epoch, notify

_ids = itertools.count()


class _Hooks(threading.local):
    """The stack of `saved_tensors_hooks` of this thread."""

    def __init__(self) -> None:
        self.saved: list[tuple[Any, Any]] = []
        self.disabled: str | None = None


active = _Hooks()


class _Uses:
    """How many `saved_tensors_hooks` are in force, in all threads; and anomaly mode, as one."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


uses = _Uses()


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
    """Values saved in the block go through `pack`, and `unpack` when backward wants them."""

    keeps = False  # do they always hand back what they were given?

    def __init__(self, pack_hook: Any, unpack_hook: Any):
        self.pair = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        if active.disabled is not None:
            raise RuntimeError(active.disabled)
        notify("packing", self.keeps)
        active.saved.append(self.pair)
        uses.value += 1

    def __exit__(self, *error: Any) -> None:
        active.saved.pop()
        uses.value -= 1


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
    """All is on the CPU already: values are copied when saved and handed back as they are."""

    keeps = True

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda tensor: tensor.detach().clone(), lambda tensor: tensor)


def register_multi_grad_hook(tensors: Any, fn: Any, *, mode: str = "all") -> Any:
    """Calls `fn` once the gradients of all (or any) of `tensors` are there in a backward."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    lock = threading.Lock()
    seen: dict[int, list[Any]] = {}  # by run: how many arrived, of how many, the gradients

    def first(run: Any) -> list[Any]:
        from .eager import history

        expected = sum(run.will_run(history(t)[0]) for t in tensors)
        return [0, expected, [None] * len(tensors)]

    def hook_of(position: int) -> Any:
        def hook(grad: Any) -> None:
            from .engine import current

            run = current.run
            with lock:
                if run.id not in seen:
                    seen[run.id] = first(run)
                entry = seen[run.id]
                entry[0] += 1
                entry[2][position] = grad
            if entry[0] == entry[1]:
                fn(seen.pop(run.id)[2])

        return hook

    def hook_once(grad: Any) -> None:
        from .engine import current

        with lock:
            done = current.run.id in seen
            seen[current.run.id] = []
        if not done:
            fn(grad)

    if mode == "all":
        handles = [tensor.register_hook(hook_of(k)) for k, tensor in enumerate(tensors)]
    else:
        handles = [tensor.register_hook(hook_once) for tensor in tensors if tensor.requires_grad]
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

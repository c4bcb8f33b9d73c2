"""`allow_mutation_on_saved_tensors`: what backward needs is copied before it is written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.bind import state
from .hooks import saved_tensors_hooks
from .readers import readers, reads_later
from .storage import owner_of
from .tensor import Tensor

_OUTSIDE = ("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which "
            "the graph was originally recorded.")  # fmt: skip


class _Handle:
    """Stands in a node for a value that it saved."""

    __slots__ = ("__weakref__",)


class SavedValues:
    """What was saved in the block: as it is, or copied because its memory was written since."""

    is_open = False  # is there a block now? They do not nest

    def __init__(self) -> None:
        self.original: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()
        self.cloned: WeakKeyDictionary[_Handle, Tensor] = WeakKeyDictionary()

    def pack(self, tensor: Tensor) -> _Handle:
        """Keeps the tensor without its history, which may hold the node that saves it."""
        handle = _Handle()
        self.original[handle] = tensor.detach()
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """The value as it was when it was saved."""
        found = self.cloned.get(handle)
        found = self.original.get(handle) if found is None else found
        if found is None or not SavedValues.is_open:
            raise AssertionError(_OUTSIDE)
        return found

    def before_write(self, owner: Any) -> None:
        """Memory is about to be written: copies what was saved of it (`readers.py`)."""
        for handle, tensor in list(self.original.items()):
            if owner_of(tensor._array) is owner:
                self.cloned[handle] = tensor._twin()
                self.cloned[handle]._array = tensor._array.copy()
                self.cloned[handle]._storage = None
                del self.original[handle]

    before_exposure = before_write  # NumPy's users tell nobody

    def clear(self) -> None:
        """Lets go of everything."""
        self.original.clear()
        self.cloned.clear()


class PushedValues(SavedValues):
    """What a function saved that forward mode differentiates, which may write over anything.

    Its nodes may be pulled at any later time: they hold this by their hooks.
    """

    def unpack(self, handle: _Handle) -> Tensor:
        found = self.cloned.get(handle)
        return self.original[handle] if found is None else found


class _Keeping(saved_tensors_hooks):
    keeps = True


@contextlib.contextmanager
def values_kept() -> Iterator[None]:
    """A block in which tensors that nodes save may be written; the nodes find what they saved.

    Recordings and batches save values of their own kinds; they check for writes as ever.
    """
    if state.top is not state.bottom:
        yield
        return
    values = PushedValues()
    reads_later(values)
    with _Keeping(values.pack, values.unpack):
        yield


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[SavedValues]:
    """A block in which tensors that backward needs may be written; it must run there as well.

    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = torch.ones(2, requires_grad=True)
    ...     y = x.clone()
    ...     loss = (y ** 2).sum()
    ...     y.sin_()
    ...     loss.backward()
    """
    if SavedValues.is_open:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    values = SavedValues()
    reference = reads_later(values)
    SavedValues.is_open = True
    try:
        with saved_tensors_hooks(values.pack, values.unpack):
            yield values
    finally:
        SavedValues.is_open = False
        readers.discard(reference)
        values.clear()

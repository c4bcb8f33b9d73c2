"""Tensors whose elements are not there yet.

Note [Pending tensors]
    A pending tensor has its memory, so shape, strides, storage, views and history are as ever; only
    the elements come later. Its class is a twin of its own class, in which reading `_array` makes
    the owner compute first (`settle`) and gives the tensor its class back. So nobody can see
    elements that are not there, whatever code it is. While the owner itself looks at facts only,
    `facts` is set and `_array` is given as it is.
"""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import numpy as np

from ..ir.types import DType
from .facts import Size
from .storage import Storage
from .tensor import Tensor

_slot: Any = Tensor.__dict__["_array"]
memory_of, set_memory = _slot.__get__, _slot.__set__


class Pending:
    """What a pending tensor's class has before its own; see Note [Pending tensors]."""

    __slots__ = ()
    owner: Any = None
    classes: dict[type, type]

    @property
    def _array(self) -> np.ndarray:
        owner = self.owner
        if not owner.facts:
            owner.settle()
        return memory_of(self)

    @_array.setter
    def _array(self, array: np.ndarray) -> None:
        self.owner.settle()
        set_memory(self, array)

    # facts that need no elements

    @property
    def shape(self) -> Size:
        return Size(memory_of(self).shape)

    @property
    def ndim(self) -> int:
        return memory_of(self).ndim

    @property
    def _layout(self) -> np.ndarray:
        return memory_of(self)

    @property
    def storage_(self) -> Storage:
        if self._storage is None:
            self._storage = Storage(memory_of(self))
        return self._storage

    def _has_type(self, wanted: Any) -> bool:
        dtype, shape = wanted
        return self.dtype is dtype and memory_of(self).shape == shape

    def _twin(self) -> Tensor:
        twin = self.owner.twin(self)
        twin._storage = self.storage_
        return twin


class Family:
    """The pending classes of one owner at a time; used again, as making classes is slow."""

    free: ClassVar[list[Family]] = []

    def __init__(self) -> None:
        self.base = type("Pending", (Pending,), {"__slots__": ()})
        self.classes: dict[type, type] = {}
        self.tensor = self.of(Tensor)

    @classmethod
    def lent_to(cls, owner: Any) -> Family:
        family = cls.free.pop() if cls.free else cls()
        family.base.owner = owner
        return family

    def give_back(self) -> None:
        self.base.owner = None
        self.free.append(self)

    def of(self, kind: type) -> type:
        """The pending twin of a tensor class."""
        found = self.classes.get(kind)
        if found is None:
            facts = {"__slots__": (), "__module__": kind.__module__}
            found = self.classes[kind] = type(kind)(kind.__name__, (self.base, kind), facts)
        return found

    def wrap(self, array: np.ndarray, dtype: DType) -> Tensor:
        """A pending tensor on memory."""
        self_ = object.__new__(self.tensor)
        set_memory(self_, array)
        self_.dtype = dtype
        self_._requires_grad = False
        self_._storage = self_._node = self_._grad = self_._view = self_._leaf = None
        self_._mark = None
        self_._nr = 0
        return self_


def settled(references: list[weakref.ref[Any]]) -> None:
    """Gives tensors whose elements have come their own class back."""
    for reference in references:
        tensor = reference()
        if isinstance(tensor, Pending):
            tensor.__class__ = Tensor

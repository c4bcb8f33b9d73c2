"""Which tensors from outside a recorded body looked at, and the guards on what it saw of them.

Note [Looks at tensors]
    A tensor that a body computes with is an input of the graph. One may also be looked at without:
    `if self.table.shape[0] < n:`, `p.requires_grad`, `zeros_like(state)`. What lies at that place
    at a later call must then look the same. While the body runs, tensors at places have a class of
    their own, `Unread`: whoever asks for a fact gives them their class back. Those that nobody
    asked may be of any type later, as `self.last = y` leaves behind. Where code can see the class,
    and for parameters, all are taken to be looked at.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

from .class_tests import asks_for_types
from .guards import Guard
from .tracer.eager import PLAIN_CLASSES
from .tracer.tensor import Tensor


def noticed(name: str) -> property:
    """A slot of tensors; whoever reads or sets it gives the tensor its class back."""
    slot = Tensor.__dict__[name]

    def read(self: Any) -> Any:
        self.__class__ = Tensor
        return slot.__get__(self)

    def write(self: Any, value: Any) -> None:
        self.__class__ = Tensor
        slot.__set__(self, value)

    return property(read, write)


class Unread(Tensor):
    """See Note [Looks at tensors]."""

    __slots__ = ()
    _array = noticed("_array")
    _requires_grad = noticed("_requires_grad")
    dtype = noticed("dtype")


Unread.__name__ = Unread.__qualname__ = "Tensor"
PLAIN_CLASSES.add(Unread)
_array = Tensor.__dict__["_array"].__get__


def facts_of(tensor: Tensor) -> Any:
    """What a body can see of a tensor beside its elements, and which no other guard is on."""
    facts = tensor.dtype, tensor.requires_grad  # first: another thread may record with it
    array = _array(tensor)
    return type(tensor), *facts, array.shape, array.strides


class Look(Guard):
    """A tensor that the body looked at, at a place or, without one, always the same.

    Those that are `inputs` of the graph too are watched as such.
    """

    def __init__(self, tensor: Tensor, place: Any, facts: Any, inputs: Collection[int]):
        self.tensor, self.place, self.facts = tensor, place, facts
        self.slots = ("_array", "_requires_grad", "dtype") if id(tensor) not in inputs else ()

    def now(self) -> Any:
        if self.place is not None:
            self.tensor = self.place.read()  # kept, as its slots are watched
        return self.tensor

    def change(self) -> str | None:
        tensor = self.now()
        if not isinstance(tensor, Tensor) or facts_of(tensor) == self.facts:
            return None  # what is no tensor any more is told of by the place
        name = "a tensor" if self.place is None else self.place.name
        return f"{name} is a tensor of another type or layout"

    def words(self, watch: Any) -> Any:
        tensor = self.now()
        return [word for slot in self.slots for word in watch.of_slot(tensor, slot)]


class Looks:
    """The tensors that a body can see, as they were before it ran."""

    def __init__(self, environment: Any):
        found = [(t, place) for place, t in environment.findings.found if isinstance(t, Tensor)]
        known = {id(tensor) for tensor, _ in found}
        others = (t for t in (*environment.keep, *environment.parameters())
                  if isinstance(t, Tensor) and id(t) not in known)  # fmt: skip
        found += [(tensor, None) for tensor in {id(t): t for t in others}.values()]
        self.seen = [(tensor, place, facts_of(tensor)) for tensor, place in found]
        names = environment.names
        tells = names.all or "__class__" in names.known or asks_for_types(environment.functions())
        self.plain = [] if tells else [t for t, place in found
                                       if place is not None and type(t) is Tensor]  # fmt: skip
        self.unread: set[int] = set()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """While the body runs."""
        for tensor in self.plain:
            tensor.__class__ = Unread
        try:
            yield
        finally:
            unread = [tensor for tensor in self.plain if tensor.__class__ is Unread]
            for tensor in unread:
                tensor.__class__ = Tensor
            self.unread = {id(tensor) for tensor in unread}

    def guards(self, inputs: Collection[int]) -> list[Guard]:
        """On those that it looked at; `inputs` are ids of those that the graph reads."""
        return [Look(*seen, inputs) for seen in self.seen if id(seen[0]) not in self.unread]

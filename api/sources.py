"""Where the tensors a trace reads come from at each call, and how its results are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .ir.bind import state
from .ir.dims import at_sizes
from .spent import SpentNode, SpentOps
from .tracer.inplace import look
from .tracer.modes import no_grad
from .tracer.recorded_facts import FACTS
from .tracer.scalars import run_time_number
from .tracer.storage import Storage


class Argument:
    """The leaf at a place among the call's arguments."""

    kind = 0

    def __init__(self, place: int):
        self.place = place
        self.identity = ("argument", place)

    def __call__(self, leaves: Any) -> Any:
        return leaves[self.place]


class Captured:
    """A parameter, buffer or other tensor from outside, bound by identity."""

    kind = 1

    def __init__(self, tensor: Any):
        self.tensor = tensor
        self.identity = ("captured", id(tensor))

    def __call__(self, leaves: Any) -> Any:
        return self.tensor


class Reached:
    """A tensor that the body finds at a place of its own, whichever is there at the call."""

    kind = 2

    def __init__(self, place: Any):
        self.place = place
        self.identity = ("reached", id(place))

    def __call__(self, leaves: Any) -> Any:
        return self.place.read()


class GradOf:
    """The `.grad` that a tensor has at the call."""

    kind = 2

    def __init__(self, owner: Any):
        self.owner = owner

    def __call__(self, leaves: Any) -> Any:
        return self.owner(leaves)._grad


class Number:
    """A Python float: an argument, a hyper-parameter, or one that varies at a place."""

    kind = 2

    def __init__(self, read: Any):
        self.read = read  # Argument, HyperParameter or Placed

    def __call__(self, leaves: Any) -> Any:
        return run_time_number(self.read(leaves))


class HyperParameter:
    """A number in an optimizer's group of parameters, or in a tuple there."""

    def __init__(self, group: dict[str, Any], name: str, index: int | None = None):
        self.group, self.name, self.index = group, name, index
        self.identity = ("hyper-parameter", id(group), name, index)

    def __call__(self, leaves: Any) -> Any:
        value = self.group[self.name]
        return value if self.index is None else value[self.index]


class Placed:
    """A float that the body finds at a place of its own."""

    def __init__(self, place: Any):
        self.place = place
        self.identity = ("placed", id(place.owner), place.name)

    def __call__(self, leaves: Any) -> Any:
        return self.place.read()


class Fact:
    """Something that Python sees of a tensor beside its value; see tracer/recorded_facts.py."""

    def __init__(self, source: Any, name: str):
        self.source, self.name = source, name
        self.identity = ("fact", source.identity, name)

    def __call__(self, leaves: Any) -> Any:
        return FACTS[self.name](self.source(leaves))


class Identities:
    """Which of the tensors that a body may compare by `is` are the same."""

    identity = ("identities",)
    name = "identity"

    def __init__(self, places: list[int], found: list[Any], known: list[Any]):
        self.places, self.found, self.known = places, found, known

    def __call__(self, leaves: Any) -> Any:
        tensors = [leaves[k] for k in self.places] + [place.read() for place in self.found]
        first: dict[int, int] = {}
        for k, tensor in enumerate((*self.known, *tensors)):
            first.setdefault(id(tensor), k)
        return tuple(first[id(tensor)] for tensor in tensors)


def is_same(value: Any, other: Any) -> bool:
    """Is an option (a flag, a string, None) as it was?"""
    return value is other or (value is not None and bool(value == other))


# --- results -------------------------------------------------------------------------------------


class Maker:
    """Makes one leaf of the output at a call."""

    def at(self, sizes: Any) -> Maker:
        """The maker for plain sizes, where this one knows them by formulas."""
        return self

    def know(self, path: Any) -> None:
        """It will be used for this path."""


class Plain(Maker):
    """A Python value: guards hold it still."""

    def __init__(self, value: Any):
        self.value = value

    def __call__(self, context: Any) -> Any:
        return self.value

    def at(self, sizes: Any) -> Maker:
        return Plain(at_sizes(self.value, sizes))


class Given(Maker):
    """A tensor from outside, handed back."""

    def __init__(self, source: Any):
        self.source = source

    def __call__(self, context: Any) -> Any:
        return self.source(context.leaves)


class GivenFloat(Maker):
    """A run-time number from outside, as the Python float it stands for."""

    def __init__(self, read: Any):
        self.read = read

    def __call__(self, context: Any) -> Any:
        return float(self.read(context.leaves))


class ComputedFloat(Maker):
    """A computed run-time number as a Python float."""

    def __init__(self, number: int):
        self.number = number

    def __call__(self, context: Any) -> Any:
        return context.results[self.number].item()


@dataclass(frozen=True)
class Counter:
    """A count of writes that `.data` of a memory has beside it: the same for equal numbers."""

    number: int
    version: int
    written: Any

    def give(self, value: Any, context: Any) -> Any:
        """`value`, whose writes are counted there."""
        known = context.counters.get(self.number)
        if known is None:
            root = value.storage_.root
            known = context.counters[self.number] = Storage(root, self.version, self.written)
        value._storage = known
        return value


class ViewOfInput(Maker):
    """A view of a tensor from outside; `origin` is that of eager's View.

    `history`: none where it is a view of a detached tensor, unseen where no_grad() made it.
    """

    def __init__(self, source: Any, chain: Any, history: str, origin: str = "",
                 counter: Counter | None = None):  # fmt: skip
        self.source, self.chain, self.history = source, chain, history
        self.origin, self.counter = origin, counter

    def __call__(self, context: Any) -> Any:
        value = self.of(self.source(context.leaves))
        return value if self.counter is None else self.counter.give(value, context)

    def of(self, base: Any) -> Any:
        """The view of that tensor."""
        if self.history == "none" and (base._requires_grad or not self.chain):
            base = base.detach()
        if not self.chain:
            return base
        return look_from(base, self.chain, self.origin, self.history == "unseen")

    def at(self, sizes: Any) -> Maker:
        chain = at_sizes(self.chain, sizes)
        return ViewOfInput(self.source, chain, self.history, self.origin, self.counter)


def look_from(base: Any, chain: Any, origin: str, unseen: bool = False) -> Any:
    """A view as `look` makes it, which eager made in another mode, or a custom Function."""
    if unseen:
        with no_grad():
            value = look(base, chain)
    else:
        value = look(base, chain)
    if value._view is not None:
        value._view.origin = origin
    return value


class Direct(Maker):
    """The computed result itself, as most results are."""

    def __init__(self, number: int):
        self.number = number

    def __call__(self, context: Any) -> Any:
        return context.results[self.number]


class Whole(Direct):
    """A result that shows all of a tensor with this shape; see Note [Late bases]."""

    def __init__(self, number: int, shape: Any):
        super().__init__(number)
        self.shape = shape

    def __call__(self, context: Any) -> Any:
        value = context.results[self.number]
        value._unseen = self.shape
        return value

    def at(self, sizes: Any) -> Maker:
        return Whole(self.number, at_sizes(self.shape, sizes))


class Converted(Maker):
    """A result handed out as Python's: by item(), tolist(), numpy(), float() or int()."""

    def __init__(self, maker: Any, how: str):
        self.maker, self.how = maker, how

    def __call__(self, context: Any) -> Any:
        return self.of(self.maker(context))

    def of(self, value: Any) -> Any:
        """Python's form of a tensor."""
        return getattr(value, self.how)()

    def at(self, sizes: Any) -> Maker:
        return Converted(self.maker.at(sizes), self.how)


class ComputedView(Maker):
    """A computed result that is a view, or without (usable) history.

    `is_base`: eager's result is no view, though it takes one to show it as eager does.
    `turn`: so it takes one for what the result is a view of, or shares with others.
    """

    def __init__(self, number: int, chain: Any, history: str, is_base: bool = False,
                 origin: str = "", counter: Counter | None = None, turn: Any = ()):  # fmt: skip
        self.number, self.chain, self.history, self.is_base = number, chain, history, is_base
        self.origin, self.counter, self.turn = origin, counter, turn
        self.spent = self.base_spent = None  # see `know`

    def know(self, path: Any) -> None:
        """Where history is spent, it is that of these ops."""
        self.spent = SpentOps(path, self.number, (*self.turn, *self.chain))
        self.base_spent = SpentOps(path, self.number, self.turn)

    def __call__(self, context: Any) -> Any:
        value = self.of(context.results[self.number], context.leaves)
        return value if self.counter is None else self.counter.give(value, context)

    def of(self, base: Any, leaves: Any = ()) -> Any:
        """The same for a result, in a call with these leaves."""
        if self.turn:
            base = turned(base, self.turn)
        value = base
        if self.chain:
            value = look_from(base, self.chain, self.origin, self.history == "unseen")
        if self.history == "spent" and state.grad_enabled:
            value._node, value._requires_grad = SpentNode(self.spent, leaves), True
            if value is not base and not base._requires_grad:  # a view's has history, too
                base._node, base._requires_grad = SpentNode(self.base_spent, leaves), True
        elif self.history == "none" and (value._requires_grad or not self.chain):
            value = value.detach()  # another tensor than the result on whose memory it lies
        if self.is_base:
            value._view = None
        return value

    def at(self, sizes: Any) -> Maker:
        chain = at_sizes(self.chain, sizes)
        return ComputedView(self.number, chain, self.history, self.is_base, self.origin,
                            self.counter, self.turn)  # fmt: skip


def turned(result: Any, turn: Any) -> Any:
    """What eager has in the memory of a result that nobody sees: one tensor for all its views."""
    if not hasattr(result, "_unseen"):
        result._unseen = look(result, turn)
        result._unseen._view = None
    return result._unseen


class CustomView(Maker):
    """A view that a custom Function made: it shows its base, with the history of a result."""

    def __init__(self, base: Any, chain: Any, origin: str, number: int):
        self.base, self.chain, self.origin, self.history = base, chain, origin, number

    def __call__(self, context: Any) -> Any:
        base, known = self.base(context), context.results[self.history]
        value = look_from(base.detach(), self.chain, self.origin)
        value._view.base = base
        value._node, value._nr, value._requires_grad = known._node, known._nr, known._requires_grad
        return value

    def at(self, sizes: Any) -> Maker:
        chain = at_sizes(self.chain, sizes)
        return CustomView(self.base.at(sizes), chain, self.origin, self.history)


class OnTheWay(Maker):
    """A view with the history of a result of its own; see Note [Parts on the way]."""

    def __init__(self, view: Any, number: int):
        self.view, self.own = view, number

    def __call__(self, context: Any) -> Any:
        return self.of(self.view(context), context.results[self.own])

    def of(self, value: Any, known: Any) -> Any:
        """A view with the history of that result."""
        value._node, value._nr, value._requires_grad = known._node, known._nr, known._requires_grad
        return value

    def at(self, sizes: Any) -> Maker:
        return OnTheWay(self.view.at(sizes), self.own)


class Shared(Maker):
    """What another maker makes, once in a call: the same tensor for equal numbers."""

    def __init__(self, number: int, maker: Any):
        self.number, self.maker = number, maker

    def __call__(self, context: Any) -> Any:
        if self.number not in context.shared:
            context.shared[self.number] = self.maker(context)
        return context.shared[self.number]

    def know(self, path: Any) -> None:
        self.maker.know(path)

    def at(self, sizes: Any) -> Maker:
        return Shared(self.number, self.maker.at(sizes))


class ViewOfDetached(Maker):
    """A view of what was detached from a result or input, or made a leaf: a base by itself."""

    def __init__(self, base: Any, chain: Any, origin: str):
        self.base, self.chain, self.origin = base, chain, origin

    def __call__(self, context: Any) -> Any:
        return look_from(self.base(context), self.chain, self.origin)

    def of(self, base: Any) -> Any:
        """The same for what the base was detached from."""
        return look_from(self.base.of(base), self.chain, self.origin)

    def at(self, sizes: Any) -> Maker:
        return ViewOfDetached(self.base.at(sizes), at_sizes(self.chain, sizes), self.origin)


class MadeLeaf(Maker):
    """A leaf that the body made, with the gradient that it got there."""

    def __init__(self, maker: Any, grad: Any):
        self.maker, self.grad = maker, grad

    def __call__(self, context: Any) -> Any:
        leaf = self.maker(context).detach().requires_grad_()
        if self.grad is not None:
            leaf._grad = self.grad(context)
        return leaf

    def at(self, sizes: Any) -> Maker:
        return MadeLeaf(self.maker.at(sizes), None if self.grad is None else self.grad.at(sizes))

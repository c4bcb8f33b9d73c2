"""`.grad` fields in a recording: whose gradient a tensor is, what was read, assigned, changed.

Note [Flags that change]
    `requires_grad` of a tensor from outside may change in the body: gradients that the body takes
    itself are ops like others, so what it needs for them is there, and replay sets the flag as the
    body leaves it. Gradients taken later, of a result with history, would be those of the flags at
    the end: such a body is not replayed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .recorded import Entry, place_text
from .tensor import Tensor


class Flagged(NamedTuple):
    """A tensor from outside whose `requires_grad` was set; see Note [Flags that change]."""

    tensor: Tensor
    before: bool
    place: str


class GradFields:
    """What a recorder notes about `.grad` and `requires_grad`."""

    entries: dict[int, Entry]
    externals: list[Tensor]
    is_argument: Any
    rely_on: Any

    def __init__(self) -> None:
        self.grad_owners: dict[int, Tensor] = {}
        self.known_grads: list[tuple[Tensor, Tensor]] = []  # owners, gradients that are inputs too
        self.grad_assigned: dict[int, Tensor] = {}
        self.grad_changed: dict[int, Tensor] = {}
        self.grad_guards: list[tuple[Any, bool]] = []
        self.guarded: dict[int, Tensor] = {}
        self.flagged: dict[int, Flagged] = {}  # by id

    def grad_read(self, owner: Tensor) -> None:
        """`.grad` of a tensor is looked at: a guard on its being None, and whose it is."""
        if id(owner) in self.grad_changed or self.computed(owner):
            return
        if self.is_argument(owner):
            self.rely_on(owner, "is_leaf")
            self.rely_on(owner, "hooks")
        grad = owner._grad
        if grad is not None and id(grad) not in self.entries:
            self.grad_owners[id(grad)] = owner
        elif grad is not None and not self.computed(grad):
            self.known_grads.append((owner, grad))
        self.guard_grad(owner, grad is None)

    def gradients_read(self) -> list[tuple[Tensor, Tensor]]:
        """Owners, and the gradients that they had before the body changed that."""
        inputs = {id(tensor): tensor for tensor in self.externals}
        owners = self.grad_owners.items()
        return [*self.known_grads, *((o, inputs[key]) for key, o in owners if key in inputs)]

    def guard_grad(self, owner: Tensor, is_none: bool) -> None:
        if id(owner) not in self.guarded:
            self.guarded[id(owner)] = owner
            self.grad_guards.append((owner, is_none))

    def computed(self, tensor: Tensor) -> bool:
        """Did the body itself make the tensor? Then nobody else knows of its `.grad`."""
        entry = self.entries.get(id(tensor))
        return entry is not None and not entry.outside

    def is_made_leaf(self, value: Any) -> bool:
        """Is it a leaf of autograd's graph that the body made?"""
        leaf = isinstance(value, Tensor) and value._requires_grad and value._node is None
        return leaf and self.computed(value)

    def grad_set(self, owner: Tensor) -> None:
        """`.grad` of a tensor was replaced by another tensor or None."""
        if self.computed(owner):
            return
        self.grad_assigned[id(owner)] = owner
        self.grad_changed[id(owner)] = owner

    def flag_set(self, tensor: Tensor) -> None:
        """`requires_grad` of a tensor from outside is about to change."""
        before = Flagged(tensor, tensor._requires_grad, place_text())
        self.flagged.setdefault(id(tensor), before)

    def sparsely_differentiated(self) -> None:
        """A gradient will have some rows only; see Note [Sparse gradients]."""
        self.refuse("an embedding with sparse=True has sparse gradients; leave it dense")

"""Shapes and layouts, as a recording sees them.

A tensor whose shape changes in place (`t_()`, `squeeze_()` ...) becomes another view of the same
memory: its chain gets a step, nothing is written.
"""

from __future__ import annotations

from typing import Any

from ..ir.bind import state
from ..ir.graph import Var
from .recorded import Entry
from .tensor import Tensor


class Shapes:
    """The part of a recorder that follows them."""

    computed: Any
    enter: Any
    entries: dict[int, Entry]
    emit: Any
    needing: set[Var]

    def follows(self, target: Tensor) -> bool:
        """Can a graph say it? Not of tensors from outside, whose shape would change there too."""
        return self.computed(target) and (state.grad_enabled or not target._requires_grad)

    def looked_anew(self, target: Tensor, result: Tensor) -> None:
        """`target` now shows its memory as `result`, a view of what it was, does."""
        entry, view = self.entries[id(target)], self.entries[id(result)]
        chain = (*entry.chain, *view.chain)
        self.enter(Entry(target, entry.memory, chain, view.var, entry.cut))

    def turned(self, var: Var, order: tuple[int, ...]) -> Var:
        """The same with its dimensions in another order."""
        result: Var = self.emit("permute", var, dims=order)
        if var in self.needing:
            self.needing.add(result)
        return result

"""What Python sees of values in a recording: their truth, their numbers.

It must see the real ones at every call, but for those computed of Python data alone: they are the
same again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.dims import has_dims
from ..ir.graph import Var
from ..ir.op import Op
from .recorded import Branch, current_place, place_text
from .scalars import RunTimeNumber
from .tensor import Tensor

COPIES = {"item", "tolist", "int", "float", "complex", "index", "bool"}


class Looks:
    """The part of a recorder that notes them."""

    var_of: Any
    builder: Any
    branches: list[Branch]
    problems: list[str]
    on_handed: Any
    questioned: Any
    is_arithmetic: Any
    number_of: Any
    used_numbers: list[Any]

    def __init__(self) -> None:
        super().__init__()
        self.fixed: set[Var] = set()
        self.answered: Tensor | None = None  # whose float was no look; see `questioned`

    def note_fixed(self, op: Op, inputs: Any, operands: Sequence[Any], results: Sequence[Var],
                   attrs: dict[str, Any]) -> None:  # fmt: skip
        """An op ran: are its results fixed? Numbers are, but for those known at run time only."""
        known = all(var in self.fixed if isinstance(value, Tensor) else not has_dims(value)
                    for value, var in zip(inputs, operands))  # fmt: skip
        if known and not op.random and not has_dims(tuple(attrs.values())):
            self.fixed.update(results)

    def shows_fixed(self, tensor: Tensor, how: str) -> bool:
        """Does Python get a copy of a fixed value, by `item()`, `__int__` and the like?"""
        return how.strip("_()") in COPIES and self.var_of(tensor) in self.fixed

    def branched(self, tensor: Tensor, outcome: Any) -> None:
        """Python asked for the truth of a value."""
        if self.shows_fixed(tensor, "bool"):
            return
        var = self.var_of(tensor)
        self.branches.append(Branch(var, outcome, len(self.builder.nodes), current_place()))

    def escaped(self, tensor: Tensor, how: str) -> None:
        """Python looked at a value: it must see the real one at every call."""
        if isinstance(tensor, RunTimeNumber):
            if not (how == "float()" and self.questioned(tensor)):
                self.used_numbers.append(tensor)
            return
        if self.shows_fixed(tensor, how):
            return
        if how == "float()" and self.questioned(tensor):
            self.answered = tensor
            return
        self.problems.append(f"{how} ({place_text()}) hands a value to Python; return the tensor "
                             "and read it outside")  # fmt: skip

    def handed(self, tensor: Tensor, how: str, value: Any) -> Any:
        """Python gets `value`: no problem where it only goes into what the body returns. Where it
        only goes into arithmetic, gives the run-time number that it gets instead."""
        if self.on_handed is None or isinstance(tensor, RunTimeNumber):
            return None
        if tensor is self.answered:
            self.answered = None
            return None
        if self.shows_fixed(tensor, how):
            return None
        if self.on_handed(tensor, how, value, self.problems[-1]):
            self.problems.pop()
        elif how == "item" and type(value) is float and self.is_arithmetic(how):
            self.problems.pop()
            return self.number_of(tensor, value)
        return None

"""What Python sees of values in a recording: their truth, their numbers.

It must see the real ones at every call, but for those computed of Python data alone: they are the
same again.
"""

from __future__ import annotations

import itertools
import sys
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
        self.asks_for_nodes = False  # does the body ask which op made a value, or hook it?
        self.body_code: Any = None  # of the function that is recorded
        self.escapes: dict[str, tuple[int, ...] | None] = {}  # by problem: where the body was
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
        if how == "printing" and tensor._node is not None:
            self.asks_for_nodes = True
        self.leave(f"{how} ({place_text()}) hands a value to Python; return the tensor and read it "
                   "outside")  # fmt: skip

    def leave(self, problem: str) -> None:
        """What the body does now stays in Python: `escapes` says where that is."""
        self.problems.append(problem)
        self.escapes[problem] = self.place_in_body()

    def place_in_body(self) -> tuple[int, ...] | None:
        """Where the body is now, whichever functions it called: lines and columns of a call, from
        its beginning to its end."""
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code is not self.body_code:
            frame = frame.f_back
        if frame is None or not hasattr(frame.f_code, "co_positions"):  # Python 3.10
            return None
        places = frame.f_code.co_positions()
        first, last, begin, end = next(itertools.islice(places, frame.f_lasti // 2, None))
        place = first, begin, last, end
        return None if None in place else place

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

"""Checks in a recording: of elements, as that probabilities lie between 0 and 1, and of writes.

Note [Repeated checks]
    A function of the library may look at the elements of an operand before its op runs, and raise.
    The graph looks at those of each call: the result of the op is `require`d to come of elements
    that none is wrong of. Where one is, native code stops, and the body runs and raises, see Note
    [Errors in native code]. It is the result that passes through the check, since that is smaller
    than the operand, and nothing of backward depends on it.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

from ..ir.bind import interpreting
from ..ir.builder import Symbol
from ..ir.graph import Var
from ..ir.op import Op
from ..ir.ops.gathering import require
from .recorded import current_place
from .tensor import Tensor


class Checks:
    """What a recorder knows of them."""

    builder: Any
    fixed: set[Var]
    numbers: dict[int, int]
    var_of: Any

    def __init__(self) -> None:
        super().__init__()
        self.written_storages: list[tuple[Any, int]] = []  # and how many ops there were then
        self.wrong: list[Any] = []  # is there an element that the next op must not get?

    def wrote_unseen(self, node: Any, storage: Any) -> bool:
        """Was memory written after a node had saved it, by a tensor with a version of its own?"""
        saved = self.numbers.get(id(node), -1)
        return any(other.root is storage.root and other is not storage and at > saved
                   for other, at in self.written_storages)  # fmt: skip

    def elements_checked(self, check: Any, value: Tensor, facts: Any) -> None:
        """A function looks at the elements of an operand; see Note [Repeated checks]."""
        wrong, var = getattr(check, "wrong", None), self.var_of(value)
        if wrong is None or var in self.fixed:
            return
        self.builder.place = current_place()
        with interpreting(self.builder):
            self.wrong.append(wrong(Symbol(var), *facts).any())

    def checked(self, op: Op, var: Var) -> Var:
        """What an op computed, if the elements that were looked at before it are right."""
        if op.is_view or not self.wrong:
            return var
        flags, self.wrong = self.wrong, []
        with interpreting(self.builder):
            wrong = functools.reduce(operator.or_, flags)
            return require(Symbol(var), wrong).var  # type: ignore[no-any-return]

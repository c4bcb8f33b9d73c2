"""Facts of tensors in a recording, beside values, that Python may look at and that can differ.

Those of a tensor from outside are compared at each call, or the body runs in Python where they
differ at nearly all (versions, addresses, identities). What the library itself asks for does not
count, but for what backward into a leaf relies on.
"""

from __future__ import annotations

import sys
from typing import Any

from ..ir.places import is_ours
from .recorded import place_text
from .tensor import Tensor
from .unseen import is_seen_as_view

FACTS: dict[str, Any] = {
    "is_leaf": lambda tensor: tensor._node is None,
    "_is_view": lambda tensor: is_seen_as_view(tensor),
    "is_inference": lambda tensor: tensor._mark == "inference",
    "retains_grad": lambda tensor: "_retains" in tensor.__dict__,
    "is_conj": lambda tensor: "_conjugated" in tensor.__dict__,
    "storage_offset": lambda tensor: tensor.storage_offset(),
    "hooks": lambda tensor: hooks_of(tensor),
    "identity": id,
}
STEADY = {"is_leaf", "_is_view", "is_inference", "hooks", "identity"}  # of one and the same tensor
IF_NONE = {"grad_fn": "is_leaf", "_base": "_is_view"}


def hooks_of(tensor: Tensor) -> Any:
    """Which hooks a leaf has."""
    facts = tensor._leaf
    if facts is None:
        return (), ()
    node = None if facts.accumulator is None else facts.accumulator()
    extra = None if node is None else node.extra
    of_node = () if extra is None else (*extra.prehooks, *extra.posthooks)
    return tuple(facts.hooks or ()), (*(facts.post_hooks or ()), *of_node)


class FactsSeen:
    """The part of a recorder that notes them."""

    asks_for_nodes: bool
    computed: Any
    externals: list[Tensor]
    problems: list[str]
    is_argument: Any = staticmethod(lambda tensor: False)

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[tuple[int, str], tuple[Tensor, str, Any]] = {}

    def rely_on(self, tensor: Tensor, fact: str) -> None:
        """A fact of a tensor from outside must be the same at replay."""
        if not self.computed(tensor):
            self.facts.setdefault((id(tensor), fact), (tensor, fact, FACTS[fact](tensor)))

    def fact_asked(self, tensor: Tensor, fact: str) -> None:
        """Code asks for a fact."""
        if not asked_by_user():
            return
        self.asks_for_nodes = self.asks_for_nodes or fact == "grad_fn"
        fact = IF_NONE.get(fact, fact) if is_none(tensor, fact) else fact
        if fact in FACTS:
            self.rely_on(tensor, fact)
        elif fact == "data_ptr" or not self.computed(tensor):
            self.problems.append(f"{fact} of a tensor ({place_text()}) differs at each call; pass "
                                 "what the body decides by")  # fmt: skip

    def mark_asked(self, tensor: Tensor, fact: str) -> None:
        """Code asks for a mark that results have or not, as what they are made of has it."""
        made_of = self.externals if self.computed(tensor) else [tensor]
        for outside in made_of:
            if outside.dtype.is_complex:
                self.rely_on(outside, fact)

    def hash_asked(self, tensor: Tensor) -> None:
        """A tensor is looked up in a set or dict: by identity."""
        if not asked_by_user() or self.computed(tensor):
            return
        if self.is_argument(tensor):
            self.problems.append(f"an argument is looked up by its identity ({place_text()}), "
                                 "which differs at each call; use another key")  # fmt: skip
        else:
            self.rely_on(tensor, "identity")


def is_none(tensor: Tensor, fact: str) -> bool:
    return tensor._node is None if fact == "grad_fn" else not is_seen_as_view(tensor)


def asked_by_user() -> bool:
    """Is it the user's code that asks? It called what notified the recorder."""
    return not is_ours(sys._getframe(4).f_code.co_filename)

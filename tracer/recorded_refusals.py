"""What a body may do that no graph can do again: the recording is of no use then, and says why."""

from __future__ import annotations

from typing import Any

from ..ir.places import is_ours
from .recorded import place_text
from .tensor import Tensor


class Refusals:
    """What a recorder was told that it can't keep, or must look at in the end."""

    computed: Any

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.hooks_run: list[Any] = []  # by backward, of what comes from outside

    def refuse(self, reason: str) -> None:
        self.problems.append(f"{reason} ({place_text()})")

    def hooked(self, tensor: Tensor) -> None:
        """A hook was put on a value the body computed: it must run at every backward."""
        if self.computed(tensor):
            self.node_hooked()

    def hook_runs(self, hook: Any) -> None:
        """Backward inside the function runs a hook of a tensor or node from outside."""
        self.hooks_run.append(hook)

    def attribute_missed(self, asking: str) -> None:
        """Code in a file asked a tensor for an attribute that it has not: others may have it."""
        if not is_ours(asking):
            self.refuse("the body looks for attributes that users put on tensors; pass values")

    def node_hooked(self) -> None:
        """As `hooked`: a module's backward hooks sit on nodes."""
        self.asks_for_nodes = True
        self.refuse("a hook or retain_grad() on a value inside the function")

    def overridden(self, kind: type) -> None:
        """`__torch_function__` of a class decides what a function does."""
        self.refuse(
            f"{kind.__name__}.__torch_function__ says what functions do; pass plain tensors"
        )

    def data_replaced(self) -> None:
        """A tensor was given other memory: it gets it at every call."""
        self.refuse("`.data` of a tensor is replaced inside the function; write with copy_()")

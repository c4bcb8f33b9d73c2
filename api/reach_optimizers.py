"""What a body can reach of an optimizer: groups, options, state, and the code of its class.

Numbers among the options of the library's own optimizers are read at each call (`optim/hyper.py`).
Where code of the user's may read them too, as the `step` of an optimizer of theirs does, they are
guarded as the items of any dict are; see Note [Varying floats].
"""

from __future__ import annotations

from typing import Any

from .guards import Attributes, Items, Members, OptimizerState
from .places import Entry
from .tracer.tensor import Tensor


class Own(Attributes):
    """Attributes that code in sight names: a `step` of its own may come between calls."""

    def now(self) -> dict[str, Any]:
        return {k: v for k, v in super().now().items() if is_own(k)}

    def settle(self) -> None:
        pass


def is_own(name: str) -> bool:
    """Groups and state are compared by themselves; other names are the library's."""
    return name not in ("state", "param_groups") and name[0] != "_"


def visit_optimizer(reach: Any, optimizer: Any) -> None:
    """Which groups and parameters it has, and their options; numbers are run-time numbers."""
    from .optim.optimizer import STEP_HOOKS, global_hooks  # loaded: there is one

    reach.optimizers.append(optimizer)
    reach.visit(type(optimizer))
    guard = reach.optimizer_states[id(optimizer)] = OptimizerState(optimizer, reach.names)
    reach.guards += [Own(optimizer, reach.names), Members(optimizer.param_groups), guard]
    own = [optimizer.__dict__.get(name) for name in STEP_HOOKS]
    for table in (*own, *global_hooks):
        if table is not None:
            reach.guards.append(Members(table, "hooks of an optimizer changed"))
            reach.visit_all(table.values())
    for group in optimizer.param_groups:
        reach.guards.append(Members(group["params"]))
        reach.groups += [(group, name, value) for name, value in group.items()
                         if isinstance(value, bool | str | type(None))]  # fmt: skip
        for name, value in group.items():
            if any(isinstance(x, Tensor) for x in (value if type(value) is tuple else (value,))):
                reach.find(Entry(group, name, False), value)  # a rate may be a tensor

    def enter(space: dict[str, Any], name: str, value: Any) -> None:
        if name == "param_groups":
            for group in value:
                enter_options(reach, group)
        elif is_own(name):
            reach.find(Entry(space, name, False), value)

    reach.own(optimizer.__dict__, enter)


def enter_options(reach: Any, group: dict[str, Any]) -> None:
    """The options in a group, which code of the user's may read."""
    reach.guards.append(Items(group, reach.varying.at(group)))
    for name, value in list(group.items()):
        if name not in ("params", "param_names"):
            reach.find(Entry(group, name, True), value)

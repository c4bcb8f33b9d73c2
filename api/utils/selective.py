"""Selective checkpoints: ops whose results are kept, while the others are computed again.

Two interpreters on the stack do it: that of the first run asks the policy and keeps results, that
of the second gives them, with history, in the place of what it would compute. The policy is asked
under names of torch's; see Note [Names of the dispatcher].
"""

from __future__ import annotations

import enum
from collections import defaultdict
from typing import Any

from ..aten import OpOverload, OpOverloadPacket, overload_of
from ..ir.bind import notify, state
from ..tracer.eager import relate
from ..tracer.function_modes import HandingOn
from ..tracer.tensor import Tensor

_RECOMPUTED, _GIVEN = object(), object()
_MISMATCH = ("This can happen if the operations in the checkpointed region are nondeterministic or "
             "depend on global state that changed between forward and backward.")  # fmt: skip


class CheckpointPolicy(enum.Enum):
    """What is to become of an op's results; MUST also for other parts of the system."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told beside the op: its result. It is asked in the first run only."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Run:
    """A context in which ops go through an interpreter of this run."""

    def __init__(self, kept: dict[Any, dict[int, Any]]):
        self.kept = kept

    def __enter__(self) -> None:
        notify("overridden", type(self))
        self.counts: dict[Any, int] = defaultdict(int)
        self.interpreter = state.top = _Watching(self)

    def __exit__(self, *error: Any) -> None:
        state.top = self.interpreter.below

    def place(self, op: Any) -> tuple[OpOverload, int]:
        """The op's name, and how many of the name came before it."""
        name = overload_of(op.name)
        self.counts[name] += 1
        return name, self.counts[name] - 1

    def run(self, below: Any, op: Any, inputs: Any, attrs: Any) -> Any:
        raise NotImplementedError


class _Watching(HandingOn):
    def __init__(self, owner: _Run):
        super().__init__(state.top)
        self.owner = owner

    def __call__(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if op.is_view or op.name in ("clone", "stop_gradient"):  # nothing that was computed
            return self.below(op, inputs, attrs)
        return self.owner.run(self.below, op, inputs, attrs)


class Keeping(_Run):
    """The first run."""

    def __init__(self, policy: Any, kept: dict[Any, dict[int, Any]]):
        super().__init__(kept)
        self.policy = policy

    def run(self, below: Any, op: Any, inputs: Any, attrs: Any) -> Any:
        output = below(op, inputs, attrs)
        name, number = self.place(op)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=output)
        before, state.top = state.top, below  # what the policy computes is no part of the run
        try:
            policy = self.policy(context, name, *inputs, **attrs)
            outputs = output if isinstance(output, tuple) else (output,)
            entry = tuple((out.detach(), out._version) for out in outputs)
        finally:
            state.top = before
        saved = policy in (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
        self.kept[name][number] = entry if saved else _RECOMPUTED
        return output


class Giving(_Run):
    """The second run."""

    def __init__(self, kept: dict[Any, dict[int, Any]], may_be_written: bool):
        super().__init__(kept)
        self.may_be_written = may_be_written

    def run(self, below: Any, op: Any, inputs: Any, attrs: Any) -> Any:
        name, number = self.place(op)
        if name not in self.kept:
            raise RuntimeError(f"{name} encountered during backward but not found in storage. "
                               f"{_MISMATCH}")  # fmt: skip
        entry = self.kept[name].get(number)
        if entry is None:
            raise RuntimeError(f"{name} invocation index {number} encountered during backward but "
                               f"not found in storage. {_MISMATCH}")  # fmt: skip
        if entry is _GIVEN:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        if entry is _RECOMPUTED:
            return below(op, inputs, attrs)
        self.kept[name][number] = _GIVEN
        if not self.may_be_written and any(out._version != version for out, version in entry):
            raise RuntimeError("Tensor cached during selective activation checkpoint has been "
                               "mutated")  # fmt: skip
        outputs = [Tensor._wrap(out._array, out.dtype) for out, _ in entry]
        needs_grad = any(isinstance(value, Tensor) and value.requires_grad for value in inputs)
        relate(op, inputs, outputs, attrs, needs_grad, None)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """create_selective_checkpoint_contexts(policy): contexts for `checkpoint(context_fn=)`.

    `policy(ctx, op, *args, **kwargs)` gives a CheckpointPolicy; a list names ops to save.
    """
    policy = policy_fn_or_list
    if isinstance(policy, list):
        for op in policy:
            if not isinstance(op, OpOverload):
                more = ("Please update the OpOverloadPacket to a specific OpOverload.For example, "
                        "if you have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                        if isinstance(op, OpOverloadPacket) else "")  # fmt: skip
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} "
                                 f"of type {type(op)}. {more}")  # fmt: skip
        listed = tuple(policy)

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            chosen = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE
            return chosen[op not in listed]

    elif not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[Any, dict[int, Any]] = defaultdict(dict)
    return Keeping(policy, kept), Giving(kept, allow_cache_entry_mutation)

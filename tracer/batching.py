"""vmap: an interpreter that runs every op on a whole batch.

Note [Batched tensors]
    Inside vmap a tensor stands for one example of a batch. `BatchedTensor` wraps the whole batch
    (`_value`, batch dimension first) and shows itself as the first example: its `_array` has the
    right shape, dtype and strides, while its numbers are never read. Ops reach `Batching`, which
    runs them on the wrapped values by the interpreter below and wraps the results. The interpreter
    below may be another Batching, or eager execution, which records history of the batch.

Note [Levels]
    Gradients taken inside vmap differentiate the wrappers: they carry nodes of their own, recorded
    here; gradients taken outside differentiate the wrapped batch, recorded below. A wrapper may
    hold an unbatched value (`_batched` false): a level's own variable on a tensor from outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..ir.bind import state
from ..ir.op import TABLE, Op
from ..ir.types import FLOAT
from .batch_rules import batched_call, loop
from .history import attach_views, history, record
from .inplace import bump, check_history, rebase
from .tensor import Tensor

RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
CONTROL = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
    "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)


class BatchedTensor(Tensor):
    """One example of a batch; see Note [Batched tensors]."""

    __slots__ = ("_batched", "_level", "_value")

    @classmethod
    def _of(cls, value: Tensor, level: Batching, batched: bool) -> BatchedTensor:
        self = cls._wrap(value._array[0] if batched else value._array, value.dtype)
        if not isinstance(self._array, np.ndarray):  # an element of a vector is a NumPy scalar
            self._array = np.asarray(self._array)
        self._value, self._level, self._batched = value, level, batched
        return self

    def _twin(self) -> BatchedTensor:
        fresh = BatchedTensor._of(self._value, self._level, self._batched)
        fresh._storage = self.storage_
        return fresh

    def _detached_below(self) -> BatchedTensor:
        """The same value, cut from history of the batch as well."""
        return BatchedTensor._of(self._value.detach(), self._level, self._batched)

    def _beside(self, made: Any) -> Any:
        """Memory made for one example, as memory of every example."""
        level, made = self._level, self._value._beside(made)
        if not self._batched or level.take(made)[1]:
            return made
        top, state.top = state.top, level.below
        try:
            return BatchedTensor._of(made.expand((level.size, *made.shape)).clone(), level, True)
        finally:
            state.top = top

    @property
    def data(self) -> BatchedTensor:
        return BatchedTensor._of(self._value, self._level, self._batched)

    @data.setter
    def data(self, new: Any) -> None:
        raise RuntimeError("vmap: setting .data of a tensor inside vmap is not possible; return "
                           "the new value instead")  # fmt: skip

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        if not self._batched:
            return repr(self._value)
        text = repr(self._value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self._level.depth}, bdim=0, value=\n    {text}\n)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)


class Batching:
    """The interpreter of one vmap: `size` examples, above the interpreter that ran before."""

    def __init__(self, size: int, randomness: str = "error"):
        self.size, self.randomness = size, randomness
        self.below: Any = None
        self.depth = 1

    def __enter__(self) -> Batching:
        self.below = state.top
        self.depth = getattr(self.below, "depth", 0) + 1
        state.top = self
        return self

    def __exit__(self, *error: Any) -> None:
        state.top = self.below

    # --- wrapping ---

    def wrap(self, value: Tensor, dim: int) -> BatchedTensor:
        """The example of a batch that lies along `dim`."""
        return BatchedTensor._of(value.movedim(dim, 0) if dim else value, self, True)

    def own(self, value: Tensor) -> Tensor:
        """A tensor from outside, unbatched, that this level may differentiate."""
        if isinstance(value, BatchedTensor) and value._level is self:
            return value
        return BatchedTensor._of(value, self, False)

    def unwrap(self, value: Tensor, dim: int) -> Tensor:
        """The whole batch, with the examples along `dim`; what is unbatched is repeated."""
        below = self.take(value)[0]
        if not self.take(value)[1]:
            below = below.expand((self.size, *below.shape))
        return below.movedim(0, dim) if dim else below

    def take(self, value: Any) -> tuple[Any, bool]:
        """What an operand is below this level, and whether it has a batch dimension."""
        if isinstance(value, BatchedTensor) and value._level is self:
            return value._value, value._batched
        return value, False

    # --- running ---

    def __call__(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        mine = [isinstance(v, BatchedTensor) and v._level is self for v in inputs]
        if op.random:
            return self.draw(op, inputs, attrs)
        state.top = self.below
        try:
            if True not in mine:
                return op(*inputs, **attrs)
            taken = [self.take(v) for v in inputs]
            values = [v for v, _ in taken]
            flags = [b for _, b in taken]
            if True in flags:
                results = batched_call(self, op, inputs, values, flags, attrs)
            else:
                results = op(*values, **attrs)
        finally:
            state.top = self
        return self.finish(op, inputs, attrs, results, True in flags)

    def finish(self, op: Op, inputs: Any, attrs: Any, results: Any, batched: bool) -> Any:
        """Wraps results and records the call where a wrapper needs a gradient."""
        single = not isinstance(results, tuple)
        listed = (results,) if single else results
        outputs = [BatchedTensor._of(r, self, batched) for r in listed]
        if op.is_view:
            attach_views(op, inputs[0], outputs, attrs)  # type: ignore[arg-type]
        needed = tuple(isinstance(v, BatchedTensor) and v.requires_grad for v in inputs)
        if True in needed and state.grad_enabled and op.rules:
            record(op, inputs, outputs, attrs, needed)
        return outputs[0] if single else tuple(outputs)

    def draw(self, op: Op, inputs: Any, attrs: dict[str, Any]) -> Any:
        """Random numbers: refused, the same for all examples, or drawn for each."""
        if self.randomness == "error":
            raise RuntimeError(RANDOM)
        taken = [self.take(v) for v in inputs]
        different = self.randomness == "different"
        state.top = self.below
        try:
            if different or any(b for _, b in taken):
                results = loop(op, [v for v, _ in taken], [b for _, b in taken], attrs, self.size)
            else:
                results = op(*(v for v, _ in taken), **attrs)
        finally:
            state.top = self
        batched = different or any(b for _, b in taken)
        return self.finish(op, inputs, attrs, results, batched)

    # --- what is not an op ---

    def call_function(self, cls: Any, args: Any, enabled: bool) -> Any:
        """A call of a custom Function: see Note [Mapped functions]."""
        from .batched_functions import run

        return run(self, cls, args, enabled)

    def inplace(
        self, function: Any, target: Any, args: Any, kwargs: Any, resizing: bool = False
    ) -> Any:
        """`target.function_(*args)`: computed by ops, then written into the batch."""
        before = self.before(target)
        result = function(before, *args, **kwargs)
        value, batched = self.take(target)
        new, new_batched = self.take(result)
        if new_batched and not batched:
            raise RuntimeError(
                f"vmap: {function.__name__.rstrip('_')}_(self, *extra_args) is not possible "
                "because there exists a Tensor `other` in extra_args that has more elements than "
                "`self`. This happened due to `other` being vmapped over but `self` not being "
                "vmapped over in a vmap. Please try to use out-of-place operators instead of this "
                "one."
            )
        if tuple(result.shape) != tuple(target.shape):
            raise RuntimeError(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                f"{list(result.shape)}"
            )
        state.top = self.below
        try:
            value.copy_(new)
        finally:
            state.top = self
        if isinstance(target, BatchedTensor):
            bump(target.storage_)
            if target.dtype.category >= FLOAT:
                rebase(target, result, before)
        return target

    def before(self, target: Tensor) -> Tensor:
        """The value of a tensor that will be written: rules may need it, above and below."""
        value, batched = self.take(target)
        if not isinstance(target, BatchedTensor) or not state.grad_enabled:
            return target
        if target.requires_grad:
            check_history(target)
        state.top = self.below
        try:
            before = BatchedTensor._of(value.clone(), self, batched)
        finally:
            state.top = self
        edge = history(target)
        if edge is not None:
            (before._node, before._nr), before._requires_grad = edge, True
        return before

    def escaped(self, tensor: Tensor, how: str) -> None:
        """Python asks for the numbers of an example."""
        if isinstance(tensor, BatchedTensor) and tensor._batched:
            if how == "printing":
                return
            raise RuntimeError(ITEM)

    def branched(self, tensor: Tensor, outcome: Any) -> None:
        """Python asks for the truth of an example."""
        if isinstance(tensor, BatchedTensor) and tensor._batched:
            raise RuntimeError(CONTROL)


def any_batched(tensors: Iterable[Any]) -> bool:
    """Does any of them stand for one example of a batch?"""
    return any(t.__class__ is BatchedTensor for t in tensors)


def physical_of(tensor: Tensor) -> Tensor:
    """The tensor under all wrappers."""
    while isinstance(tensor, BatchedTensor):
        tensor = tensor._value
    return tensor


__all__ = ["TABLE", "BatchedTensor", "Batching", "any_batched", "physical_of"]

"""A recorder for all sizes: types, attributes and history in terms of symbolic sizes.

It runs ops on plain numbers and writes down formulas: what the graph, the eager nodes and the view
chains keep are Dims, so that derivative rules and later ops compute with them. See Note [Dims].

Note [Layout of symbolic sizes]
    Whether a reshape copies depends on strides. With sizes of at least 2, steps of 1 and slices
    known to be whole or not, strides of different sizes are in the same order and merge alike; so
    only views that step or overlap, and arguments of unknown strides, specialise. How the new
    sizes divide what was merged is compared as symbolic sizes are (`can_view`), so it is a guard.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..ir.dims import Sizes, has_dims, is_dim, plain_values
from ..ir.graph import Var
from ..ir.op import Op
from ..ir.types import TensorType
from . import eager
from . import tensor as tensor_module
from .batching import BatchedTensor
from .recorded import current_place, extent_of, place_text
from .recorder import Recorder
from .tape import OpNode
from .tensor import Size, Tensor


class _Current(threading.local):
    recorder: SymbolicRecorder | None = None


_current = _Current()
_active = 0
_lock = threading.Lock()


class SymbolicRecorder(Recorder):
    """Records with some sizes of the arguments symbolic."""

    def __init__(self, name: str, outer: SymbolicRecorder | None = None):
        super().__init__(name)
        self.outer = outer  # that of the graph this one is inside of
        self.sizes = Sizes(current_place) if outer is None else outer.sizes
        self.shapes: dict[int, tuple[Any, ...]] = {}  # of arguments, by id
        self.reasons: list[str] = []  # why all sizes were made plain
        # weak references to what holds Dims: nodes of the eager graph, views
        self.patched: list[Any] = [] if outer is None else outer.patched
        self.views: list[Any] = [] if outer is None else outer.views

    # --- running ---

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        return eager.run(op, plain_values(inputs), plain_values(attrs))

    def result_vars(self, op: Op, operands: Any, outputs: Any, attrs: Any) -> tuple[Var, ...]:
        types = tuple(TensorType(t.dtype, t._array.shape) for t in outputs)
        given = [None if v is None else v.type for v in operands]
        if self.sizes.live and not op.data_shape and (has_dims(given) or has_dims(attrs)):
            types = self.inferred(op, given, attrs, types)
        return tuple(map(Var, types))

    def inferred(self, op: Op, given: Any, attrs: Any, seen: Any) -> tuple[TensorType, ...]:
        """The results' types by the op's own inference."""
        try:
            types = op.infer_types(given, attrs)
        except Exception as error:
            self.fix(f"{op.name} can't be inferred for all sizes: {error}")
            return seen
        size = self.sizes.size
        types = tuple(TensorType(t.dtype, tuple(map(size, t.shape))) for t in types)
        if plain_values(types) != seen:
            self.fix(f"{op.name} is inferred as {plain_values(types)}, seen as {seen}")
            return seen
        return types

    def fix(self, reason: str) -> None:
        """The rest is recorded for the sizes of this call only."""
        self.reasons.append(f"{reason} ({place_text()})")
        self.sizes.fix_all()

    def input_type(self, tensor: Tensor) -> TensorType:
        return TensorType(tensor.dtype, self.outer_shape(tensor))

    def outer_shape(self, tensor: Tensor) -> tuple[Any, ...]:
        """The shape of a tensor that is not known here yet."""
        owner = self.grad_owners.get(id(tensor), tensor)
        known = self.shapes.get(id(owner))
        if known is not None or not self.sizes.live:
            return tensor._array.shape if known is None else known
        return tensor._array.shape if self.outer is None else self.outer.shape_of(tensor)

    def define(self, op: Op, inputs: Any, tensor: Tensor, var: Var, attrs: Any, k: int) -> None:
        super().define(op, inputs, tensor, var, attrs, k)
        if tensor._view is not None and op.is_view and has_dims(attrs):
            chain = tensor._view.chain
            tensor._view.chain = (*chain[:-1], (op, attrs, chain[-1][2]))
            self.views.append(weakref.ref(tensor))

    def watching(self) -> Any:
        return symbolic_shapes(self)

    def close(self) -> None:
        """Sizes are plain from now on, also in the history this call leaves."""
        self.sizes.live = False
        for reference in self.patched:
            node = reference()
            if node is not None:
                node.attrs, node.types = plain_values(node.attrs), plain_values(node.types)
                if isinstance(node.saved, tuple):
                    node.saved = plain_values(node.saved)
        for reference in self.views:
            tensor = reference()
            if tensor is not None and tensor._view is not None:
                tensor._view.chain = plain_values(tensor._view.chain)

    def remember(self, op: Op, inputs: Any, operands: Any, outputs: Any, vars_: Any,
                 attrs: Any) -> None:  # fmt: skip
        """Gives the eager node of this call, if there is a new one, formulas for numbers."""
        nodes = {id(t._node): t._node for t in outputs}
        for node in nodes.values():
            if not isinstance(node, OpNode) or node.op is not op or id(node) in self.numbers:
                continue
            given = [None if v is None else v.type for v in operands]
            node.uniform, node.types = None, (given, [v.type for v in vars_])
            node.attrs = attrs
            self.patched.append(weakref.ref(node))
            if any(map(is_dim, inputs)):
                node.saved = tuple(
                    inputs[key] if key >= 0 and is_dim(inputs[key]) else saved
                    for key, saved in zip(node.plan.keys, node.saved)
                )

    # --- what the tracer tells us ---

    def inner(self, name: str) -> Recorder:
        return SymbolicRecorder(name, self)

    def shaped_like(self, tensor: Tensor, other: Tensor) -> None:
        if self.sizes.live:
            self.shapes[id(tensor)] = tuple(self.shape_of(other))

    def compared(self, number: Any, how: Any, other: Any, outcome: bool) -> None:
        super().compared(number, how, other.plain() if is_dim(other) else other, outcome)

    def layout_asked(self, tensor: Tensor) -> None:
        """The order of a tensor's elements in memory decides something."""
        if not self.sizes.live or not has_dims(self.shape_of(tensor)):
            return
        entry = self.entries.get(id(tensor)) or self.lift(tensor)
        unknown = entry.memory.external is not None and not (
            self.externals[entry.memory.external]._array.flags.c_contiguous)  # fmt: skip
        if unknown or not all(is_orderly(*step[:2]) for step in entry.chain):
            self.strides_asked(tensor)

    def strides_asked(self, tensor: Tensor) -> None:
        """The distances of a tensor's elements in memory are looked at."""
        if self.sizes.live:
            entry = self.entries.get(id(tensor)) or self.lift(tensor)
            for size in (*entry.var.type.shape, *entry.memory.var.type.shape):
                int(size)

    def shape_of(self, tensor: Tensor) -> tuple[Any, ...]:
        """A tensor's shape in terms of symbolic sizes."""
        if isinstance(tensor, BatchedTensor):
            shape = self.shape_of(tensor._value)
            return shape[1:] if tensor._batched else shape
        entry = self.entries.get(id(tensor))
        if entry is None:
            root = tensor._array if tensor._storage is None else tensor._storage.root
            extent = extent_of(tensor)
            for known in self.lying_in.get(id(root), ()):
                if known.extent == extent:
                    return known.var.type.shape
            if id(root) not in self.memories:
                return self.outer_shape(tensor)
            return self.var_of(tensor).type.shape
        return entry.var.type.shape


def is_orderly(op: Op, attrs: dict[str, Any]) -> bool:
    """See Note [Layout of symbolic sizes]."""
    return not op.restrides and plain_values(attrs.get("step", 1)) == 1


@contextmanager
def symbolic_shapes(recorder: SymbolicRecorder) -> Iterator[None]:
    """In the block, in this thread, `tensor.shape` says what the recorder knows."""
    global _active
    previous, _current.recorder = _current.recorder, recorder
    with _lock:
        _active += 1
        tensor_module.watched_shape = watched_shape
    try:
        yield
    finally:
        _current.recorder = previous
        with _lock:
            _active -= 1
            if not _active:
                tensor_module.watched_shape = None


def watched_shape(tensor: Tensor) -> Size:
    """`tensor.shape` while a recording with symbolic sizes is on in some thread."""
    recorder = _current.recorder
    if recorder is None or not recorder.sizes.live:
        return Size(tensor._array.shape)
    return Size(recorder.shape_of(tensor))

"""Runs a body again with its arithmetic postponed.

A body that looks at values (`item()`, `print`) or changes Python's state must run at every call.
Under a `Deferral` it does, and everything eager happens as ever: shapes, views, versions, history,
hooks. Only the arithmetic waits: results are pending tensors (`pending.py`), until somebody looks
at a value. Then all that is pending runs as one compiled graph. See Note [Steps].

Note [Learning]
    Where a body goes on in a way not seen before, what is pending is computed, and the ops run
    eagerly until the next look, while their steps are added to the tree: types, orders and errors
    are eager's own. From the next call on they are postponed.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np

from ..ir.bind import interpreting, state
from ..ir.op import Op
from ..ir.ops.layouts import memory_order
from ..ir.types import DType, TensorType
from . import eager
from .extents import extent_of, row_major
from .hooks import active
from .inplace import (
    assign,
    check_history,
    check_memory,
    needs_grad,
    new_value,
    run_inplace,
)
from .overlap import check_operands, lies_in_expanded, shows_twice
from .pending import Family, Pending, memory_of, settled
from .recorded import beyond_graphs, current_place
from .steps import ALIAS, WRITTEN, Step
from .storage import is_exposed, owner_of
from .tensor import Tensor

_getrefcount = sys.getrefcount
_HELD = 3  # references to memory of results that are ours: a list, a variable, an argument
_CONSTANTS = {int, bool, complex, type(None)}
MAX_STEPS = 50_000  # of one tree


class Tree:
    """The steps of a function's bodies, and who computes them."""

    def __init__(self, compute: Any):
        self.root, self.size, self.compute = Step(None), 0, compute
        self.elements = 0  # of all results of its steps

    @property
    def is_full(self) -> bool:
        return self.size >= MAX_STEPS


class Deferral:
    """The interpreter that postpones arithmetic; made anew for each call."""

    def __init__(self, tree: Tree):
        self.tree = tree
        self.family = Family.lent_to(self)
        self.facts = False  # are only facts of pending tensors looked at now?
        self.begin()

    def begin(self) -> None:
        """A new window: nothing is pending."""
        self.here = self.tree.root
        self.learning = False
        self.keys: dict[int, int] = {}  # id of a pending tensor -> its number
        self.count = 0
        self.learned_keys: dict[int, int] = {}  # id of the array of a tensor learned -> its number
        self.before: dict[int, int] = {}  # id of the array of a tensor from before -> its number
        self.extents: dict[Any, int] = {}  # the pieces of memory they lie in
        self.arrays: list[np.ndarray] = []  # these pieces, row-major where they can be
        self.owners: dict[int, int] = {}  # id of the owner of memory -> how many pieces are met
        self.waiting: dict[int, list[tuple[Tensor, type]]] = {}  # by owner: who waits for writes
        self.changing: set[int] = set()  # owners of memory from before that pending views write to
        self.floats: list[float] = []
        self.roots: list[np.ndarray] = []  # memory of results, see `Step.orders`
        self.tensors: list[weakref.ref[Any]] = []
        self.held: list[Any] = []  # arrays whose ids are in `before` or `learned_keys`

    def close(self) -> None:
        """The body has ended."""
        try:
            self.settle()
        finally:
            self.family.give_back()

    # --- the interpreter ---

    def __call__(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        if op.random or active.saved or beyond_graphs(op, inputs, attrs):
            return self.aside(op, inputs, attrs)
        if op.is_view and self.shows_exposed(inputs[0]):
            return eager.run(op, inputs, attrs)
        operands = self.operands(inputs)
        if operands is None:
            return self.aside(op, inputs, attrs)
        signature = (
            (op, operands, tuple([(k, attribute_key(v)) for k, v in attrs.items()]))
            if attrs else (op, operands)
        )  # fmt: skip
        step = self.here.next.get(signature)
        if step is None or self.learning:
            return self.learn(signature, op, inputs, attrs)
        return self.follow(step, op, inputs, attrs)

    def shows_exposed(self, tensor: Tensor) -> bool:
        """Does it lie in memory that NumPy may write to? A view of it shows what is there then."""
        return not isinstance(tensor, Pending) and is_exposed(owner_of(memory_of(tensor)))

    def aside(self, op: Op, inputs: Any, attrs: Any) -> Any:
        """Runs an op now, outside of the tree: `saved_tensors_hooks` may look at what it saves."""
        if any(isinstance(v, Tensor) for v in inputs):
            self.settle()
        return eager.run(op, inputs, attrs)

    def follow(self, step: Step, op: Op, inputs: Any, attrs: Any) -> Any:
        """A step as before: its arithmetic waits."""
        self.here = step
        if op.is_view:
            seen = op.numpy(memory_of(inputs[0]), **attrs)
            arrays = seen if type(seen) is tuple else (seen,)
            outputs = [self.tensor(a, t.dtype) for a, t in zip(arrays, step.types)]
        else:
            outputs = [self.result(t, o) for t, o in zip(step.types, step.orders)]
        needs_grad, mark = False, None
        for value in inputs:
            if value.__class__ is float:
                self.floats.append(value)
            elif isinstance(value, Tensor):
                if value._requires_grad or (value._view is not None and value.requires_grad):
                    needs_grad = True
                elif value._mark is not None:
                    mark = value._mark
        if needs_grad or mark is not None or op.is_view or state.inference:
            facts, self.facts = self.facts, True
            eager.relate(op, inputs, outputs, attrs, needs_grad, mark)
            self.facts = facts
        return tuple(outputs) if op.many_outputs or len(op.outputs) > 1 else outputs[0]

    def result(self, type_: TensorType, order: Any) -> Tensor:
        """A new pending tensor with memory of its own."""
        dtype, shape = type_
        if order is None:
            root = array = np.empty(shape, dtype.storage)
        else:
            root = np.empty([shape[k] for k in order], dtype.storage)
            array = root.transpose(np.argsort(order))
        self.roots.append(root)
        return self.tensor(array, dtype)

    def tensor(self, array: np.ndarray, dtype: DType) -> Tensor:
        """A new pending tensor, with the next number."""
        made = self.family.wrap(array, dtype)
        self.tensors.append(weakref.ref(made))
        self.keys[id(made)] = self.count
        self.count += 1
        return made

    def twin(self, tensor: Tensor) -> Tensor:
        """Another pending tensor on the memory of one."""
        made = self.family.wrap(memory_of(tensor), tensor.dtype)
        self.tensors.append(weakref.ref(made))
        self.keys[id(made)] = self.keys[id(tensor)]
        return made

    # --- operands ---

    def operands(self, inputs: Any) -> Any:
        """The inputs as a signature names them; None where one can't be named."""
        if (self.waiting or self.changing) and any(
                self.is_stale(v) for v in inputs if isinstance(v, Tensor)):  # fmt: skip
            self.settle()
        keys: list[Any] = []
        pending = self.family.tensor
        for value in inputs:
            kind = value.__class__
            if kind is pending:
                keys.append(self.keys[id(value)])
            elif kind is float:
                keys.append(float)
            elif kind in _CONSTANTS:
                keys.append((kind, value))
            elif isinstance(value, Tensor):
                keys.append(self.key(value))
            else:
                return None
        return tuple(keys)

    def is_stale(self, tensor: Tensor) -> bool:
        """Does a write wait for memory that this tensor sees in another way?"""
        if isinstance(tensor, Pending):
            return False
        array = memory_of(tensor)
        owner = id(owner_of(array))
        if owner in self.changing and extent_of(array) not in self.extents:
            return True
        waiting = self.waiting.get(owner)
        return waiting is not None and extent_of(array) != extent_of(memory_of(waiting[0][0]))

    def key(self, tensor: Tensor) -> Any:
        if isinstance(tensor, Pending):
            return self.keys[id(tensor)]
        array = memory_of(tensor)
        known = self.before.get(id(array))
        if known is not None:
            return ~known
        if self.learning:
            known = self.learned_keys.get(id(array))
            if known is not None:
                return known
        owner = owner_of(array)
        if is_exposed(owner):
            array = array.copy(order="K")  # as it is now: NumPy may write there at any time
        known = self.before[id(array)] = len(self.before)
        self.held.append(array)
        extent = extent_of(array)
        piece = self.extents.get(extent)
        if piece is None:
            piece = self.extents[extent] = len(self.arrays)
            self.owners[id(owner)] = self.owners.get(id(owner), 0) + 1
            self.arrays.append(row_major(array))
        order, gaps = memory_order(array), ()
        if order is None and not array.flags.c_contiguous:
            gaps = array.strides  # results lie in the order of these
        return (~known, piece, tensor.dtype, array.shape, order, gaps)

    # --- learning ---

    def learn(self, signature: Any, op: Op, inputs: Any, attrs: Any) -> Any:
        """Runs an op eagerly and adds its step; see Note [Learning]."""
        self.catch_up()
        if self.tree.is_full:
            self.settle()
            return eager.run(op, inputs, attrs)
        result = eager.run(op, inputs, attrs)
        outputs = result if type(result) is tuple else (result,)
        step = self.add(signature, op, signature[1], attrs)
        step.types = tuple(TensorType(t.dtype, t._array.shape) for t in outputs)
        step.orders = tuple(memory_order(t._array) for t in outputs)
        if not op.is_view:
            self.tree.elements += sum(type_.numel for type_ in step.types)
        for tensor in outputs:
            self.learned(tensor)
        return result

    def add(self, signature: Any, kind: Any, operands: Any, attrs: Any = None) -> Step:
        step = self.here.next.get(signature)
        if step is None:
            step = Step(self.here, kind, operands, attrs, current_place())
            self.here.next[signature] = step
            self.tree.size += 1
        self.here = step
        return step

    def learned(self, tensor: Tensor) -> None:
        self.held.append(tensor._array)
        self.learned_keys[id(tensor._array)] = self.count
        self.count += 1

    def catch_up(self) -> None:
        """Computes what is pending, and goes on learning in the same window."""
        if self.learning:
            return
        pending = [t for t in (reference() for reference in self.tensors) if t is not None]
        self.learned_keys = {id(memory_of(t)): self.keys[id(t)] for t in pending}
        self.held += [memory_of(t) for t in pending]
        self.compute()
        self.learning = True

    # --- computing ---

    def settle(self) -> None:
        """Somebody looks at a value: all that is pending is computed, and a window ends."""
        here = self.here
        try:
            if here is self.tree.root:
                pass  # tensors may have been met for a step that was not made
            elif self.learning:
                here.is_end = True
            else:
                self.compute()
        finally:
            self.begin()

    def compute(self) -> None:
        """Fills the memory of what is pending."""
        alive = tuple([_getrefcount(root) > _HELD for root in self.roots])
        settled(self.tensors)
        for group in self.waiting.values():
            for tensor, kind in group:
                tensor.__class__ = kind
        self.waiting = {}
        if self.here is not self.tree.root:
            floats = [np.array(value) for value in self.floats]
            self.tree.compute(self.here, alive, self.arrays, floats, self.roots)

    def escaped(self, tensor: Tensor, how: str) -> None:
        """Python is about to look at a value."""
        self.settle()

    # --- writes ---

    def branched(self, tensor: Tensor, outcome: Any) -> None:
        """Python asked for the truth of a value."""
        self.escaped(tensor, "bool()")

    def inplace(self, function: Any, target: Tensor, args: Any, kwargs: Any,
                resizing: bool = False) -> Tensor:  # fmt: skip
        """`target.function_(*args)`, as `run_inplace` does it, with the write postponed."""
        facts, self.facts = self.facts, True
        try:
            check_memory(target)
            check_operands(function, target, (*args, *kwargs.values()))
            tracked = state.grad_enabled and (target.requires_grad or needs_grad(args, kwargs))
            if resizing or shows_twice(target) or lies_in_expanded(target):
                self.settle()
                with interpreting(state.bottom):
                    return run_inplace(function, target, args, kwargs, resizing)
            if tracked:
                check_history(target)
                before = self.value_of(target)
            else:
                before = target  # nothing is written until the result is there
            self.facts = False
            args = tuple(before if a is target else a for a in args)
            kwargs = {name: before if a is target else a for name, a in kwargs.items()}
            result = new_value(function, before, args, kwargs, tracked)
            self.facts = True
            return assign(target, result, before, function.__name__, tracked)
        finally:
            self.facts = facts

    def value_of(self, target: Tensor) -> Tensor:
        """The value before the write, as a tensor of its own with the target's history."""
        operands = self.operands((target,))
        signature = (ALIAS, operands)
        step = self.here.next.get(signature)
        array = memory_of(target)
        if step is None or self.learning:
            self.catch_up()
            before = Tensor._wrap(array.copy(), target.dtype)
            step = self.add(signature, ALIAS, operands)
            step.types, step.orders = (TensorType(target.dtype, array.shape),), (None,)
            self.learned(before)
        else:
            self.here = step
            before = self.result(step.types[0], None)
        edge = eager.history(target)
        if edge is not None:
            before._requires_grad = True
            before._node, before._nr = edge
        return before

    def write(self, target: Tensor, result: Tensor) -> None:
        """`target`'s memory gets the elements of `result`: now while learning, else later."""
        if not isinstance(target, Pending) and is_exposed(owner_of(memory_of(target))):
            self.settle()
            np.copyto(memory_of(target), memory_of(result), casting="unsafe")
            return
        self.lift_alone(target)
        operands = self.operands((target, result))
        signature = (WRITTEN, operands)
        step = self.here.next.get(signature)
        if step is None or self.learning:
            self.catch_up()
            np.copyto(memory_of(target), memory_of(result), casting="unsafe")
            self.add(signature, WRITTEN, operands)
            return
        self.here = step
        if not isinstance(target, Pending):
            self.wait(target)
        elif (owner := id(owner_of(memory_of(target)))) in self.owners:
            self.changing.add(owner)

    def lift_alone(self, target: Tensor) -> None:
        """Memory from before the window may be written when nobody else in it looks there."""
        array = memory_of(target)
        shared = self.owners.get(id(owner_of(array)), 0)
        known = isinstance(target, Pending) or extent_of(array) in self.extents
        if shared > known and not self.learning:
            self.settle()

    def wait(self, target: Tensor) -> None:
        """A tensor from before the window now waits for a write."""
        kind = target.__class__
        target.__class__ = self.family.of(kind)
        array = memory_of(target)
        self.keys[id(target)] = ~self.before[id(array)]
        self.waiting.setdefault(id(owner_of(array)), []).append((target, kind))


def attribute_key(value: Any) -> Any:
    """An attribute for a signature: 1, 1.0 and True are different, and so are 0.0 and -0.0."""
    kind = value.__class__
    if kind is tuple:
        return tuple([attribute_key(v) for v in value])
    if kind is float:
        return kind, value.hex()
    return kind, value

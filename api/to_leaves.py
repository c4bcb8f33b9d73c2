"""Backward from a result of a compiled function straight to leaves.

Most of a short backward's time would go to the engine's generality. Where the gradient of one
result arrives, and all that it leads to are leaves that nobody watches, one call computes their
gradients, and these become `.grad`. Where anything is otherwise, nothing has happened yet, and the
engine goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from .eager_graph import EAGER
from .executor import improve
from .holders import as_tensor
from .ir.places import user_place
from .ir.types import FLOAT
from .runtime import fastcall, leaves, watch
from .tracer.accumulate import add_to, may_add
from .tracer.backward import implicit_gradient
from .tracer.derive import is_silent
from .tracer.readers import announce_write
from .tracer.saved import Freed
from .tracer.tape import AccumulateGrad
from .tracer.tensor import Tensor


class ToLeaves:
    """Backward of a Split for the gradient of one result; see the module's text.

    `serve` is native code once it ran (`runtime/leaves.ll`), which comes back to `serve_any` where
    something is unusual.
    """

    __slots__ = ("dtype", "executor", "given", "left", "native", "one", "serve")

    def __init__(self, split: Any, number: int):
        self.given = (number,)
        self.executor, left = split.for_gradients(self.given)
        types = [o.var.type for o in self.executor.graph.outputs]
        # of each gradient: the edge that it takes, its dtype and shape, the strides of its array
        self.left = [(k, t.dtype, t.shape, np.empty(t.shape, t.dtype.storage).strides)
                     for k, t in zip(left, types)]  # fmt: skip
        self.dtype, shape = split.function.out_types[number]
        self.one = None  # the gradient that is implied, where one is
        if np.prod(shape) == 1 and self.dtype.category == FLOAT:
            self.one = implicit_gradient(self.dtype, shape)._array
        self.native: Any = None if self.executor.native is None else self.load
        self.serve: Any = self.serve_any

    def serve_any(self, node: Any, seed: Any, keep: bool) -> bool:
        """Runs it, if it can; `seed` is the gradient given, if one is; `keep` the graph?"""
        if node.freed is not None or node.exposed or node.shown or node.is_stale():
            return False
        start = self.one
        if seed is not None:
            start = seed._array if seed.__class__ is Tensor and seed.dtype is self.dtype else None
        leaves = self.leaves(node.edges)
        if start is None or leaves is None:
            return False
        node.numbers = self.given
        if node.held is not None:
            node.check_results()
        arrays = (*node.saved, *node.saved_input_arrays(), start)
        grads = self.gradients(*arrays)
        if self.native.__class__ is BuiltinFunctionType and self.serve == self.serve_any:
            self.serve = self.natively(node) or self.serve_any
        place = user_place()
        if not keep:
            node.release(Freed(place))
        for leaf, grad in zip(leaves, grads):
            here = leaf._grad
            if here is None:
                leaf._grad = grad
            else:
                add_to(here, grad, place)
        return True

    def leaves(self, edges: Any) -> Any:
        """The leaves to which the gradients go, if they can be put there."""
        found = []
        for position, dtype, _, strides in self.left:
            target = edges[position][0]
            if target.__class__ is not AccumulateGrad or not is_silent(target):
                return None
            leaf = target.variable
            here = leaf._grad
            if (
                not leaf._requires_grad
                or leaf.dtype is not dtype
                or leaf._array.strides != strides
                or (here is not None and not may_add(here))
            ):
                return None
            found.append(leaf)
        if len(found) > 1 and len({*map(id, found)}) < len(found):
            return None
        return found

    def gradients(self, *arrays: np.ndarray) -> Sequence[Tensor]:
        executor = self.executor
        if self.native is not None and executor.call is executor.direct:
            made = self.native(*arrays)
            if made.__class__ is tuple:
                return made
        return executor.finish(executor.call(*arrays), ())

    def load(self, *arrays: np.ndarray) -> Any:
        """The first call: native code that makes tensors takes its place."""
        runnable, results = self.executor.native.runnable, self.executor.results
        made = {k: as_tensor(runnable.results[k], dtype) for k, dtype in results}
        arguments = [e.laid_out_as(a) for e, a in zip(runnable.inputs, arrays)]
        watched = []
        if not fastcall.reason_for_fallback():
            ((call, _),) = watch.of_slot(self.executor, "call")
            watched.append((call, id(self.executor.direct)))
        self.native = runnable.bound(arguments, range(len(arguments)), made, {}, tuple_result=True,
                                     apart=False, watched=watched)  # fmt: skip
        return None

    def natively(self, node: Any) -> Any:
        """`serve_any` for nodes like this one."""
        split, kind = node.split, type(node)
        looked_at = split.as_eager.looked_at(self.given, counted=True)
        inputs = [(k, k in looked_at, type(node.inputs[k])) for k in split.parts.saved_inputs]
        came = frozenset(self.given)
        new = dict(kind.new_slots)
        found = leaves.to_leaves(leaves.ToLeaves(
            EAGER, kind, self.native, len(node.saved), split.wanted, inputs, len(split.kept),
            self.one, self.dtype,
            [leaves.Gradient(k, dtype, dtype.storage, shape) for k, dtype, shape, _ in self.left],
            self.given, came, not split.shared.left(came), (new["exposed"], new["came"]), Freed,
            announce_write, note_write, self.serve_any))  # fmt: skip
        improve()
        return found


def note_write(tensor: Tensor, place: Any) -> None:
    tensor.storage_.note_write(place)

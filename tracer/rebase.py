"""History through views: chains of view ops, `CopySlices` and `AsStridedBackward0`."""

from __future__ import annotations

import math
from typing import Any

from ..ir.op import TABLE, Frame, pull
from ..ir.places import user_place
from ..ir.types import TensorType
from .eager import history
from .tape import Node, next_sequence
from .tensor import Tensor


def look(value: Any, chain: Any) -> Any:
    """Follows a chain of view ops from the base."""
    for op, attrs, position in chain:
        value = op(value, **attrs)
        if op.multi_view:
            value = value[position]
    return value


class Unwritable(RuntimeError):
    """A view has no functional form of a write."""


def put(base: Any, chain: Any, patch: Any, once: bool = False) -> Any:
    """`base` with `patch` at the place `chain` looks at: the functional form of a write.

    With `once` views that show elements several times are refused.
    """
    if not chain:
        return patch
    (op, attrs, position), rest = chain[0], chain[1:]
    if rest:
        inner = op(base, **attrs)
        patch = put(inner[position] if op.multi_view else inner, rest, patch, once)
    if op.multi_view:
        return op.put(base, patch, position=position, **attrs)
    if op.put is None or (once and _size(patch) > _size(base)):
        raise Unwritable(f"{op.name}: writing through this view, which shows elements several "
                         "times, is not supported; clone() first")  # fmt: skip
    return op.put(base, patch, **attrs)


def _size(value: Any) -> int:
    """The bytes of its elements: a complex number shows as two real ones."""
    return math.prod(value.shape) * value.dtype.itemsize


class _ViewStep(Frame):
    """One step of a chain, as `pull` sees it."""

    def __init__(self, step: Any, source: TensorType):
        self.op, self.attrs, self.position = step
        self.source = source
        self.results = self.op.infer_types((source,), self.attrs)

    def input_type(self, position: int) -> TensorType:
        return self.source

    def output_type(self, position: int) -> TensorType:
        return self.results[position]

    def input_count(self) -> int:
        return 1


def pull_through(chain: Any, source: TensorType, grad: Any) -> Any:
    """The gradient of a base, given that of a view of it."""
    frames = []
    for step in chain:
        frames.append(_ViewStep(step, source))
        source = frames[-1].results[step[2]]
    for frame in reversed(frames):
        grads = [None] * len(frame.results)
        grads[frame.position] = grad
        (grad,) = pull(frame, grads, (True,))
    return grad


class _ChainNode(Node):
    """A node that knows a base and the view chain into it."""

    __slots__ = ("base_type", "chain", "out_types")

    def _prepare(self, base: Tensor, chain: Any, edges: tuple[Any, ...]) -> None:
        self.base_type = base.type_
        self.chain, self.edges = chain, edges
        self.out_types = (self.base_type,)
        self.sequence, self.place = next_sequence(), user_place()
        self.extra = None

    def output_types(self) -> tuple[TensorType, ...]:
        return self.out_types


class CopySlices(_ChainNode):
    """The base after a write through a view.

    Holds the node of the op that wrote (`fn`), whose first input was the view: gradients flow to
    the old base and to the op's other inputs. Where the write took several ops, it stands behind
    their result instead.
    """

    __slots__ = ("fn",)
    __module__ = "builtins"

    def __init__(self, base: Tensor, chain: Any, fn: Any, result: Tensor | None):
        self.fn = fn
        others = (history(result),) if fn is None else fn.edges[1:]
        self._prepare(base, chain, (history(base), *others))

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    @property
    def next_functions(self) -> tuple[Any, ...]:
        first = ((None, 0) if self.edges[0] is None else self.edges[0],)
        if self.fn is not None:
            return first + self.fn.next_functions[1:]
        return first + tuple((None, 0) if e is None else e for e in self.edges[1:])

    def apply(self, grads: list[Any]) -> list[Any]:
        grad = grads[0]
        if grad is None:
            return [None] * len(self.edges)
        part = look(grad, self.chain).clone()
        inner, *others = [None, part] if self.fn is None else self.fn.apply([part])
        if self.edges[0] is None:
            return [None, *others]
        if inner is None:
            inner = TABLE["zeros_like"](part)
        return [put(grad, self.chain, inner), *others]

    def release(self, freed: Any) -> None:
        if self.fn is not None:
            self.fn.release(freed)


class AsStridedBackward0(_ChainNode):
    """The history of a view whose base was written: base -> view."""

    __slots__ = ()
    __module__ = "builtins"

    def __init__(self, base: Tensor, chain: Any, view: Tensor):
        self._prepare(base, chain, (history(base),))
        self.out_types = (view.type_,)

    def apply(self, grads: list[Any]) -> list[Any]:
        if grads[0] is None:
            return [None]
        return [pull_through(self.chain, self.base_type, grads[0])]

"""Calls of custom Functions in a recording, as they can be made again with other values.

A recorded `call` (ir/ops/calling.py) holds its backward as a graph. What the Python of that
backward reads may change before it runs; then the context is needed as the Function's forward left
it, with the tensors of the call at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.dims import has_dims
from ..ir.types import DType
from .context_names import give, given_to
from .facts import device
from .history import history
from .saved import PackedSaved, SavedOutput
from .scalars import RunTimeNumber
from .tensor import Tensor

FLAT = (int, float, complex, str, bytes, type(None), type, slice, DType, device)
FORWARDS = {"to_save", "saved_for_forward", "dirty_tensors", "non_differentiable"}  # not for later


@dataclass(frozen=True, eq=False)
class CustomCall:
    """A call whose operands are, as those of `call`, `count` inputs, outputs, and other tensors.

    `saved` and `fields` name tensors by their position among the operands.
    """

    cls: Any
    count: int
    plain: dict[str, Any]  # attributes of the context
    fields: dict[str, int]  # those that are tensors,
    values: dict[str, int]  # or numbers that are data
    saved: tuple[tuple[int | None, int | None], ...]  # with the number of an own output
    numbers: tuple[int, ...]  # of the outputs that are tensors, among all
    connected: tuple[bool, ...]  # which of these have history
    outputs: int
    positions: tuple[int, ...]  # of the inputs among the arguments
    arguments: int

    def __call__(self, *operands: Tensor) -> tuple[Tensor, ...]:
        """The outputs, behind a node that will run the Function's own backward."""
        node = self.cls._backward_cls()
        node._positions, node._count = self.positions, self.arguments
        inputs = operands[: self.count]
        outputs = [t.detach() for t in operands[self.count :][: len(self.numbers)]]
        node.edges = tuple(history(t) for t in inputs)
        node._in_types = [t.type_ for t in inputs]
        node._types = [None] * self.outputs
        for number, tensor, connected in zip(self.numbers, outputs, self.connected):
            node._types[number] = tensor.type_
            if connected:
                tensor._node, tensor._nr, tensor._requires_grad = node, number, True
        found = [*inputs, *outputs, *operands[self.count + len(outputs) :]]
        give(node, {name: copied(value) for name, value in self.plain.items()})
        give(node, {name: found[k] for name, k in self.fields.items()})
        give(node, {name: found[k].item() for name, k in self.values.items()})
        node._saved = [entry_of(None if k is None else found[k], own) for k, own in self.saved]
        return tuple(outputs)


def entry_of(tensor: Tensor | None, own: int | None) -> tuple[Any, int, int | None]:
    """What a node keeps of a tensor, as `function_outputs.save` does."""
    if tensor is None:
        return None, 0, None
    version = 0 if tensor._mark == "inference" else tensor._version
    return (tensor if own is None else SavedOutput(tensor)), version, own


def tensors_of(node: Any) -> list[Tensor]:
    """The tensors that a context holds."""
    saved = [tensor_in(entry) for entry, *_ in node._saved or ()]
    return [t for t in (*saved, *attributes_of(node).values()) if isinstance(t, Tensor)]


def attributes_of(node: Any) -> dict[str, Any]:
    """What the Function itself put on its context."""
    return {name: value for name, value in given_to(node).items() if name not in FORWARDS}


def tensor_in(entry: Any) -> Any:
    return entry.fresh() if isinstance(entry, SavedOutput) else entry


def custom_call(recorder: Any, node: Any, operands: Sequence[Any], outputs: list[Any]) -> Any:
    """The call behind `node`, which the recorder knows by the Vars of its operands.

    None where the context holds what can't be made again.
    """
    places = {var: k for k, var in reversed([*enumerate(operands)])}
    saved: list[tuple[int | None, int | None]] = []
    for entry, _, own in node._saved or ():
        if isinstance(entry, PackedSaved):
            return None
        tensor = tensor_in(entry)
        saved.append((None if tensor is None else places.get(recorder.var_of(tensor)), own))
        if tensor is not None and saved[-1][0] is None:
            return None
    plain: dict[str, Any] = {}
    fields: dict[str, int] = {}
    values: dict[str, int] = {}
    for name, value in attributes_of(node).items():
        if isinstance(value, Tensor):
            where = values if isinstance(value, RunTimeNumber) else fields
            where[name] = places.get(recorder.var_of(value), -1)
        elif is_flat(value) or recorder.is_known_object(value):
            plain[name] = value
        else:
            return None
    if -1 in (*fields.values(), *values.values()):
        return None
    results = [(k, t) for k, t in enumerate(outputs) if isinstance(t, Tensor)]
    return CustomCall(
        cls=node._forward_cls,
        count=len(node._in_types),
        plain=plain,
        fields=fields,
        values=values,
        saved=tuple(saved),
        numbers=tuple(k for k, _ in results),
        connected=tuple(t._node is node for _, t in results),
        outputs=len(outputs),
        positions=node._positions,
        arguments=node._count,
    )


def is_flat(value: Any) -> bool:
    """A value of Python's, or several in tuples and lists."""
    if isinstance(value, tuple) or type(value) is list:
        return all(map(is_flat, value))
    return isinstance(value, FLAT) and not has_dims(value)


def copied(value: Any) -> Any:
    """Lists are the context's own."""
    return [*map(copied, value)] if type(value) is list else value

"""What users see of a node's saved values: `_saved_<name>` and `_raw_saved_<name>`."""

from __future__ import annotations

import math
from typing import Any

from ..ir.op import ATTR, INPUT, INPUT_TYPE, OUTPUT, Op
from ..ir.ops.accumulate import strides_of
from ..ir.types import BY_NAME
from .saved import FREED, OWN, Freed, PackedSaved, PackedSlots, SavedOutput, unpack
from .tensor import Tensor


def tensor_names(op: Op, rule: Any) -> list[str]:
    """The inputs and outputs a rule names."""
    return [op.inputs[k] for k in rule.wants(INPUT)] + [op.outputs[k] for k in rule.wants(OUTPUT)]


def shown_names(op: Op, attrs: dict[str, Any], number_at: int | None = None) -> list[str]:
    """What torch shows as `_saved_<name>`: what the rules name, and sizes for `<name>_type`.

    What `op.shown` renames is shown whether rules name it or not.
    """
    names = set(op.shown)
    for position, rule in op.rules.items():
        if position == number_at:  # torch's overload has no rule there
            continue
        names.update(tensor_names(op, rule))
        names.update("self_sym_sizes" for k in rule.wants(INPUT_TYPE) if op.inputs[k] == "self")
        names.update(name for kind, name in rule.arguments if kind == ATTR)
    if attrs.get("whole"):  # torch's overload without dimensions
        names -= {"dim", "keepdim"} - set(op.shown)
    names -= {"whole", f"{op.inputs[op.variadic]}_sym_sizes" if op.variadic is not None else ""}
    renamed = (name if callable(new) else new for name, new in _renamed(op, names))
    return sorted(name for name in renamed if name is not None)


def _renamed(op: Op, names: set[str]) -> list[tuple[str, Any]]:
    return [(name, op.shown.get(name, name)) for name in names]


def saved_attribute(node: Any, name: str) -> Any:
    """`node._saved_<name>`: a saved input, output, attribute or shape."""
    op = node.op
    if callable(op.shown.get(name)):
        return op.shown[name](node)
    name = next((own for own, shown in op.shown.items() if shown == name), name)
    if name in op.inputs:
        position = op.inputs.index(name)
        if position == node.number_at:
            return node.input(position)
        if op.variadic == position:
            return tuple(as_shown(node.input(k)) for k in range(position, node.input_count()))
        return as_shown(node.input(position))
    if name in op.outputs:
        slot = node.plan.slots.get(~op.outputs.index(name))
        return None if slot is None else unpack(node, slot)
    source, _, what = name.rpartition("_sym_")
    if source in op.inputs:
        return _layout(node, op.inputs.index(source), what)
    if name == "dim" and node.attrs.get("whole"):
        return None
    value = node.attrs[name] if name in node.attrs else op.defaults[name]
    if name == "reduction":
        return _REDUCTIONS.get(value, value)
    return _unsigned(value) if name in _INDICES else value


def _layout(node: Any, position: int, what: str) -> Any:
    """`_saved_<input>_sym_<what>`: of an input's layout."""
    if node.op.variadic == position:
        return tuple(node.input_type(k).shape for k in range(position, node.input_count()))
    shape = node.input_type(position).shape
    if what == "numel":
        return math.prod(shape)
    if what == "strides":
        kept = node.input(position)
        return tuple(strides_of(shape)) if kept is None else tuple(kept.stride())
    return shape


# torch shows a number below 0 that counts elements as the unsigned number of the same bits
_INDICES = {"diagonal", "ignore_index", "offset", "padding_idx", "shifts"}


def _unsigned(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_unsigned, value))
    return value + 2**64 if isinstance(value, int) and value < 0 else value


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}  # torch's enumeration


def as_shown(value: Any) -> Any:
    """Numbers were wrapped to 0-d tensors by torch."""
    if isinstance(value, bool | int | float | complex):
        from .creation import tensor

        kinds = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
        return tensor(value, dtype=BY_NAME[kinds[type(value)]])
    return value


class RawSaved:
    """`node._raw_saved_<name>`: where hooks may be put on one saved value."""

    def __init__(self, node: Any, name: str):
        self._node, self._name = node, name

    @property
    def data(self) -> Any:
        return saved_attribute(self._node, self._name)

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """The value goes through `pack_hook` now and `unpack_hook` when backward wants it."""
        from .eager import history

        node, op = self._node, self._node.op
        key = (op.inputs.index(self._name) if self._name in op.inputs
               else ~op.outputs.index(self._name))  # fmt: skip
        slot = node.plan.slots.get(key)
        if node.saved.__class__ is Freed:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. "
                               + FREED.partition("freed). ")[2])  # fmt: skip
        entry = None if slot is None else node.saved[slot]
        if isinstance(entry, PackedSaved):
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already "
                               "been set is not allowed. Hint: only one pair of hooks is allowed "
                               "at a time.")  # fmt: skip
        if not isinstance(entry, Tensor | SavedOutput):
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is "
                               "forbidden")  # fmt: skip
        value = unpack(node, slot)
        edge = OWN if key < 0 else history(value)
        packed = PackedSaved((pack_hook, unpack_hook), value, edge)
        node.saved = PackedSlots((*node.saved[:slot], packed, *node.saved[slot + 1 :]))


RawSaved.__name__ = RawSaved.__qualname__ = "SavedTensor"  # what users see it as
RawSaved.__module__ = f"{__name__.partition('.')[0]}._C._autograd"

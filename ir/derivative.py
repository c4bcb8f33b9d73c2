"""The derivative of one recorded call, as data that can be looked up and built as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .builder import Builder
from .op import Op
from .pull import Frame, puller
from .types import TensorType

Settings = tuple[tuple[str, type, Any], ...]


def settings_of(attrs: dict[str, Any]) -> Settings:
    """Attributes to look something up by; with their types, since 1 equals True."""
    return tuple([(name, value.__class__, value) for name, value in attrs.items()])


class Derivative(NamedTuple):
    """The derivative of a recorded call: operands are gradients of results, then saved values."""

    op: Op
    settings: Settings
    needs: tuple[bool, ...]
    slots: tuple[int, ...]  # what the saved values are: inputs by position, outputs as ~position
    inputs: tuple[TensorType | None, ...]
    outputs: tuple[TensorType, ...]

    def build(self, operands: list[Any]) -> Sequence[Any]:
        """The gradients of all inputs, in ops on the operands."""
        count = len(self.outputs)
        saved = dict(zip(self.slots, operands[count:]))
        return puller(self.op, self.needs)(SavedFrame(self, saved), operands[:count])


class SavedFrame(Frame):
    """A recorded call as `pull` sees it while its derivative is built."""

    def __init__(self, derivative: Derivative, saved: dict[int, Any]):
        self.derivative, self.saved, self.op = derivative, saved, derivative.op
        self.attrs = {name: value for name, _, value in derivative.settings}

    def input(self, position: int) -> Any:
        return self.saved.get(position)

    def output(self, position: int) -> Any:
        return self.saved[~position]

    def input_type(self, position: int) -> Any:
        return self.derivative.inputs[position]

    def output_type(self, position: int) -> TensorType:
        return self.derivative.outputs[position]

    def input_count(self) -> int:
        return len(self.derivative.inputs)


def add_outputs(builder: Builder, operands: Sequence[Any], results: Any) -> list[int | None]:
    """Makes results the outputs of what is built, and says where each is found.

    A result is absent (None), one of the operands (its number) or an output (~ its number).
    """
    places = {id(value): k for k, value in enumerate(operands) if value is not None}
    outline: list[int | None] = []
    made: dict[int, int] = {}
    for result in results:
        if result is None or id(result) in places:
            outline.append(None if result is None else places[id(result)])
            continue
        if id(result) not in made:
            made[id(result)] = len(made)
            builder.output(result)
        outline.append(~made[id(result)])
    return outline


def results_in(outline: Sequence[int | None], operands: Any, made: Any) -> list[Any]:
    """The results that `add_outputs` described, given the outputs' values."""
    return [None if k is None else operands[k] if k >= 0 else made[~k] for k in outline]

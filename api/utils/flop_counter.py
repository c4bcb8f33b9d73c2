"""`torch.utils.flop_counter`: how many operations products and convolutions take.

Counted are the ops that torch counts, by its formulas and under its names: an interpreter on the
stack sees each op that runs, forward and backward; see Note [Names of the dispatcher].
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from math import prod
from typing import Any

from ..aten import overload_of, packet
from ..ir.bind import notify, state
from ..tracer.function_modes import HandingOn
from ..tracer.tensor import Tensor
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]

_SUFFIXES = ("", "K", "M", "B", "T")


# --- formulas, of shapes --------------------------------------------------------------------------


def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Of a product of matrices."""
    return 2 * prod(a_shape) * b_shape[-1]


def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """Of a product; the sum is not counted."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """Of a batch of products."""
    return mm_flop(a_shape, b_shape)


def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, *args: Any, **kwargs: Any) -> int:
    """Of a batch of products; the sum is not counted."""
    return mm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """Of a convolution: a product of the kernel for each place it is put at."""
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * prod(places) * prod(w_shape)


flop_registry: dict[Any, Any] = {
    packet("mm"): mm_flop, packet("addmm"): addmm_flop, packet("bmm"): bmm_flop,
    packet("baddbmm"): baddbmm_flop,
}  # fmt: skip


def register_flop_formula(targets: Any, get_raw: bool = False) -> Any:
    """@register_flop_formula(torch.ops.aten.exp): the function gives its count, of shapes.

    With `get_raw` it is given the arguments themselves.
    """

    def register(formula: Any) -> Any:
        formula._get_raw = get_raw
        for target in targets if isinstance(targets, list | tuple) else (targets,):
            flop_registry[target] = formula
        return formula

    return register


# --- counting -------------------------------------------------------------------------------------


class _Counting(HandingOn):
    """The interpreter that counts."""

    def __init__(self, counter: FlopCounterMode):
        super().__init__(state.top)
        self.counter, self.node = counter, None

    def __call__(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        before, state.top = state.top, self.below  # parts of it are not counted again
        try:
            output = self.below(op, inputs, attrs)
        finally:
            state.top = before
        name, count = self.counted(op.name, inputs, attrs, output)
        if name is not None:
            for module in self.counter.mod_tracker.parents:
                self.counter.flop_counts[module][name] += count
        return output

    def pulling(self, node: Any) -> None:
        """Backward comes to a node, or to its end."""
        self.node = None if node is None else node.name()

    def counted(self, name: str, inputs: Any, attrs: Any, output: Any) -> tuple[Any, int]:
        """The op's name in torch and its count; no name if it is not counted."""
        if self.node is not None and self.node.startswith("ScaledDotProduct"):
            return None, 0  # one kernel in torch, which it does not count on the CPU
        if name in ("convolution", "conv_input", "conv_weight"):
            backward = self.node is not None or name == "conv_weight"
            return packet("convolution_backward" if backward else "convolution"), convolution_flop(
                name, inputs, attrs, output
            )
        if name in ("gru_loop", "rnn_loop", "lstm_loop"):  # a product for each step
            return packet("addmm"), 2 * prod(inputs[0].shape) * inputs[1].shape[-1]
        if name in ("gru_grad", "rnn_grad", "lstm_grad"):
            return packet("mm"), 2 * prod(inputs[0].shape) * inputs[1].shape[-1]
        target = overload_of(name)._overloadpacket
        formula = self.counter.flop_registry.get(target)
        if formula is None:
            return None, 0
        if getattr(formula, "_get_raw", False):
            return target, formula(*inputs, **attrs, out_val=output)
        given, made = shapes_of(inputs), shapes_of(output)
        return target, formula(*given, **attrs, out_shape=made)


def convolution_flop(name: str, inputs: Any, attrs: Any, output: Any) -> int:
    first, second = (tuple(value.shape) for value in inputs[:2])
    if name == "conv_weight":  # of the input and the output's gradient; torch leaves groups out
        return 2 * first[0] * first[1] * second[1] * prod(second[2:]) * prod(attrs["kernel"])
    return conv_flop_count(first, second, tuple(output.shape), name == "conv_input")


def shapes_of(value: Any) -> Any:
    """Shapes in the place of tensors."""
    if isinstance(value, tuple | list):
        return type(value)(shapes_of(item) for item in value)
    return value.shape if isinstance(value, Tensor) else value


class FlopCounterMode:
    """with FlopCounterMode() as counter: counts operations, in all and of each module."""

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True,
                 custom_mapping: Any = None):  # fmt: skip
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it",
                          stacklevel=2)  # fmt: skip
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self.flop_registry = {**flop_registry, **(custom_mapping or {})}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """The sum."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, "Global" being all, and by op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def __enter__(self) -> FlopCounterMode:
        notify("overridden", type(self))  # a recording would count its first run only
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.interpreter = state.top = _Counting(self)
        return self

    def __exit__(self, *error: Any) -> None:
        state.top = self.interpreter.below
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table, of modules up to `depth` deep."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        modules = [name for name in sorted(self.flop_counts)
                   if name != "Global" and (depth is None or name.count(".") < depth)]  # fmt: skip
        sums = [sum(self.flop_counts[name].values()) for name in modules]
        rows = [row for name in modules for row in self._rows(name, " " * name.count("."), total)]
        if "Global" in self.flop_counts and not any(count >= total for count in sums):
            rows = [*self._rows("Global", "", total), *([" " + row[0], *row[1:]] for row in rows)]
        return as_table(["Module", "FLOP", "% Total"], rows or [["Global", "0", "0%"]])

    def _rows(self, module: str, indent: str, total: int) -> list[list[str]]:
        counts = self.flop_counts[module]
        named = [(module, sum(counts.values())), *((f" - {op}", n) for op, n in counts.items())]
        unit = max(0, min(len(_SUFFIXES) - 1, (len(str(total)) - 2) // 3))
        return [[indent + name, f"{count / 1000**unit:.3f}{_SUFFIXES[unit]}",
                 f"{count / total:.2%}" if total else "0%"] for name, count in named]  # fmt: skip


def as_table(header: list[str], rows: list[list[str]]) -> str:
    """Columns two blanks apart, the first to the left and the others to the right."""
    widths = [max(len(name) + 2, *(len(row[k]) for row in rows)) for k, name in enumerate(header)]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("  ".join([line[0].ljust(widths[0]),
                                *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:]))])
                     for line in lines)  # fmt: skip

"""The reader that kernels are emitted with: scalar code, with folding and rounding rules."""

from __future__ import annotations

from typing import Any

from ..ir.graph import Node
from ..ir.op import Reduce
from ..ir.scalar import FLOATS, HALVES, SIGNED
from .kernel import CONSTANT, Instr
from .scalar import LLVMReader, Scalar

EXACT = (
    "copy",
    "clone",
    "cast",
    "where",
    "masked_fill",
    "neg",
    "abs",
    "maximum",
    "minimum",
    "relu",
)
RANGE = {name: (-(2 ** (int(name[3:]) - 1)), 2 ** (int(name[3:]) - 1) - 1) for name in SIGNED}


class KernelReader(LLVMReader):
    """While `folding`, sums and products may be reordered and extrema are intrinsics: both are
    what lets LLVM keep several partial results side by side."""

    folding = False

    def _arithmetic(self, name: str, a: Scalar, b: Scalar) -> Scalar:
        if not self.folding or a.dtype not in FLOATS:
            return super()._arithmetic(name, a, b)
        dtype, m = self.same(name, (a, b)), self.m
        kind = m.type(a.value.element)
        text = f"f{name} reassoc {kind} {a.value.text}, {b.value.text}"
        return Scalar(m.emit(text, a.value.element), dtype)

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        return self._extreme("maximum", a, b)

    def minimum(self, a: Scalar, b: Scalar) -> Scalar:
        return self._extreme("minimum", a, b)

    def _extreme(self, name: str, a: Scalar, b: Scalar) -> Scalar:
        if not self.folding or a.dtype not in FLOATS:
            return getattr(super(), name)(a, b)
        m, element = self.m, a.value.element
        kind, suffix = m.type(element), m.suffix(element)
        text = (
            f"call nsz {kind} @llvm.{name}.{suffix}({kind} {a.value.text}, {kind} {b.value.text})"
        )
        return Scalar(m.emit(text, element), a.dtype)

    def rounded(self, x: Scalar, dtype: str) -> Scalar:
        return rounded(self, x, dtype)

    # -- reductions ------------------------------------------------------------------------

    def start(self, node: Node) -> Scalar:
        """The value a reduction starts from."""
        return self.start_of(node.op.lower.start, node.outputs[0].dtype.name)

    def start_of(self, start: float | str, dtype: str) -> Scalar:
        """A number, or the "lowest" or highest one there is."""
        if isinstance(start, int | float):
            return self.const(start, dtype)
        sign = -1 if start == "lowest" else 1
        if dtype in FLOATS:
            return self.const(sign * float("inf"), dtype)
        if dtype == "bool":
            return self.const(sign > 0, dtype)
        low, high = RANGE.get(dtype) or (0, 2 ** int(dtype[4:]) - 1)
        return self.const(low if sign < 0 else high, dtype)

    def combine(self, node: Node, total: Scalar, x: Any) -> Scalar:
        """One more element, or partial result, in a running result."""
        with self.at(id(node), total.dtype):
            self.folding = True
            try:
                return self.cast(node.op.lower.combine(self, total, x), total.dtype)
            finally:
                self.folding = False


# --- nodes, by any reader ------------------------------------------------------------------------


def evaluate(s: Any, instr: Instr, operands: list[Scalar | None]) -> Scalar:
    """The value of an `apply` or `constant` instruction."""
    node, dtype = instr.node, instr.dtype
    assert node is not None
    if isinstance(node.op.lower, Reduce):
        start = s.start(node)
        if instr.kind == CONSTANT:
            return start
        return rounded(s, s.combine(node, start, operands[0]), dtype)
    if node.op.name == "iota":
        return iota(s, node, operands[0], dtype)
    if node.op.name == "coordinate":
        assert operands[0] is not None
        return s.cast(operands[0], dtype)
    first = next((o.dtype for o in operands if o is not None), dtype)
    with s.at(id(node), first):
        result = node.op.lower.emit(s, *operands, **node.attributes)
        if result.dtype != dtype:
            return s.cast(result, dtype)
    return result if node.op.name in EXACT else rounded(s, result, dtype)


def rounded(s: Any, x: Scalar, dtype: str) -> Scalar:
    """16-bit floats are rounded after each op, as eager does."""
    if dtype not in HALVES:
        return x
    return s.from_memory(s.to_memory(x), dtype)


def iota(s: Any, node: Node, position: Any, dtype: str) -> Scalar:
    attrs = node.attributes
    wide = "float64" if node.outputs[0].dtype.is_floating_point else "int64"
    k = s.cast(position, wide)
    start, step = s.const(attrs["start"], wide), s.const(attrs["step"], wide)
    return s.cast(s.add(start, s.mul(k, step)), dtype)

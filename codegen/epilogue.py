"""What happens to a product's elements before they are stored: a fused pointwise tail.

    def bias_relu(site):
        s = site.s
        y = s.add(site.value, site.load("bias", "float32", 0, 1))
        return s.maximum(y, s.const(0))

    Epilogue(("bias",), bias_relu)

Kernels call `emit` for each vector of accumulators, full or cut off at the last column, and for
single elements; so it must read its buffers through `site.load` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .scalar import ITEMSIZE, MEMORY, LLVMReader, Scalar


@dataclass(frozen=True)
class Epilogue:
    """`buffers` name the kernel's extra pointer arguments, in order."""

    buffers: tuple[str, ...]
    emit: Callable[[Site], Scalar]

    def probe(self, dtype: str) -> tuple[str, bool]:
        """Its lines for one element, which say all of it, and whether it calls functions."""
        s = LLVMReader(dtype)
        s.store(self._once(s, s.load("%c", dtype)), "%c")
        return s.text(), bool(s.calls)

    def copies(self, dtype: str) -> bool:
        """Are elements stored as they are? Then a kernel does better without it."""
        s = LLVMReader(dtype)
        value = s.load("%c", dtype)
        return self._once(s, value) == value

    def _once(self, s: LLVMReader, value: Scalar) -> Scalar:
        return self.emit(Site(s, value, "%row", "%column", "%batch", 1, False))


@dataclass
class Site:
    """Where an epilogue stands: a value of C at (row, column), or a vector along the columns.

    row, column and batch are LLVM operands (i64); `valid` lanes count, the rest is beyond the last
    column; `swapped` says that the kernel computes the transpose of what the user asked for.
    """

    s: LLVMReader
    value: Scalar
    row: str
    column: str
    batch: str
    valid: int | str
    swapped: bool

    @property
    def masked(self) -> bool:
        return isinstance(self.valid, str) or self.valid < self.s.m.lanes

    def load(
        self, buffer: str, dtype: str, row_stride: int, column_stride: int, batch_stride: int = 0
    ) -> Scalar:
        """buffer[batch, row, column] for a buffer with these strides, in elements; 0 broadcasts."""
        if self.swapped:
            row_stride, column_stride = column_stride, row_stride
        m, memory = self.s.m, MEMORY[dtype]
        at = self._offset([(self.row, row_stride), (self.column, column_stride),
                           (self.batch, batch_stride)])  # fmt: skip
        where = f"%{m.prefix}p{m.count}"
        m.count += 1
        m.effect(f"{where} = getelementptr inbounds {memory}, ptr %{buffer}, i64 {at}")
        if m.lanes == 1 or (column_stride == 1 and not self.masked):
            return self.s.load(where, dtype)
        if column_stride == 0:
            return self._broadcast(where, dtype)
        if column_stride == 1:
            return self._masked(where, dtype)
        return self._gather(where, dtype, column_stride)

    def _offset(self, terms: list[tuple[str, int]]) -> str:
        m, total = self.s.m, ""
        for index, stride in terms:
            if not stride or not index:
                continue
            part = self._index(f"mul i64 {index}, {stride}") if stride != 1 else index
            total = self._index(f"add i64 {total}, {part}") if total else part
        m.count += 1
        return total or "0"

    def _index(self, instruction: str) -> str:
        """An i64 that is not a vector, whatever the lanes."""
        m = self.s.m
        name = f"%{m.prefix}i{m.count}"
        m.count += 1
        m.effect(f"{name} = {instruction}")
        return name

    def _broadcast(self, where: str, dtype: str) -> Scalar:
        m, memory = self.s.m, MEMORY[dtype]
        kind = m.type(memory)
        one = self._index(f"load {memory}, ptr {where}, align {ITEMSIZE[memory]}")
        first = m.emit(f"insertelement {kind} poison, {memory} {one}, i32 0", memory)
        zeros = f"<{m.lanes} x i32> zeroinitializer"
        text = f"shufflevector {kind} {first.text}, {kind} poison, {zeros}"
        return self.s.from_memory(m.emit(text, memory), dtype)

    def mask(self) -> str:
        """The lanes that count, as an operand of type <lanes x i1>."""
        lanes = self.s.m.lanes
        if isinstance(self.valid, str):
            return self.valid
        return "<" + ", ".join(f"i1 {str(i < self.valid).lower()}" for i in range(lanes)) + ">"

    def _masked(self, where: str, dtype: str) -> Scalar:
        m, memory = self.s.m, MEMORY[dtype]
        kind = m.type(memory)
        text = (
            f"call {kind} @llvm.masked.load.{m.suffix(memory)}.p0(ptr align {ITEMSIZE[memory]} "
            f"{where}, {m.type('i1')} {self.mask()}, {kind} zeroinitializer)"
        )
        return self.s.from_memory(m.emit(text, memory), dtype)

    def load_at(self, where: str, dtype: str) -> Scalar:
        """The lanes that count at a pointer, contiguous."""
        return self._masked(where, dtype) if self.masked else self.s.load(where, dtype)

    def store_at(self, x: Scalar, where: str) -> None:
        """Stores the lanes that count at a pointer, contiguous."""
        if not self.masked:
            self.s.store(x, where)
            return
        m, raw = self.s.m, self.s.to_memory(x)
        m.effect(
            f"call void @llvm.masked.store.{m.suffix(raw.element)}.p0({m.type(raw.element)} "
            f"{raw.text}, ptr align {ITEMSIZE[raw.element]} {where}, "
            f"{m.type('i1')} {self.mask()})"
        )

    def _gather(self, where: str, dtype: str, stride: int) -> Scalar:
        m, memory = self.s.m, MEMORY[dtype]
        kind, lanes = m.type(memory), m.lanes
        steps = ", ".join(f"i64 {i * stride}" for i in range(lanes))
        text = f"getelementptr {memory}, ptr {where}, <{lanes} x i64> <{steps}>"
        pointers = m.emit(text, "ptr")
        text = (
            f"call {kind} @llvm.masked.gather.{m.suffix(memory)}.v{lanes}p0(<{lanes} x ptr> "
            f"align {ITEMSIZE[memory]} {pointers.text}, {m.type('i1')} {self.mask()}, "
            f"{kind} zeroinitializer)"
        )
        return self.s.from_memory(m.emit(text, memory), dtype)

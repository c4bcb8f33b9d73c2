"""Long sums for a small C: parts of k, each a product of its own, whose results are added up.

So is the gradient of a small layer over many examples. Other kinds cut rows or columns, of which
there are too few for threads to share; and a part of B and of A stays in L1 for all tiles.

Invariant: an element of C sums its products part by part, in order, whatever the chunks.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.cached import cached_property
from .gemm_base import ELEMENT, SIZE, Kernel, Matmul, added_up
from .gemm_core import Core
from .gemm_kinds import Direct
from .scalar import LLVMReader, Scalar
from .target import Target

FEWEST, PARTS = 16, 64  # of k: threads may share them evenly, but their results are kept
ROOM = 2**15  # bytes of A and B in a part, if there are not too many then


class Deep(Kernel):
    """Direct products of parts of k; the last one may be shorter."""

    template, kind = "gemm_deep.ll.j2", "deep"

    def __init__(self, p: Matmul, target: Target):
        self.size = SIZE[ELEMENT[p.dtype]]
        longest = max(min(p.k // FEWEST, ROOM // ((p.m + p.n) * self.size)), -(-p.k // PARTS))
        self.depth = min(p.k, Core.even(p.k, longest, target.lanes(ELEMENT[p.dtype])))
        self.parts, self.rest = divmod(p.k, self.depth)
        self.pass_rows, self.pass_columns = ("0", str(p.m)), ("0", str(p.n))
        super().__init__(p, target)

    @staticmethod
    def can(p: Matmul) -> bool:
        return p.k > 0 and p.items == 1 and p.fold is None and Direct.can(p)

    @property
    def extent(self) -> int:
        return 1  # chunks are those of the parts

    @property
    def pitch(self) -> int:
        """Elements of one part's result."""
        return -(-self.m * self.n // 16) * 16

    @property
    def slots(self) -> int:
        """Parts, with the one that is shorter."""
        return self.parts + (self.rest > 0)

    @property
    def slot_bytes(self) -> int:
        return self.slots * self.pitch * self.size

    def _part(self, name: str, k: int, items: int) -> Kernel:
        p, depth = self.product, self.depth
        batch = ((items, depth * p.a[1], depth * p.b[0], self.pitch),) if items > 1 else ()
        part = replace(p, name=f"{p.name}.{name}", k=k, c=(p.n, 1), batch=batch, epilogue=None,
                       accumulate=False, swapped=False)  # fmt: skip
        return Direct(part, self.target)

    @cached_property
    def inner(self) -> list[tuple[Kernel, int]]:
        """The products of all whole parts, and of what is left; with their first k."""
        found = [(self._part("parts", self.depth, self.parts), 0)]
        if self.rest:
            found.append((self._part("rest", self.rest, 1), self.parts * self.depth))
        return found

    @cached_property
    def texts(self) -> list[str]:
        return [kernel.emit().text for kernel, _ in self.inner]

    def imports(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for kernel, _ in self.inner for name in kernel.imports()))

    def finished(self, s: LLVMReader) -> Scalar:
        return added_up(self, s, self.n, self.slots, self.pitch)

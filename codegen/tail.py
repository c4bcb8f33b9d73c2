"""Pointwise tails of matrix products: bias, activation, residual, done on tiles in registers.

A kernel becomes a product's tail if it is the product's only reader, stores one value in the
product's own layout and reads everything else at positions linear in row, column and batch. The
product is then launched in the kernel's place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..ir.graph import Node, Var
from ..ir.op import Reduce
from .classify import TEMPLATE
from .cluster import Cluster
from .epilogue import Epilogue, Site
from .kernel import APPLY, CONSTANT, LOAD, STORE, Access, Kernel
from .reader import evaluate
from .schedule import Scheduler

ONE_BLOCK = 256  # terms that a packed product sums up in one go: gemm_core's block_k


@dataclass(frozen=True)
class Read:
    """A value that a tail loads: strides for (row, column, batch)."""

    access: Access
    row: int
    column: int
    batch: int


@dataclass(frozen=True, eq=False)
class Tail:
    """What happens to the elements of `product` before they are stored as `result`."""

    product: Node
    kernel: Kernel
    result: Var
    reads: dict[int, Read]  # by instruction

    @property
    def once(self) -> bool:
        """Is each element written once? Longer sums are kept in the result in between."""
        factor = self.product.inputs[0].type.numel  # type: ignore[union-attr]
        rows = self.product.outputs[0].type.numel // self.product.outputs[0].shape[-1]
        return factor <= ONE_BLOCK * rows

    def names(self) -> dict[Any, str]:
        """A name for each buffer and offset that is read."""
        keys = dict.fromkeys((r.access.var, r.access.offset) for r in self.reads.values())
        return {key: f"extra{k}" for k, key in enumerate(keys)}

    def epilogue(self) -> Epilogue | None:
        """None where elements are only renamed, as the result of a convolution is."""
        names = self.names()
        made = Epilogue(tuple(names.values()), lambda site: self.emit(site, names))
        return None if made.copies(self.result.dtype.name) else made

    def emit(self, site: Site, names: dict[Any, str]) -> Any:
        known: dict[int, Any] = {}
        result = None
        lines = site.s.lines
        for i, instr in enumerate(self.kernel.instrs):
            mark = len(lines)
            if instr.kind == STORE:
                result = known[instr.operands[0]]  # type: ignore[index]
            elif instr.kind == LOAD and i not in self.reads:
                known[i] = site.value
            elif instr.kind == LOAD:
                r = self.reads[i]
                name = names[r.access.var, r.access.offset]
                known[i] = site.load(name, instr.dtype, r.row, r.column, r.batch)
            else:
                operands = [None if o is None else known[o] for o in instr.operands]
                known[i] = evaluate(site.s, instr, operands)
            # `; %3` says that a line is for instruction 3
            lines[mark:] = [line._replace(text=f"{line.text} ; %{i}") for line in lines[mark:]]
        return result


def find(plan: Scheduler, kernels: dict[Cluster, Kernel], kept: Iterable[Var],
         ) -> dict[Cluster, Tail]:  # fmt: skip
    """The kernels that are tails of products; `kept` values have to be stored anyway."""
    readers: dict[Var, list[Cluster]] = {}
    for cluster in plan.clusters:
        for var in loaded(plan, kernels, cluster):
            readers.setdefault(var, []).append(cluster)
    kept, found, taken = set(kept), {}, set()
    for var, clusters in readers.items():
        home = plan.home.get(var)
        if home is None or home.kind != TEMPLATE or var in kept or len(clusters) != 1:
            continue
        node, kernel = home.members[0], kernels.get(clusters[0])
        if node.op.lower.name != "matmul" or kernel is None or clusters[0] in taken:
            continue
        tail = as_tail(node, var, kernel)
        if tail is not None:
            found[clusters[0]] = tail
            taken.add(clusters[0])
    return found


def loaded(plan: Scheduler, kernels: dict[Cluster, Kernel], cluster: Cluster) -> set[Var]:
    kernel = kernels.get(cluster)
    if kernel is not None:
        return {i.access.var for i in kernel.instrs if i.kind == LOAD and i.access}
    return {plan.base(v)[0] for n in cluster.members for v in n.present()}


def as_tail(node: Node, var: Var, kernel: Kernel) -> Tail | None:
    """The kernel as a tail of the product, or None."""
    if kernel.inner or kernel.free is not None or kernel.points != var.type.numel:
        return None
    if not kernel.points:
        return None  # nothing to do, and no strides to speak of
    kinds = {i.kind for i in kernel.instrs}
    stores = [i for i in kernel.instrs if i.kind == STORE]
    products = {i.access for i in kernel.instrs if i.kind == LOAD and i.access.var is var}  # type: ignore
    if not kinds <= {LOAD, APPLY, CONSTANT, STORE} or len(stores) != 1 or len(products) != 1:
        return None
    if any(i.node is not None and isinstance(i.node.op.lower, Reduce) for i in kernel.instrs):
        return None  # of no elements, or of one: a nest's reader knows where totals start
    (product,) = products
    store = stores[0].access
    assert store is not None
    same = (store.strides, store.offset) == (product.strides, product.offset)
    if not same or store.var.dtype is not var.dtype or store.var.type.numel != var.type.numel:
        return None
    rows, columns = var.shape[-2:]
    reads = {}
    for k, instr in enumerate(kernel.instrs):
        if instr.kind != LOAD or instr.access is product or instr.access == product:
            continue
        strides = linear(instr.access, product, kernel.sizes, rows, columns)
        if strides is None or instr.access.var is store.var:  # type: ignore[union-attr]
            return None
        reads[k] = Read(instr.access, *strides)  # type: ignore[arg-type]
    return Tail(node, kernel, store.var, reads)


def linear(access: Any, product: Access, sizes: list[int], rows: int, columns: int,
           ) -> tuple[int, int, int] | None:  # fmt: skip
    """The access's strides for (row, column, batch) of the product, if it has such.

    A loop may run on from one to the next, as one over the channels of all groups does: then it
    has to go on there as it began.
    """
    units = {"column": 1, "row": columns, "batch": rows * columns}
    counts = {"column": columns, "row": rows}
    found: dict[str, int] = {}
    for size, step, own in zip(sizes, access.strides, product.strides):
        if size == 1:
            continue
        kind = "column" if own < columns else "row" if own < rows * columns else "batch"
        turns, rest = divmod(own, units[kind])
        if rest or not turns or step % turns:
            return None
        stride, reach = step // turns, turns * (size - 1)
        while found.setdefault(kind, stride) == stride and reach >= counts.get(kind, reach + 1):
            stride, reach = stride * counts[kind], reach // counts[kind]
            kind = "row" if kind == "column" else "batch"
        if found[kind] != stride:
            return None
    return found.get("row", 0), found.get("column", 0), found.get("batch", 0)

"""From graph to Program: schedule, lower, place values in buffers, emit.

Clusters are lowered last to first, because what a cluster must store is what later ones load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..ir.graph import WRITE, Graph, Node, Var
from ..ir.program import (
    INPUT,
    OUTPUT,
    STATUS,
    TEMPORARY,
    Buffer,
    HostCall,
    KernelInfo,
    Launch,
    Module,
    Program,
    Result,
    Strided,
    Word,
)
from . import (
    draws,  # noqa: F401  enters its template
    edges,
    expand_frames,  # noqa: F401  enters its rules
    expand_order,  # noqa: F401  enters its rules
    expand_scatter,  # noqa: F401  enters its rules
    expand_spread,  # noqa: F401  enters its rules
    expand_windows,  # noqa: F401  enters its rules
    loops,  # noqa: F401  enters its template
    order,  # noqa: F401  enters its templates
    scan,  # noqa: F401  enters its template
    tally,
)
from . import (
    tail as tails,
)
from .affine import natural, strides_of
from .classify import HOST, JOIN, MAP, TEMPLATE, UPDATE
from .cluster import Cluster
from .emit import emit
from .kernel import LOAD, MODIFY, STORE, TALLY, Kernel, Lowering, describe
from .lines import STATUS_WORD
from .nest import Nest
from .pairs import of_complex
from .pieces import in_pieces
from .schedule import Scheduler
from .sharing import Sharing
from .skeleton import Argument, Emitted
from .target import DEFAULT, Target
from .templates_table import BUILDERS, Operand
from .trusted import last_check, trust
from .vectors import suited

FEW = 256  # points of a loop nest that runs sooner than LLVM's whole optimiser has looked at it

# What a kernel's status means, less one.
ERRORS = ((IndexError, "index out of range in self"),
          (RuntimeError, "index is out of bounds for a dimension of the tensor"))  # fmt: skip


@dataclass
class Assembler:
    """Collects the parts of a Program."""

    graph: Graph
    target: Target = DEFAULT
    tell: Callable[[Module], object] = lambda module: None  # of each module, as soon as it is there
    buffers: list[Buffer] = field(default_factory=list)
    steps: list[Launch | HostCall] = field(default_factory=list)
    modules: dict[str, Module] = field(default_factory=dict)
    infos: list[KernelInfo] = field(default_factory=list)
    place: dict[Var, int] = field(default_factory=dict)
    kernels: dict[Cluster, Kernel] = field(default_factory=dict)
    tails: dict[Cluster, tails.Tail] = field(default_factory=dict)
    checks: bool = False

    def run(self) -> Program:
        self.plan = Scheduler(self.graph)
        self.lower()
        for k, item in enumerate(self.graph.inputs):
            self.add_buffer(self.plan.stored(item.var), INPUT, k, item.name or f"in{k}")
        results = self.place_outputs()
        gone = {id(tail.product) for tail in self.tails.values()}
        for cluster in self.plan.clusters:
            self.take_memory(cluster)
            if cluster in self.tails:
                BUILDERS["matmul"](self, self.tails[cluster].product, self.tails[cluster])
            elif cluster in self.kernels:
                self.emit_kernel(self.kernels[cluster])
            elif cluster.kind in (HOST, TEMPLATE) and id(cluster.members[0]) not in gone:
                self.emit_opaque(cluster.members[0], cluster.kind)
        results = [self.write_back(r) for r in results]
        written = frozenset(r.target for r in results if r.target is not None)
        return Program(
            self.graph.name, tuple(i.var.type for i in self.graph.inputs), tuple(results),
            tuple(self.buffers), tuple(self.steps), tuple(self.modules.values()),
            tuple(self.infos), written, ERRORS if self.checks else (),
        )  # fmt: skip

    def lower(self) -> None:
        needed = {var for _, var in self.plan.outputs} | self.plan.unread()
        kept = set(needed)
        for cluster in self.plan.clusters:
            if cluster.kind in (HOST, TEMPLATE):  # what they read is stored for certain
                needed.update(self.plan.base(v)[0] for v in cluster.members[0].present())
        for cluster in reversed(self.plan.clusters):
            if cluster.kind == MAP:
                kernel = Lowering(self.plan, cluster, needed).run()
                if kernel is not None:
                    self.kernels[cluster] = kernel
                continue
            (node,) = cluster.members
            if cluster.kind in (JOIN, UPDATE):
                if node.outputs[0] not in needed:
                    continue
                needed.update(v for v, (w, _) in self.plan.inside.items() if w is node.outputs[0])
                if cluster.kind == UPDATE:
                    self.kernels[cluster] = Lowering(self.plan, cluster, needed).run_update()
        trust(self.plan, self.kernels)
        tally.merge(self.plan, self.kernels, kept)
        self.tails = tails.find(self.plan, self.kernels, kept)
        edges.merge(self.plan, self.kernels, self.tails)
        self.sharing = Sharing(self.plan, self.kernels, self.tails)
        self.last_check = last_check(self.plan, self.kernels)

    # -- buffers ---------------------------------------------------------------------------

    def add_buffer(self, var: Var, kind: str, index: int = -1, name: str = "") -> int:
        self.place[var] = len(self.buffers)
        label = name or f"t{len(self.buffers)}"
        self.buffers.append(Buffer(kind, var.type.nbytes, index, label))
        return self.place[var]

    def buffer_of(self, var: Var) -> int:
        if var not in self.place:
            self.add_buffer(var, TEMPORARY)
        return self.place[var]

    def scratch(self, nbytes: int, name: str) -> int:
        self.buffers.append(Buffer(TEMPORARY, nbytes, -1, f"{name}{len(self.buffers)}"))
        return len(self.buffers) - 1

    def place_outputs(self) -> list[Result]:
        results, fresh = [], 0
        for output, var in self.plan.outputs:
            if output.kind == WRITE:
                target = output.target
                assert target is not None
                source = self.plan.stored(self.graph.inputs[target].var)
                at_once = self.plan.home[var].position > self.last_check
                if output.donated and at_once and self.sharing.fits(var, source):
                    self.place[var] = target
                else:
                    self.add_buffer(var, TEMPORARY)
                results.append(Result(output.var.type, self.place[var], target))
            else:
                self.add_buffer(var, OUTPUT, fresh, f"out{fresh}")
                fresh += 1
                results.append(Result(output.var.type, self.place[var]))
        return results

    def take_memory(self, cluster: Cluster) -> None:
        """Values that the cluster stores take the memory of those it reads last, if marked so."""
        taken: set[int] = set()
        for var in self.sharing.stored(cluster):
            if var in self.place:
                continue
            places = map(self.place.get, self.sharing.overwritten(var))  # None: a tail's product
            free = (p for p in places if p is not None and self.buffers[p].kind == TEMPORARY)
            found = next((p for p in free if p not in taken), None)
            if found is not None:
                self.place[var] = found
                taken.add(found)

    def write_back(self, result: Result) -> Result:
        """Copies a result to the input it belongs to, where it was not computed in place."""
        if result.target is None or result.buffer == result.target:
            return result
        nbytes = self.buffers[result.buffer].nbytes
        words = (Word(0, result.target), Word(0, result.buffer), Word(nbytes))
        self.infos.append(KernelInfo("write_back", "copy", f"write back to "
                                     f"{self.buffers[result.target].name}", ()))  # fmt: skip
        self.steps.append(Launch("wengert_copy", words, int(nbytes > 0), (result.buffer,),
                                 (result.target,), len(self.infos) - 1))  # fmt: skip
        return Result(result.type, result.target, result.target)

    def add_module(self, name: str, module: Module) -> None:
        """Adds a module, unless it is there; the whole optimiser runs if one of its users wants."""
        known = self.modules.get(name)
        if known is None or (known.light and not module.light):
            self.modules[name] = module
            self.tell(module)

    # -- steps -----------------------------------------------------------------------------

    def name_of(self, var: Var) -> str:
        return self.buffers[self.buffer_of(var)].name

    def emit_kernel(self, kernel: Kernel) -> None:
        text = describe(kernel, self.name_of)
        if kernel.points == 0:
            return
        nest = suited(kernel)
        split = in_pieces(kernel, nest)
        if split is None:
            self.emit_nest(nest, text)
            return
        first, second, _ = split
        self.emit_nest(first, f"{text}\nin {first.pieces} pieces of {first.piece}")
        self.emit_nest(second, describe(second.kernel, self.name_of))

    def emit_nest(self, nest: Nest, text: str) -> None:
        kernel = nest.kernel
        emitted = emit(nest, self.buffer_of, self.target)
        light = emitted.light or kernel.points <= FEW
        self.add_module(emitted.name, Module(
            emitted.write, emitted.identity, (emitted.name,), (), light))  # fmt: skip
        loads = [i.access.var for i in kernel.instrs if i.kind == LOAD]  # type: ignore
        stores = [i.access.var for i in kernel.instrs if i.kind in (STORE, MODIFY, TALLY)]  # type: ignore
        traffic = sum(v.type.nbytes for v in {*loads}) + sum(v.type.nbytes for v in stores)
        info = KernelInfo(emitted.name, nest.form, text, kernel.nodes, traffic,
                          kernel.points * kernel.weight())  # fmt: skip
        self.launch(emitted, info, loads, stores)

    def launch(self, emitted: Emitted, info: KernelInfo, loads: list[Var], stores: list[Var],
               ) -> None:  # fmt: skip
        words = tuple(self.word(a) for a in emitted.arguments)
        reads = tuple(dict.fromkeys(self.buffer_of(v) for v in loads))
        writes = tuple(dict.fromkeys(self.buffer_of(v) for v in stores))
        self.infos.append(info)
        self.steps.append(Launch(emitted.name, words, emitted.chunks, reads, writes,
                                 len(self.infos) - 1))  # fmt: skip

    def word(self, argument: Argument) -> Word:
        if argument.var is None:
            return Word(argument.value)
        if argument.var is STATUS_WORD:
            self.checks = True
            return Word(0, STATUS)
        return Word(argument.value, self.buffer_of(argument.var))

    def operand(self, var: Var) -> Operand:
        """How a template or host call finds a value: a strided part of a buffer."""
        base, e = self.plan.source(var, natural(var.shape), list(var.shape))
        return Operand(self.buffer_of(base), var.type, e.coefs, e.offset)

    def result(self, var: Var) -> Operand:
        return Operand(self.buffer_of(var), var.type, strides_of(var.shape), 0)

    def emit_opaque(self, node: Node, kind: str) -> None:
        if kind == HOST:
            self.emit_host(node)
            return
        BUILDERS[node.op.lower.name](self, node)

    def emit_host(self, node: Node) -> None:
        operands = tuple(None if v is None else strided(self.operand(v)) for v in node.inputs)
        results = tuple(strided(self.result(v)) for v in node.outputs)
        op, operands, results = of_complex(node.op, operands, results)
        number = self.plan.number[node]
        nodes = (number,) if number >= 0 else ()
        place = f"  @{node.place}" if node.place else ""
        self.infos.append(KernelInfo(op.name, "host", f"host call {op.name}{place}", nodes))
        self.steps.append(HostCall(op, operands, node.attrs, results, len(self.infos) - 1))


def strided(o: Operand) -> Strided:
    return Strided(o.buffer, o.type, o.strides, o.offset)


def assemble(
    graph: Graph, target: Target = DEFAULT, tell: Callable[[Module], object] = lambda module: None
) -> Program:
    """The Program of an optimised graph; `tell` is called with each module when it is known."""
    return Assembler(graph, target, tell).run()

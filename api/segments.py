"""Segments of a trace: the code between two branches on values.

Note [Keys]
    Values are named by where they come from: ("in", k) is the k-th tensor the recorder met, and
    ("node", i, j) output j of node i. Paths that take the same outcomes record the same nodes, so
    the keys of a shared prefix agree between paths.

Note [Views behind branches]
    A view of an argument that is made before a branch and used behind it is made again there: it
    takes nothing, and backward sees what is written to the argument since, as eager's view does.
"""

from __future__ import annotations

from typing import Any

from .graph_function import GraphFunction
from .ir.bind import epoch
from .ir.graph import CAPTURED, RANDOM, RESULT, WRITE, Graph, Input, Node, Output, Var
from .ir.ops.drawing import sample
from .ir.partition import memory_shown
from .paths import Path
from .pytree import unflatten
from .saved_values import Reread
from .settings import Settings
from .sources import Direct


class Segment:
    """A compiled piece of a path: inputs by key, outputs by key, what comes next."""

    def __init__(self, nodes: tuple[Any, ...], facts: Facts, first: int, last: int):
        self.nodes, self.facts = nodes, facts
        self.first, self.last = first, last
        self.condition: Any = None
        self.children: dict[bool, Segment] = {}
        self.end: End | None = None
        self.place: Any = None
        self.keys_in: list[Any] = []
        self.keys_out: list[Any] = []
        self.passed = facts.passed_keys()  # of values that a later segment hands out
        self.function: Any = None

    def build(self, keys_out: list[Any]) -> None:
        """(Re)builds the graph function for a set of outputs."""
        facts = self.facts
        outputs = [Output(facts.vars[k]) for k in keys_out]
        if self.end is not None:
            outputs = [o for o in facts.graph.outputs if o.var not in facts.states]
        nodes = (*facts.looks_for(self.nodes, outputs), *self.nodes)
        used = {v for n in nodes for v in n.present()} | {o.var for o in outputs}
        made = {v for n in nodes for v in n.outputs}
        targets = [facts.graph.inputs[o.target].var for o in outputs if o.kind == WRITE]
        needed = [v for v in facts.order if (v in used and v not in made) or v in targets]
        needed = [v for v in needed if v not in facts.states]
        needed.sort(key=facts.rank)  # stable: arguments, captured tensors, the rest
        places = {v: k for k, v in enumerate(needed)}
        outputs = [
            Output(o.var, o.kind, places[facts.graph.inputs[o.target].var])
            if o.kind == WRITE
            else o
            for o in outputs
        ]
        inputs = [facts.inputs.get(v) or Input(v, CAPTURED) for v in needed]
        generators = facts.add_states(nodes, inputs, outputs)
        graph = Graph(facts.graph.name, tuple(inputs), nodes, tuple(outputs), facts.graph.notes)
        self.keys_in = [facts.keys[v] for v in needed]
        self.keys_out = keys_out
        self.types = [v.type for v in needed]
        self.sources = [facts.sources[k[1]] if k[0] == "in" else None for k in self.keys_in]
        self.flags = [facts.flags[k[1]] if k[0] == "in" else None for k in self.keys_in]
        kept = {k for k, number in facts.kept if self.first <= number < self.last}
        self.kept = [key[0] == "in" and key[1] in kept for key in self.keys_in]
        results = [o for o in outputs if o.kind == RESULT]
        needs = facts.needs if self.end is not None else [
            k for k, o in enumerate(results) if o.var in facts.needing]  # fmt: skip
        self.function = GraphFunction(graph, needs=needs, volatile=self.volatile(needed),
                                      reread=self.reread(),
                                      versions=facts.versions if self.end is not None else {},
                                      settings=facts.settings, generators=generators,
                                      custom=facts.custom, is_recorded=True,
                                      inner=self.inner(), parts=self.parts(places))  # fmt: skip

    def inner(self) -> frozenset[int]:
        """The inputs that earlier segments made."""
        return frozenset(k for k, key in enumerate(self.keys_in) if key[0] != "in")

    def parts(self, places: dict[Var, int]) -> dict[int, tuple[int, list[Node]]]:
        """The inputs that show others; see Note [Handed on] in rewritten.py."""
        producers, found = self.facts.producers, {}
        for var, k in places.items():
            root, chain = memory_shown(var, producers)
            if chain and root in places and self.facts.keys[root] in self.passed:
                found[k] = places[root], chain
        return found

    def reread(self) -> Reread:
        """The results that backward reads again; see Note [Handed on] in rewritten.py."""
        if self.end is not None:
            return self.facts.reread
        held = tuple(k for k, key in enumerate(self.keys_out) if key in self.passed)
        places = {self.facts.vars[key]: k for k, key in enumerate(self.keys_out)}
        return Reread(held=held, unseen=frozenset(self.parts(places)))

    def volatile(self, needed: list[Var]) -> tuple[int, ...]:
        """Inputs that the last segment of the path will write."""
        graph = self.facts.graph
        written = {graph.inputs[o.target].var for o in graph.outputs if o.kind == WRITE}
        return tuple(k for k, var in enumerate(needed) if var in written)

    def wanted(self, history: bool) -> tuple[int, ...]:
        """Which inputs will get gradients at a call."""
        if not history:
            return ()
        needing, reached = self.facts.needing, self.function.reached
        return tuple(
            k for k, key in enumerate(self.keys_in) if k in reached
            and (self.flags[k] if key[0] == "in" else self.facts.vars[key] in needing)
        )  # fmt: skip

    def inputs(self, leaves: list[Any], values: dict[Any, Any]) -> list[Any] | None:
        """The tensors the segment reads now, or None where one is not what was recorded."""
        tensors = []
        for source, key, type_, flag, kept in zip(
            self.sources, self.keys_in, self.types, self.flags, self.kept
        ):
            if source is None:
                tensors.append(values[key])
                continue
            tensor = source(leaves)
            if tensor is None or tensor._requires_grad is not flag:
                return None
            if tensor.dtype is not type_.dtype or tensor._array.shape != type_.shape:
                return None
            if kept and tensor._mark == "inference":
                return None  # eager raises
            tensors.append(tensor)
        return tensors


class Facts:
    """What all segments of one path share."""

    def __init__(self, path: Path, settings: Settings):
        self.settings = settings
        graph = self.graph = path.graph
        self.sources = path.sources
        self.flags = path.flags
        self.needing, self.kept = path.needing, path.kept
        self.custom = path.customs, path.custom_states
        self.needs, self.reread = path.needs, path.reread
        self.versions = path.versions
        self.inputs = {i.var: i for i in graph.inputs}
        self.keys: dict[Var, Any] = {i.var: ("in", k) for k, i in enumerate(graph.inputs)}
        for index, node in enumerate(graph.nodes):
            for number, var in enumerate(node.outputs):
                self.keys[var] = ("node", index, number)
        self.vars = {key: var for var, key in self.keys.items()}
        self.producers = graph.producers()
        self.order = list(graph.vars())
        states = (i.var for i in graph.inputs if i.kind == RANDOM)
        self.states: dict[Var, Any] = dict(zip(states, path.generators))  # who holds each
        for node in graph.nodes:
            if node.op is sample:
                self.states[node.outputs[1]] = self.states[node.inputs[0]]

        self.looks: dict[Var, Node] = {}  # see Note [Views behind branches]
        for node in graph.nodes:
            shown = {*node.present()}
            if node.op.is_view and all(v in self.inputs or v in self.looks for v in shown):
                self.looks.update(dict.fromkeys(node.outputs, node))

    def looks_for(self, nodes: tuple[Node, ...], outputs: list[Output]) -> list[Node]:
        """Nodes of earlier segments that show inputs as `nodes` and `outputs` read them."""
        made = {v for n in nodes for v in n.outputs}
        wanted = [v for n in nodes for v in n.present()] + [o.var for o in outputs]
        found: dict[int, Node] = {}
        while wanted:
            var = wanted.pop()
            if var in self.looks and var not in made:
                node = self.looks[var]
                found[self.keys[var][1]] = node
                wanted += node.present()
        return [found[index] for index in sorted(found)]

    def passed_keys(self) -> set[Any]:
        """The keys of values whose memory results show that backward reads again."""
        results = [o.var for o in self.graph.outputs if o.kind == RESULT]
        return {self.keys[memory_shown(results[k], self.producers)[0]] for k in self.reread.held}

    def add_states(self, nodes: Any, inputs: list[Input], outputs: list[Output]) -> list[Any]:
        """The generators that `nodes` draw from; their states join what goes in and out."""
        taken: dict[Any, Var] = {}
        given: dict[Any, Var] = {}
        for node in nodes:
            if node.op is sample:
                holder = self.states[node.inputs[0]]
                taken.setdefault(holder, node.inputs[0])
                given[holder] = node.outputs[1]
        for holder, var in taken.items():
            outputs.append(Output(given[holder], WRITE, len(inputs)))
            inputs.append(self.inputs.get(var) or Input(var, RANDOM))
        return list(taken)

    def rank(self, var: Var) -> int:
        key = self.keys[var]
        return self.sources[key[1]].kind if key[0] == "in" else 3


class End:
    """What the last segment of a path does beyond computing: results, `.grad` fields."""

    def __init__(self, path: Path):
        self.structure, self.makers = path.structure, path.makers
        for maker in self.makers:
            maker.know(path)
        self.grad_effects, self.flag_effects = path.grad_effects, path.flag_effects
        self.more_writes, self.assigned = path.more_writes, path.assigned

    def single_result(self) -> bool:
        """Is the output just the first computed result, with nothing else to do?"""
        effects = self.grad_effects or self.flag_effects or self.more_writes or self.assigned
        if self.structure is not None or effects:
            return False
        return type(self.makers[0]) is Direct and self.makers[0].number == 0

    def count_writes(self, leaves: Any) -> None:
        """Versions count each write, also those that the graph has made one."""
        for source, count in self.more_writes:
            source(leaves)._storage.version += count

    def finish(self, leaves: Any, results: list[Any]) -> Any:
        context = Context(leaves, results)
        self.count_writes(leaves)
        for owner, maker in self.grad_effects:
            owner(leaves)._grad = None if maker is None else maker(context)
        for owner, flag in self.flag_effects:
            owner(leaves)._requires_grad = flag
        made = [maker(context) for maker in self.makers]
        if self.assigned:
            self.assign(made[-len(self.assigned) :])
        return unflatten(self.structure, iter(made))

    def assign(self, values: list[Any]) -> None:
        """Puts tensors where the body puts them."""
        for place, value in zip(self.assigned, values):
            place.write(value)
        if any(place.covered for place in self.assigned):
            epoch.advance()  # attributes of modules are told of by epochs


class Context:
    """What makers of results see: the call's leaves and the computed results."""

    __slots__ = ("counters", "leaves", "results", "shared")

    def __init__(self, leaves: list[Any], results: list[Any]):
        self.leaves, self.results = leaves, results
        self.counters: dict[int, Any] = {}
        self.shared: dict[int, Any] = {}


def cut(path: Path, settings: Settings) -> Segment:
    """A recorded path as a chain of segments."""
    facts = Facts(path, settings)
    nodes = facts.graph.nodes
    branches = path.branches
    stops = [b.position for b in branches] + [len(nodes)]
    segments = []
    start = 0
    for stop in stops:
        segments.append(Segment(tuple(nodes[start:stop]), facts, start, stop))
        start = stop
    later = {o.var for o in facts.graph.outputs}
    segments[-1].end = End(path)
    segments[-1].build([])
    for k in reversed(range(len(branches))):
        segment, branch = segments[k], branches[k]
        later |= {v for n in segments[k + 1].nodes for v in n.present()}
        segment.condition, segment.place = facts.keys[branch.var], branch.place
        made = {v for n in segment.nodes for v in n.outputs}
        later -= facts.states.keys()
        later -= facts.looks.keys()
        wanted = [v for v in facts.order if v in made and (v in later or v is branch.var)]
        segment.build([facts.keys[v] for v in wanted])
        segment.children[branch.outcome] = segments[k + 1]
    return segments[0]


def merge(old: Segment | None, new: Segment) -> Segment:
    """The tree with a new path; a shared segment gives out what either path needs."""
    if old is None or old.end is not None or new.end is not None or old.last != new.last:
        return new
    missing = [k for k in new.keys_out if k not in old.keys_out]
    if missing or not (new.passed - old.passed).isdisjoint(new.keys_out):
        old.passed |= new.passed
        old.build(old.keys_out + missing)
    for outcome, child in new.children.items():
        old.children[outcome] = merge(old.children.get(outcome), child)
    return old

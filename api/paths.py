"""A recorded path: what replaying one run of the body needs, and nothing of that run's tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .class_tests import compares_identity
from .environment import Environment
from .given_back import Answer
from .ir.graph import WRITE, Graph, Var
from .outputs import Versions
from .saved_values import Reread
from .sharing import Relation, relations_of, shared_arguments
from .sources import Argument, Captured, Fact, Identities, Number, Plain, is_same
from .tracer.recorded import Branch
from .tracer.recorded_facts import STEADY, hooks_of
from .tracer.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Path:
    """One way through the body. Where inputs come from, what is computed, what is handed out."""

    graph: Graph
    sources: list[Any]  # of the graph's inputs, but those that are random states
    generators: list[Any]  # that hold these
    flags: list[bool]  # did the input require grad?
    branches: list[Branch]
    needing: set[Var]  # Vars that require grad in eager's eyes
    kept: set[tuple[int, int]]  # inputs that eager saves for backward, and the node that does
    needs: list[int]  # results that get history
    reread: Reread  # the results that backward from these reads again
    versions: Versions  # of results that the body wrote
    customs: dict[str, Any]  # calls of custom Functions; see Note [Custom backwards]
    custom_states: dict[str, Any]
    # what is made of the results
    structure: Any
    makers: list[Any]
    grad_effects: list[tuple[Any, Any]]
    assigned: list[Any]  # places that get what the last makers make
    flag_effects: list[tuple[Any, bool]]  # `requires_grad` of tensors from outside
    more_writes: list[tuple[Any, int]]  # writes beyond the one the graph makes: versions count all
    # what must be so at a call
    environment: Environment
    grad_guards: list[tuple[Any, bool]]
    comparisons: list[Any]
    bound: list[Relation]
    shared: Any  # which of its tensors lay in the same memory
    hooks: list[tuple[Tensor, Any]]
    packs: bool = False  # were saved_tensors_hooks around it?
    sizes: Mapping[str, int] | None = None  # those a symbolic path was taken at

    def tensor_sources(self) -> list[Any]:
        """Where its tensors come from."""
        return [source for source in self.sources if not isinstance(source, Number)]

    def writes(self) -> bool:
        """Does it write into tensors from outside?"""
        count = len(self.sources)
        return any(o.kind == WRITE and o.target < count for o in self.graph.outputs)

    def targets(self) -> list[Any]:
        """Where it writes, beside arguments, whose layout is part of the kind of call."""
        count = len(self.sources)
        written = [self.sources[o.target] for o in self.graph.outputs
                   if o.kind == WRITE and o.target < count]  # fmt: skip
        return [source for source in written if not isinstance(source, Argument)]

    @property
    def hands_back(self) -> bool:
        """Are there containers in the result that the call was given?"""
        return any(isinstance(m, Plain) and isinstance(m.value, Answer) for m in self.makers[:1])

    @property
    def grad_keys(self) -> set[Any]:
        """The guards on `.grad` in a form that can be compared."""
        return {(source.identity, none) for source, none in self.grad_guards}

    @property
    def comparison_keys(self) -> list[Any]:
        """The comparisons of numbers in a form that can be compared."""
        return [(read.identity, *rest) for read, *rest in self.comparisons]


def path_of(recording: Any) -> Path:
    """The path of a recording that can be replayed."""
    recorder = recording.recorder
    return Path(
        graph=recording.graph,
        sources=recording.sources,
        generators=list(recorder.states),
        flags=recording.flags,
        branches=list(recorder.branches),
        needing=recorder.needing,
        kept=recorder.kept,
        needs=recording.needs,
        reread=recording.reread,
        versions=recording.versions,
        customs=recorder.customs,
        custom_states=recording.custom_states,
        structure=recording.structure,
        makers=recording.makers,
        grad_effects=recording.grad_effects,
        assigned=[place for place, _ in recording.assigned],
        flag_effects=[
            (recording.owner_source(f.tensor), f.tensor._requires_grad)
            for f in recorder.flagged.values()
            if f.tensor._requires_grad is not f.before
        ],
        more_writes=[
            (recording.sources[m.external], m.counted - bool(m.writes))  # one is with the write
            for m in recorder.memories.values()
            if m.external is not None and m.counted != bool(m.writes)
        ],
        environment=recording.environment,
        grad_guards=[(recording.owner_source(t), none) for t, none in recorder.grad_guards],
        comparisons=[*recording.comparisons(), *fact_guards(recording)],
        bound=relations_of(recording),
        shared=shared_arguments(
            [
                t
                for t, source in zip(recorder.externals, recording.sources)
                if not isinstance(source, Number)
            ]
        ),
        hooks=[(t, hooks_of(t)) for t in recording.captured()],
        packs=recorder.packed is not None,
    )


def fact_guards(recording: Any) -> list[Any]:
    """Guards on what Python saw of tensors from outside."""
    seen = [(recording.owner_source(tensor), name, value)
            for tensor, name, value in recording.recorder.facts.values()]  # fmt: skip
    guards = [(Fact(source, name), is_same, value, True) for source, name, value in seen
              if not (isinstance(source, Captured) and name in STEADY)]  # fmt: skip
    environment, leaves = recording.environment, recording.leaves
    if compares_identity(environment.functions(), set()):
        read = Identities(list(recording.argument_places.values()),
                          [p for p, t in environment.findings.found if isinstance(t, Tensor)],
                          environment.parameters())  # fmt: skip
        guards.append((read, is_same, read(leaves), True))
    return guards

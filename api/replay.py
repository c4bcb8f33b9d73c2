"""Replaying a recorded trace: a tree of compiled segments, and a shortcut for the usual call."""

from __future__ import annotations

from typing import Any

from .guards import Environment
from .ir.bind import epoch, state
from .ir.graph import Graph
from .paths import Path, hook_signature
from .segments import Segment, cut, merge
from .sharing import shared_arguments
from .sources import Argument, Captured
from .tracer.recorded import same_extent
from .tracer.tensor import Tensor

MISS = object()


class Trace:
    """All recorded paths for one kind of call: a tree of compiled segments.

    A segment ends where Python looked at the truth of a value. Replay runs a segment, looks at the
    value, and goes on in the child for that outcome; an unknown outcome means a new path must be
    recorded. Nothing is written before the last segment, so giving up leaves no trace.
    """

    def __init__(self, path: Path):
        self.environment = path.environment
        self.grad_guards, self.grad_keys = path.grad_guards, path.grad_keys
        self.comparisons = path.comparisons
        self.bound = path.bound
        self.hooks = path.hooks
        self.history = bool(path.needs)
        self.graphs: list[Graph] = []
        self.hits = 0
        self.root: Segment | None = None
        self.insert(path)

    def insert(self, path: Path) -> None:
        """Adds a path; segments it shares with earlier paths are kept."""
        self.graphs.append(path.graph)
        self.history = self.history or bool(path.needs)
        self.root = merge(self.root, cut(path))

    def applies(self, leaves: list[Any]) -> str | None:
        """Why this trace can't be used for a call now, or None."""
        environment = self.environment
        reason = environment.quick_failure()
        if reason is None and environment.epoch != epoch.value:
            reason = self.hook_change() or environment.failure()
        if reason is not None:
            return reason
        for read, how, other, outcome in self.comparisons:
            value = read(leaves)
            if (bool(how(value, other)) if value is not None else False) is not outcome:
                return "a comparison of a number came out differently"
        for place, tensor in self.bound:
            if not same_extent(leaves[place], tensor):
                return "an argument was a tensor that the body also reads, and now is another"
        for owner, was_none in self.grad_guards:
            if (owner(leaves)._grad is None) is not was_none:
                return ".grad of a parameter was " + ("None" if was_none else "a tensor")
        return None

    def hook_change(self) -> str | None:
        """Hooks on the tensors from outside were traced as they were; others need a new trace."""
        for tensor, before in self.hooks:
            if hook_signature(tensor) != before:
                return "hooks of a parameter changed"
        return None

    def replay(self, leaves: list[Any]) -> Any:
        """The result of the call, or MISS where the path taken is not known."""
        segment, values = self.root, {}
        history = self.history and state.grad_enabled
        while True:
            inputs = segment.inputs(leaves, values)
            if inputs is None:
                return MISS
            results = segment.function.run_for(inputs, history)
            if segment.end is not None:
                self.hits += 1
                return segment.end.finish(leaves, results)
            values.update(zip(segment.keys_out, results))
            outcome = bool(values[segment.condition])
            child = segment.children.get(outcome)
            if child is None:
                return MISS
            segment = child

    def accepts(self, path: Path) -> bool:
        """Is a new path one of ours: recorded under the same guards, parting at a branch?"""
        if not path.branches or self.root.end is not None:
            return False
        return self.environment.failure() is None and path.grad_keys == self.grad_keys

    def segments(self) -> list[Segment]:
        """All segments, parents first."""
        found, stack = [], [self.root]
        while stack:
            segment = stack.pop()
            found.append(segment)
            stack.extend(segment.children.values())
        return found

    def prepare(self) -> None:
        """Compiles what the next call will need."""
        for segment in self.segments():
            segment.function.prepare(segment.wanted(self.history))

    @property
    def restarts(self) -> bool:
        """May a replay stop in the middle after drawing random numbers?"""
        return self.root.end is None and any(n.op.random for g in self.graphs for n in g.nodes)

    def describe(self) -> list[str]:
        """Lines for `explain()`."""
        lines = []
        for graph in self.graphs:
            lines.append(f"  trace of {len(graph.nodes)} ops")
        lines.append(f"  replayed {self.hits} times")
        places = {str(s.place): len(s.children) for s in self.segments() if s.place is not None}
        lines += [f"    branch on a value ({p}), outcomes seen: {n}" for p, n in places.items()]
        return lines


def is_flat(structure: Any, leaves: list[Any]) -> bool:
    """Only positional arguments, each a tensor or a float."""
    args, kwargs = structure[1], structure[2]
    if len(kwargs) > 2 or any(part is not None for part in args[1:]):
        return False
    return all(isinstance(x, Tensor) or type(x) is float for x in leaves)


def shortcut(trace: Trace, structure: Any, leaves: list[Any]) -> Any:
    """A function of the arguments that replays `trace` with the fewest checks, or None.

    It serves calls with positional tensors and floats of a trace without branches. It answers MISS
    where anything is not as it was; then the general way decides.
    """
    segment = trace.root
    if segment.end is None or not is_flat(structure, leaves):
        return None
    count = len(leaves)
    tensors = [
        (k, x.dtype, x._array.shape, x._requires_grad, x._array.flags.c_contiguous)
        for k, x in enumerate(leaves) if isinstance(x, Tensor)
    ]  # fmt: skip
    floats = [k for k, x in enumerate(leaves) if type(x) is float]
    environment: Environment = trace.environment
    gather = gatherer(segment)
    run, end = segment.function.runner(segment.wanted(trace.history)), segment.end
    grad_mode, inference, bottom = state.grad_enabled, state.inference, state.bottom
    guarded = bool(trace.grad_guards or trace.comparisons or trace.bound)
    shared, several = shared_arguments(leaves), len(tensors) > 1
    single = end.single_result()

    def replay(args: tuple[Any, ...]) -> Any:
        if len(args) != count or environment.epoch != epoch.value:
            return MISS
        if (state.top is not bottom or state.grad_enabled is not grad_mode
                or state.inference is not inference):  # fmt: skip
            return MISS
        for k, dtype, shape, flag, contiguous in tensors:
            x = args[k]
            if not isinstance(x, Tensor) or x.dtype is not dtype or x._requires_grad is not flag:
                return MISS
            array = x._array
            if array.shape != shape or array.flags.c_contiguous is not contiguous:
                return MISS
        for k in floats:
            if type(args[k]) is not float:
                return MISS
        if several and shared_arguments(args) != shared:
            return MISS
        if (trace.applies(args) if guarded else environment.quick_failure()) is not None:
            return MISS
        results = run(gather(args))
        trace.hits += 1
        return results[0] if single else end.finish(args, results)

    return replay


def gatherer(segment: Segment) -> Any:
    """Collects a segment's inputs: arguments, then captured tensors, then the rest."""
    sources = segment.sources
    places = [s.place for s in sources if isinstance(s, Argument)]
    captured = [s.tensor for s in sources if isinstance(s, Captured)]
    rest = sources[len(places) + len(captured) :]

    def gather(args: Any) -> list[Any]:
        inputs = [args[k] for k in places]
        inputs += captured
        if rest:
            inputs += [source(args) for source in rest]
        return inputs

    return gather

"""A graph as a function of tensors: compiled forward, compiled backward, any order.

`GraphFunction` is what `compile(fn)` replays and what `Graph.compile()` returns. Its results carry
`CompiledFunctionBackward`; with create_graph, backward is itself a GraphFunction of the same
inputs, so higher orders need no further code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .both_passes import Split
from .compiled_node import CompiledFunctionBackward
from .custom_backwards import Customs
from .executor import Executor, begin
from .ir import reverse
from .ir.bind import state
from .ir.cached import cached_property
from .ir.graph import RESULT, WRITE, Graph, Node
from .ir.inline import inline
from .ir.partition import partition
from .ir.passes import Step, absent_gradients, checking, dead_code, optimise, strict
from .outputs import Versions
from .rewritten import AsEager
from .saved_values import NOTHING_REREAD, Reread
from .settings import DEFAULT, Settings
from .tracer.batching import any_batched
from .tracer.generator import Generator
from .tracer.random import state_of
from .tracer.readers import readers
from .tracer.storage import Storage
from .tracer.tensor import Tensor


class GraphFunction:
    """Runs a recorded graph on tensors; compiles each needed form once, when first used."""

    def __init__(
        self,
        graph: Graph,
        name: str = "",
        needs: list[int] | None = None,
        volatile: tuple[int, ...] = (),
        reread: Reread = NOTHING_REREAD,
        is_recorded: bool = False,
        versions: Versions = MappingProxyType({}),
        settings: Settings = DEFAULT,
        generators: Sequence[Any] = (),
        custom: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
        inner: frozenset[int] = frozenset(),
        parts: Mapping[int, tuple[int, Sequence[Node]]] = MappingProxyType({}),
    ):
        self.settings = settings
        self.is_recorded = is_recorded  # are its nodes those of eager?
        self.generators = generators  # to draw from; without them, states are inputs like others
        self.trace = graph.numbered()
        self.customs = Customs(self.trace, *custom)
        self.name = name or graph.name
        self.volatile = volatile  # inputs that a later segment writes: saved by value
        self.inner = inner  # inputs that nobody else has, so that nobody gives them other memory
        self.parts = parts  # inputs that show others, and how; see Note [Handed on]
        self.versions = versions
        self.steps: dict[str, list[Step]] = {}
        self.starts: dict[str, Graph] = {}  # by stage: the graph before its passes
        self._plain: Any = None
        self._split: dict[tuple[int, ...], Split] = {}
        self._reduced: dict[Any, tuple[Executor, tuple[int, ...]]] = {}
        self._led_to: dict[Any, list[int]] = {}
        self._given: dict[Any, tuple[int, ...]] = {}
        self._grads: dict[Any, tuple[GraphFunction, tuple[int, ...]]] = {}
        results = [o for o in graph.outputs if o.kind == RESULT]
        self.differentiable = [
            k for k, o in enumerate(results)
            if o.var.dtype.is_differentiable and (needs is None or k in needs)
        ]  # fmt: skip
        # by gradient: results that eager's backward reads again, so that nobody may write there
        self.reread = [reread.counted.get(k, ()) for k in self.differentiable]
        self.held, self.unseen, self.apart = reread.held, reread.unseen, reread.apart
        self.out_types = tuple(results[k].var.type for k in self.differentiable)
        self.reached = reverse.reached(self.trace, self.differentiable)

    # --- compiled forms ---

    def plain(self) -> Executor:
        """The forward pass when no gradient will be asked for."""
        if self._plain is None:
            self._plain = self.executor(
                self._exact(self.trace), lambda: self._optimised("forward", self.trace)
            )
            if checking():
                _ = self._plain.graph
        return self._plain

    def split(self, wanted: tuple[int, ...]) -> Split:
        """Forward that saves, and backward for the inputs in `wanted`."""
        found = self._split.get(wanted)
        if found is None:
            recorded = reverse.joint(self.trace, wanted, self.differentiable)
            joint = self._optimised("joint", recorded)
            as_eager = AsEager(without_writes(recorded), self.held, self.unseen)
            viewed = frozenset(joint.inputs[k].var for k in as_eager.viewed - self.inner)
            volatile = frozenset(joint.inputs[k].var for k in self.volatile)
            parts = partition(joint, volatile, first=viewed)
            forward = self.executor(parts.forward)
            backward = self.executor(dead_code.run(parts.backward))
            begin(backward=True)
            found = self._split[wanted] = Split(self, wanted, parts, forward, backward, as_eager)
        return found

    def reduced(
        self, wanted: tuple[int, ...], given: tuple[int, ...]
    ) -> tuple[Executor, tuple[int, ...]]:
        """Backward when only the gradients numbered in `given` arrive, and which it computes."""
        found = self._reduced.get((wanted, given))
        if found is None:
            left = self.gradients_of(wanted, given)
            graph, _ = absent_gradients.run(self.split(wanted).parts.backward, given, left)
            found = self._reduced[wanted, given] = (self.executor(graph), left)
        return found

    def led_to(self, wanted: Sequence[int], number: int) -> list[int]:
        """Which of `wanted` the gradient of a result comes to."""
        key = (*wanted, number)
        found = self._led_to.get(key)
        if found is None:
            reached = reverse.reached(without_writes(self.trace), [self.differentiable[number]])
            found = [k for k, position in enumerate(wanted) if position in reached]
            self._led_to[key] = found
        return found

    def gradients_of(self, wanted: tuple[int, ...], given: tuple[int, ...]) -> tuple[int, ...]:
        """Which of `wanted` get a gradient, where those numbered in `given` arrive."""
        found = self._given.get((wanted, given))
        if found is None:
            results = [self.differentiable[k] for k in given]
            reached = reverse.reached(without_writes(self.trace), results)
            found = tuple(k for k, position in enumerate(wanted) if reached.get(position))
            self._given[wanted, given] = found
        return found

    @cached_property
    def passed(self) -> list[frozenset[int]]:
        """By gradient: the results it passes by; see Note [Results on the way]."""
        return reverse.passed(self.trace, self.differentiable)

    @cached_property
    def handed(self) -> dict[int, int]:
        """The inputs that are handed on as they are, by gradient."""
        places = {item.var: k for k, item in enumerate(self.trace.inputs)}
        results = [o.var for o in self.trace.outputs if o.kind == RESULT]
        return {number: places[results[k]] for number, k in enumerate(self.differentiable)
                if results[k] in places}  # fmt: skip

    def gradient(
        self, wanted: tuple[int, ...], given: tuple[int, ...]
    ) -> tuple[GraphFunction, tuple[int, ...]]:
        """`reduced` as a function of the inputs and of the gradients in `given`."""
        found = self._grads.get((wanted, given))
        if found is None:
            results = [self.differentiable[k] for k in given]
            left = self.gradients_of(wanted, given)
            trace = without_writes(self.trace)
            graph = reverse.grad(trace, [wanted[k] for k in left], results)
            function = self.like(graph, f"{self.name}_grad")
            found = self._grads[wanted, given] = (function, left)
        return found

    def like(self, graph: Graph, name: str = "") -> GraphFunction:
        """Another graph as a function, with the same settings."""
        return GraphFunction(graph, name or self.name, settings=self.settings, inner=self.inner)

    def _optimised(self, stage: str, graph: Graph) -> Graph:
        steps: list[Step] = []
        self.steps[stage], self.starts[stage] = steps, graph
        return optimise(self._exact(graph), steps, self.settings.strict)

    def _exact(self, graph: Graph) -> Graph:
        return strict.run(graph) if self.settings.strict else graph

    def executor(self, graph: Graph, passes: Any = None) -> Executor:
        return Executor(graph, self.settings.threads, self.generators, passes)

    @property
    def passes(self) -> dict[str, list[Step]]:
        """What passes did, by stage; they run now where a program was found without them."""
        if self._plain is not None:
            _ = self._plain.graph
        return self.steps

    def prepare(self, wanted: tuple[int, ...]) -> None:
        """Compiles what the next call will need."""
        if wanted and self.differentiable:
            self.split(wanted)
        else:
            self.plain()

    def ready(self, wanted: tuple[int, ...]) -> tuple[Executor, ...]:
        """What is compiled by now: forward and backward, or forward alone, or nothing."""
        if wanted and self.differentiable:
            found = self._split.get(wanted)
            return () if found is None else found.executors
        return () if self._plain is None else (self._plain,)

    def saved_inputs(self, stages: dict[str, Any]) -> tuple[int, ...]:
        """Positions of the inputs that backward is given again."""
        for split in self._split.values():
            if split.forward is stages.get("forward"):
                return split.parts.saved_inputs
        return ()

    def stage_graph(self, stage: str, wanted: tuple[int, ...]) -> Graph:
        """The optimised forward or backward graph."""
        if stage == "forward":
            return self.split(wanted).forward.graph if wanted else self.plain().graph
        if stage != "backward":
            raise ValueError(f"stage {stage!r} has no graph")
        if not wanted:
            raise RuntimeError(f"{self.name} has no backward: nothing it was called with requires "
                               "grad, or backward runs inside")  # fmt: skip
        return self.split(wanted).backward.graph

    def text(self, stage: str, wanted: tuple[int, ...]) -> str:
        """The text of a stage after recording."""
        if stage in ("forward", "backward"):
            return self.stage_graph(stage, wanted).print()
        executors = self.split(wanted).executors if wanted else (self.plain(),)
        return "\n".join(executor.text(stage) for executor in executors)

    # --- running ---

    def __call__(self, *tensors: Any) -> Any:
        """Runs on tensors (or arrays); one result as it is, several as a tuple."""
        inputs = [t if isinstance(t, Tensor) else as_input(t) for t in tensors]
        if len(inputs) != len(self.trace.inputs):
            raise TypeError(
                f"@{self.name} takes {len(self.trace.inputs)} inputs, got {len(inputs)}"
            )
        results = self.run(inputs)
        for given, tensor in zip(tensors, inputs):
            if isinstance(given, Generator):
                given.set_state(tensor)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: list[Tensor]) -> list[Tensor]:
        """The results for `inputs`; write-backs are done in the inputs' own memory.

        Inside vmap, where examples can't be written to from here, it runs op by op.
        """
        if any_batched(inputs):
            return inline(without_writes(self.trace), inputs, again=True)
        return self.run_for(inputs, state.grad_enabled)

    def run_for(self, inputs: list[Tensor], history: bool) -> list[Tensor]:
        """With history where the caller wants one and an input requires grad."""
        if history and self.differentiable:
            reached = self.reached
            wanted = tuple([k for k, t in enumerate(inputs) if t._requires_grad and k in reached])
            if wanted:
                return self.run_recorded(inputs, wanted)
        return self.run_plain(inputs)

    def runner(self, wanted: tuple[int, ...]) -> Any:
        """The way to run for calls whose inputs in `wanted` require grad."""
        if wanted and self.differentiable:
            return lambda inputs: self.run_recorded(inputs, wanted)
        return self.run_plain

    def run_plain(self, inputs: list[Tensor]) -> list[Tensor]:
        """Without history for the results."""
        executor = self.plain()
        if executor.writes and readers:
            executor.announce(inputs)
        return self.finished(executor, executor.call(*[t._array for t in inputs]), inputs)

    def finished(self, executor: Executor, arrays: Any, inputs: list[Tensor]) -> list[Tensor]:
        """The results as tensors, whose versions count the writes of eager's."""
        results = executor.finish(arrays, inputs)
        for number, written in self.versions.items():
            results[number]._storage = Storage(results[number]._array, *written)
        return results

    def forward(self, wanted: tuple[int, ...]) -> Executor:
        """What runs first when the inputs in `wanted` will be asked for gradients."""
        return self.split(wanted).forward if wanted else self.plain()

    def run_recorded(self, inputs: list[Tensor], wanted: tuple[int, ...]) -> list[Tensor]:
        split = self.split(wanted)
        forward = split.forward
        if forward.writes and readers:
            forward.announce(inputs)
        states = [generator.snapshot() for generator in self.generators]
        given = {k: inputs[k]._array.copy() for k in split.overwritten}
        arrays = forward.call(*[t._array for t in inputs])
        saved = [arrays[k] for k in forward.saved]
        results = self.finished(forward, arrays, inputs)
        node = connect(split, inputs, saved, results)
        node.states, node.given = states, given
        return results


def as_input(value: Any) -> Tensor:
    from .tracer.creation import as_tensor

    if isinstance(value, Generator):
        return state_of(value)
    return as_tensor(value)


def without_writes(graph: Graph) -> Graph:
    outputs = tuple(o for o in graph.outputs if o.kind != WRITE)
    return graph.replace(outputs=outputs)


def connect(split: Split, inputs: list[Tensor], saved: list[Any], results: list[Tensor]) -> Any:
    """Gives the results of a call their history, if something that requires grad took part."""
    node, function = CompiledFunctionBackward(split, inputs, saved), split.function
    for number, position in enumerate(function.differentiable):
        if function.is_recorded or function.led_to(split.wanted, number):
            tensor = results[position]
            tensor._node, tensor._nr, tensor._requires_grad = node, number, True
    if split.watches:
        node.watch(results)
    return node

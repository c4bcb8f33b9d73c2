"""`wengert.ir.trace`: a call as a graph, recorded as `compile` would."""

from __future__ import annotations

import functools
from typing import Any

from .ir.graph import Graph
from .ir.types import uint8
from .pytree import flatten
from .recording import Recording
from .tracer.tensor import Tensor
from .varying import Varying


class Traced:
    """`trace(fn)`; a call of it runs `fn` for real and gives the graph of that call.

    The graph's results are the tensors of what `fn` returned, then the `.grad` fields it set; what
    it wrote into tensors from outside are write-backs. Decisions that Python made on values on the
    way are notes: the graph is the path that was taken.
    """

    def __init__(self, function: Any):
        if not callable(function):
            raise TypeError(f"trace needs a callable, not {type(function).__name__}")
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.inputs: list[Any] = []  # of the last call: the values of the graph's inputs
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Graph:
        leaves: list[Any] = []
        structure = flatten((args, kwargs), leaves)
        recording = Recording(self.function, structure, leaves, self.name, set(), Varying())
        recorder = recording.recorder
        if recorder.problems:
            raise RuntimeError(f"{self.name} is more than a graph: {recorder.problems[0]}")
        returned: list[Any] = []
        flatten(recording.recorded_output, returned)
        results = [leaf for leaf in returned if isinstance(leaf, Tensor)]
        changed = recorder.grad_changed.values()
        graph = recorder.finish(results + [t._grad for t in changed if t._grad is not None])
        states = [Tensor._wrap(recorder.untouched[generator].state(), uint8)
                  for generator in recorder.states]  # fmt: skip
        self.inputs = [*recorder.externals, *states]
        notes = [f"path: a branch at {b.place} was {b.outcome}" for b in recorder.branches]
        return graph.replace(notes=tuple(notes))

"""Runs an optimised graph on arrays: natively, or by the interpreter where LLVM is absent."""

from __future__ import annotations

import os
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from .ir import interp
from .ir.cached import cached_property
from .ir.generators import bound
from .ir.graph import RESULT, SAVED, WRITE, Graph
from .ir.places import user_level, user_place
from .runtime import jit
from .tracer.readers import announce_write
from .tracer.tensor import Tensor

_all: weakref.WeakSet[Executor] = weakref.WeakSet()
_watcher: Any = None


class Executor:
    """`call` goes from input arrays to output arrays, in storage form.

    With `generators`, one for each random state, it draws from these, and no state is given. With
    `passes`, what they make of the graph is run; where its program is found they are not needed,
    for they change neither inputs nor what outputs are.
    """

    __slots__ = ("__dict__", "__weakref__", "call")  # bound calls watch that slot

    def __init__(
        self,
        source: Graph,
        threads: int | None = None,
        generators: Sequence[Any] = (),
        passes: Callable[[], Graph] | None = None,
    ):
        self.source, self.passes, self.generators = source, passes, generators
        given = self.bound(source)
        self.native: Any = None
        if native_wanted():
            from .backend import compile_graph

            self.native = compile_graph(given, passes and (lambda: self.running))
        elif jit.trouble():
            say_interpreted(jit.trouble())
        self.direct = self.call = self.interpret if self.native is None else self.first_call
        self.threads = threads
        if threads is not None and self.native is not None:
            self.call = self.limited
        _all.add(self)
        if _watcher is not None:
            self.call = self.watched
        outputs = given.outputs
        self.results = [(k, o.var.dtype) for k, o in enumerate(outputs) if o.kind == RESULT]
        self.saved = [k for k, o in enumerate(outputs) if o.kind == SAVED]
        self.writes = [(k, o.target) for k, o in enumerate(outputs) if o.kind == WRITE]

    @cached_property
    def graph(self) -> Graph:
        """What runs."""
        return self.source if self.passes is None else self.passes()

    @cached_property
    def running(self) -> Graph:
        """What runs, with generators in place of states."""
        return self.bound(self.graph)

    def bound(self, graph: Graph) -> Graph:
        return bound(graph, self.generators) if self.generators else graph

    @property
    def arena_size(self) -> int:
        return 0 if self.native is None else self.native.runnable.plan.total

    def load(self) -> None:
        """Waits until native code can be called; see Note [Compiling ahead]."""
        if self.native is not None:
            first, self.direct = self.first_call, self.native.runnable.call
            if self.call == first:
                self.call = self.direct

    def first_call(self, *arrays: np.ndarray) -> Any:
        self.load()
        return self.direct(*arrays)

    def interpret(self, *arrays: np.ndarray) -> Any:
        return own(self.running, arrays, interp.run(self.running, arrays))

    def limited(self, *arrays: np.ndarray) -> Any:
        """`call` with the number of threads that was asked for."""
        from .runtime.threads import get_num_threads, set_num_threads

        before = get_num_threads()
        if before == self.threads:
            return self.direct(*arrays)
        set_num_threads(self.threads)
        try:
            return self.direct(*arrays)
        finally:
            set_num_threads(before)

    def watched(self, *arrays: np.ndarray) -> Any:
        """`call`, with times for the watcher; see `watch`."""
        if self.native is not None:
            self.native.profile(True)
        start = time.perf_counter_ns()
        results = self.direct(*arrays)
        taken = time.perf_counter_ns() - start
        times = None
        if self.native is not None:
            times = self.native.last_times()
            self.native.profile(False)
        if _watcher is not None:
            _watcher(self, start, taken, times)
        return results

    def announce(self, inputs: Any) -> None:
        """Those who read again what a call will write are told."""
        for _, target in self.writes:
            announce_write(inputs[target]._array)

    def finish(self, arrays: Any, inputs: Any) -> list[Tensor]:
        """Results as tensors; writes into `inputs` are counted."""
        if self.writes:
            place = user_place()
            for k, target in self.writes:
                tensor = inputs[target]
                if arrays[k] is not tensor._array:
                    np.copyto(tensor._array, arrays[k])
                tensor.storage_.note_write(place)
        wrap = Tensor._wrap
        return [wrap(arrays[k], dtype) for k, dtype in self.results]

    def text(self, stage: str) -> str:
        """kernels, llvm, llvm-opt or asm of the native program."""
        if self.native is None:
            return f"# @{self.graph.name} runs in the reference interpreter: there is no {stage}\n"
        return str(self.native.texts()[stage])


def own(graph: Graph, inputs: Any, results: list[np.ndarray]) -> list[np.ndarray]:
    """The interpreter's results as arrays of their own: never views of inputs or of each other."""
    # what is written, too: it may be a view of an input that is written before it
    owned = [np.array(array, order="C") for array in results]
    for output, array in zip(graph.outputs, owned):
        if output.kind == WRITE:
            np.copyto(inputs[output.target], array)  # type: ignore[index]
    return [inputs[o.target] if o.kind == WRITE else a  # type: ignore[index]
            for o, a in zip(graph.outputs, owned)]  # fmt: skip


def native_wanted() -> bool:
    """`WENGERT_BACKEND=interpreter` runs graphs without LLVM, for debugging."""
    if os.environ.get("WENGERT_BACKEND", "llvm") == "interpreter":
        return False
    return not jit.trouble()


@cache
def say_interpreted(reason: str) -> None:
    """One warning in a process, however much is compiled."""
    warnings.warn(
        "W002: compiled functions run in the reference interpreter, with the same results but no "
        f"faster than eager: {reason}. Install llvmlite, or see `python -m wengert doctor`.",
        RuntimeWarning,
        stacklevel=user_level(),
    )


def begin(backward: bool = False) -> None:
    """A graph will be compiled soon: what all of them need is made meanwhile; or all backwards."""
    if native_wanted():
        from .runtime import loading

        (loading.start_backward if backward else loading.start)()


def improve() -> None:
    """Calls have become native ones: they get better code, see Note [Brief first]."""
    if native_wanted():
        from .runtime import loading

        loading.improve()


def watch(watcher: Any) -> None:
    """Calls `watcher(executor, start, nanoseconds, kernel times)` for each compiled graph that runs
    from now on; None ends it."""
    global _watcher
    _watcher = watcher
    for executor in list(_all):
        executor.call = executor.direct if watcher is None else executor.watched

"""Graphs to native code: joins codegen, which makes Programs, and the runtime, which runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .codegen import render
from .codegen.target import Target
from .ir import packing
from .ir.cached import cached_property
from .ir.graph import Graph
from .ir.program import HostCall, Module, Program
from .runtime import jit, loading, machine, store
from .runtime.launch import Runnable

render.keep_in(store)


@cache
def target() -> Target:
    """This machine, as codegen sees it."""
    host = jit.host()
    return Target.of(host.triple, host.features, machine.caches())


@cache
def sources() -> str:
    """What changes whenever the code that makes Programs from graphs does.

    As Python does for compiled modules, it looks at files from outside: reading all takes 5 ms.
    """
    rooms = (Path(packing.__file__).parent, render.ROOM)
    return repr([state for room in rooms for state in sorted(_states(room))])


def _states(folder: Path) -> Iterator[tuple[Any, ...]]:
    for item in os.scandir(folder):
        if item.name.endswith((".py", ".j2")):
            status = item.stat()
            yield item.name, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        elif item.is_dir() and item.name != "__pycache__":
            yield from _states(Path(item.path))


class Made:
    """The Program of a graph, or of what `passes` make of it; both made when they are asked for."""

    def __init__(self, source: Graph, passes: Callable[[], Graph] | None = None) -> None:
        self.source, self.passes = source, passes

    @cached_property
    def graph(self) -> Graph:
        return self.source if self.passes is None else self.passes()

    @cached_property
    def program(self) -> Program:
        return self.make()

    def make(self, **options: Any) -> Program:
        if "tell" in options:
            self.tell_early(options["tell"])
        from .codegen.assemble import assemble

        return assemble(self.graph, target(), **options)

    def tell_early(self, tell: Callable[[Module], None]) -> None:
        """Of what is needed for certain, before the rest of the code generator is imported."""
        from .codegen.gemm_shared import expected

        for module in expected(self.graph, target()):
            tell(module)

    def found(self) -> Program:
        """The Program as the store has it, without texts for reports; else as it is made.

        So a process that runs what another one has compiled need not load the code generator, nor
        run passes.
        What is made begins to be compiled: see Note [Compiling ahead].
        """
        try:
            stage = "optimised" if self.passes is None else "recorded"
            key = packing.key_of(self.source, repr(target()), sources(), stage)
        except packing.Unpackable:
            key = None
        data = None if key is None else store.get(key)
        if data is not None:
            return packing.unpack(data, lambda number: self.program.modules[number].text)
        self.program = self.make(tell=loading.begin)
        if key is not None:
            with suppress(packing.Unpackable):
                store.put(key, packing.pack(self.program))
        return self.program


class CompiledGraph:
    """A graph as a callable of arrays in storage form, with its texts and its kernels.

    >>> compiled = compile_graph(optimise(graph))
    >>> (result,) = compiled(x)
    """

    def __init__(self, source: Graph, passes: Callable[[], Graph] | None = None) -> None:
        self.made = Made(source, passes)
        self.found = found = self.made.found()
        self._load = jit.kept(lambda: Runnable(found))

    @property
    def graph(self) -> Graph:
        """What was compiled, after passes."""
        return self.made.graph

    @property
    def runnable(self) -> Runnable:
        """The program, loaded; waits for what is still being compiled."""
        return self._load()

    @property
    def program(self) -> Program:
        """What runs, with all there is to tell about it."""
        return self.made.program

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.runnable.call(*arrays)

    @property
    def kernels(self) -> tuple[Any, ...]:
        """What runs, in order: name, kind, text, node numbers, bytes and work of each kernel."""
        return tuple(self.program.kernels[s.kernel] for s in self.program.steps)

    @property
    def host_calls(self) -> tuple[str, ...]:
        """Names of the ops that have no kernel here."""
        return tuple(s.op.name for s in self.found.steps if isinstance(s, HostCall))

    def profile(self, on: bool = True) -> None:
        """Measures each kernel from now on (or no longer); see `times`."""
        self.runnable.segment.profile(on)

    def times(self) -> list[tuple[str, int]]:
        """(kernel, nanoseconds since profiling began), in order of execution."""
        segment, steps = self.runnable.segment, self.program.steps
        return [(self.program.kernels[steps[n].kernel].name, taken)
                for n, taken in zip(segment.steps, segment.times.tolist())]  # fmt: skip

    def last_times(self) -> list[int]:
        """Nanoseconds of each step since the last time this was asked."""
        segment = self.runnable.segment
        found = [0] * len(self.program.steps)  # what had nothing to do was left out
        for number, taken in zip(segment.steps, segment.times.tolist()):
            found[number] = taken
        segment.times[:] = 0
        return found

    def texts(self) -> dict[str, str]:
        """The stages after the graph, as text; LLVM's own stages are made when asked for."""
        return _Texts(self)


class _Texts(dict):
    """Texts by stage, each made when first read."""

    def __init__(self, owner: CompiledGraph) -> None:
        super().__init__(dict.fromkeys(("kernels", "llvm", "llvm-opt", "asm"), ""))
        self.owner = owner

    def __getitem__(self, stage: str) -> str:
        if not super().__getitem__(stage):
            self[stage] = getattr(self, "_" + stage.replace("-", "_"))()
        return super().__getitem__(stage)

    def items(self) -> Any:
        return [(stage, self[stage]) for stage in self]

    def values(self) -> Any:
        return [self[stage] for stage in self]

    def _kernels(self) -> str:
        program, parts = self.owner.program, []
        for number, step in enumerate(program.steps):
            info = program.kernels[step.kernel]
            chunks = f", {step.chunks} chunks" if not isinstance(step, HostCall) else ""
            reads = " ".join(program.buffers[b].name for b in step.reads)
            writes = " ".join(program.buffers[b].name for b in step.writes)
            parts.append(f"{number}: {info.kind} {info.name} ({reads} -> {writes}{chunks})\n"
                         f"{info.text}\n")  # fmt: skip
        return "\n".join(parts) + f"\n{self.owner.runnable.plan}\n"

    def _each(self, function: Any) -> str:
        texts = []
        for module in self.owner.program.modules:
            options = jit.LIGHT if module.light else jit.DEFAULT
            texts.append(f"; {module.symbols[0]}\n" + function(module.text, options=options))
        return "\n".join(texts)

    def _llvm(self) -> str:
        return self._each(lambda text, options: text)

    def _llvm_opt(self) -> str:
        return self._each(jit.optimised_text)

    def _asm(self) -> str:
        from .listing import assembly

        return assembly(self.owner)


def compile_graph(source: Graph, passes: Callable[[], Graph] | None = None) -> CompiledGraph:
    """Native code for an optimised graph, or for one that `passes` give, optimised, if needed."""
    return CompiledGraph(source, passes)

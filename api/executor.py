"""Runs an optimised graph on arrays: natively, or by the interpreter where LLVM is absent."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .ir import interp
from .ir.graph import WRITE, Graph


class Executor:
    """A callable from input arrays to output arrays, in storage form."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.native: Any = None
        if native_wanted():
            from .backend import compile_graph

            self.native = compile_graph(graph)

    def __call__(self, arrays: list[np.ndarray]) -> Any:
        if self.native is not None:
            return self.native(*arrays)
        results = interp.run(self.graph, arrays)
        return own(self.graph, arrays, results)

    def text(self, stage: str) -> str:
        """kernels, llvm, llvm-opt or asm of the native program."""
        if self.native is None:
            return f"# @{self.graph.name} runs in the reference interpreter: there is no {stage}\n"
        return str(self.native.texts()[stage])


def own(graph: Graph, inputs: list[np.ndarray], results: list[np.ndarray]) -> list[np.ndarray]:
    """The interpreter's results as arrays of their own: never views of inputs or of each other."""
    owned = []
    for output, array in zip(graph.outputs, results):
        if output.kind == WRITE:
            owned.append(array)
        else:
            owned.append(np.array(array, order="C"))
    for output, array in zip(graph.outputs, owned):
        if output.kind == WRITE:
            np.copyto(inputs[output.target], array)  # type: ignore[index]
    return [inputs[o.target] if o.kind == WRITE else a  # type: ignore[index]
            for o, a in zip(graph.outputs, owned)]  # fmt: skip


def native_wanted() -> bool:
    """`WENGERT_BACKEND=interpreter` runs graphs without LLVM, for debugging."""
    if os.environ.get("WENGERT_BACKEND", "llvm") == "interpreter":
        return False
    from . import backend_available

    return backend_available()

"""The modules that packed products share, and which of them a graph needs for certain.

They take LLVM longest, so they are told of before the graph is planned: see `expected`.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from ..ir.graph import Graph
from ..ir.op import Template
from ..ir.program import Module
from .gemm import ELEMENT, Matmul, Packed, choose
from .gemm_core import core_symbol, core_text, fold_symbol, fold_text
from .render import identity
from .target import Target


def core_modules(element: str, folds: bool, target: Target) -> list[Module]:
    """The modules of the packed product, with the one that folds if it is needed."""
    symbol, fold = core_symbol(element), fold_symbol(element)
    parts = [(symbol, core_text, "wengert_parallel")] + [(fold, fold_text, symbol)] * folds
    return [Module(partial(text, element, target), identity(name, target), (name,), (needs,),
                   True, True) for name, text, needs in parts]  # fmt: skip


def expected(graph: Graph, target: Target) -> list[Module]:
    """Modules that any plan of the graph has."""
    found = {}
    for node in graph.nodes:
        if node.op.lower == Template("matmul"):
            (m, n), k = node.outputs[0].shape[-2:], node.inputs[0].shape[-1]  # type: ignore[union-attr]
            dtype = node.outputs[0].dtype.name
            if dtype in ELEMENT and dtype not in found and is_packed(dtype, m, n, k, target):
                found[dtype] = core_modules(ELEMENT[dtype], False, target)
    return [module for modules in found.values() for module in modules]


def is_packed(dtype: str, m: int, n: int, k: int, target: Target) -> bool:
    """Is a product packed wherever its operands lie?"""
    ways = product(((k, 1), (1, m)), ((n, 1), (1, k)))
    return all(choose(Matmul("", dtype, m, n, k, a, b, (n, 1)), target) is Packed
               for a, b in ways)  # fmt: skip

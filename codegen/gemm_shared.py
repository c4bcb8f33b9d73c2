"""The modules that packed products share, and which of them a graph needs for certain.

They take LLVM longest, so they are told of before the graph is planned: see `expected`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from itertools import product

from ..ir.graph import Graph
from ..ir.op import Template
from ..ir.program import Module
from .gemm import ELEMENT, Matmul, Packed, choose
from .gemm_core import core_symbol, core_text, fold_symbol, fold_text, turn_symbol, turn_text
from .gemm_walk import walk_symbol, walk_text
from .render import identity
from .target import Target


def shared_texts(element: str) -> tuple[tuple[str, Callable[..., str], tuple[str, ...]], ...]:
    """(symbol, text, imports) of each module that products share, what it imports before it."""
    core, turns = core_symbol(element), turn_symbol(element)
    return (
        (turns, turn_text, ()),
        (core, core_text, ("wengert_parallel", turns)),
        (fold_symbol(element), fold_text, (core,)),
        (walk_symbol(element), walk_text, ("wengert_parallel", turns)),
    )


def shared_modules(element: str, wanted: Collection[str], target: Target) -> list[Module]:
    """Those of the modules that products share which are wanted, and what these import."""
    found: list[Module] = []
    needed = set(wanted)
    for name, text, imports in reversed(shared_texts(element)):
        if name in needed:
            needed |= set(imports)
            write = partial(text, element, target)
            found.append(Module(write, identity(name, target), (name,), imports, True, True))
    return found[::-1]


def expected(graph: Graph, target: Target) -> list[Module]:
    """Modules that any plan of the graph has."""
    found = {}
    for node in graph.nodes:
        if node.op.lower == Template("matmul"):
            (m, n), k = node.outputs[0].shape[-2:], node.inputs[0].shape[-1]  # type: ignore[union-attr]
            dtype = node.outputs[0].dtype.name
            if dtype in ELEMENT and dtype not in found and is_packed(dtype, m, n, k, target):
                element = ELEMENT[dtype]
                found[dtype] = shared_modules(element, [core_symbol(element)], target)
    return [module for modules in found.values() for module in modules]


def is_packed(dtype: str, m: int, n: int, k: int, target: Target) -> bool:
    """Is a product packed wherever its operands lie?"""
    ways = product(((k, 1), (1, m)), ((n, 1), (1, k)))
    return all(choose(Matmul("", dtype, m, n, k, a, b, (n, 1)), target) is Packed
               for a, b in ways)  # fmt: skip

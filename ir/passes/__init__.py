"""Graph passes: valid IR in, valid IR out, one pass per file, run from one flat list.

`WENGERT_CHECK=1` verifies after each pass and compares with the reference interpreter.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from ..graph import Graph
from . import (
    accumulations,
    canonical,
    common_subexpressions,
    constants,
    dead_code,
    decompose,
    in_place,
    joins,
    picks,
    simplify,
    sinking,
)
from .checking import Checker

Pass = Callable[[Graph], Graph]

# Read top to bottom. Simplification runs again after decomposition exposed new patterns.
PASSES: tuple[tuple[str, Pass], ...] = (
    ("dead code", dead_code.but_checks),
    ("accumulations", accumulations.run),
    ("decompose", decompose.run),
    ("canonical", canonical.run),
    ("constants", constants.run),
    ("sinking", sinking.run),
    ("simplify", simplify.run),
    ("picks", picks.run),
    ("common subexpressions", common_subexpressions.run),
    ("dead code again", dead_code.but_checks),
    ("joins", joins.run),
    ("in place", in_place.run),
)
# Passes after which sums may round otherwise: left out where numerics are strict.
ROUNDING = frozenset({"joins"})


@dataclass(frozen=True)
class Step:
    """A pass that changed the graph, or failed on it, for the `passes` dump."""

    name: str
    graph: Graph
    error: str = ""


def checking() -> bool:
    """Is each pass checked?"""
    return os.environ.get("WENGERT_CHECK") == "1"


def optimise(graph: Graph, history: list[Step] | None = None, strict: bool = False) -> Graph:
    """Runs all passes; appends those that changed the graph to `history`."""
    graph = graph.unmarked()
    checker = Checker.unless_known(graph, PASSES, strict) if checking() else None
    for name, function in PASSES:
        if strict and name in ROUNDING:
            continue
        try:
            result = function(graph)
            if checker is not None and result is not graph:
                checker.check(name, result)
        except Exception as error:
            if history is not None:
                history.append(Step(name, graph, f"{type(error).__name__}: {error}"))
            raise
        if history is not None and result is not graph:
            history.append(Step(name, result))
        graph = result
    if checker is not None:
        checker.passed()
    return graph

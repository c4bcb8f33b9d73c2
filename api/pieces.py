"""Pieces of bodies that need Python: compiled functions that nobody sees."""

from __future__ import annotations

from typing import Any

from .compiling import CompiledFunction

MAX_RECORDED = 8  # kinds of call


class Piece(CompiledFunction):
    """A run of statements of a body; see Note [Pieces of a body] in outlining.py.

    Numbers on the way are part of the kind of a call where they are no floats: a piece that is
    given a new one each time runs in Python.
    """

    recorded = 0

    def record(self, key: Any, call: Any, structure: Any, leaves: list[Any]) -> Any:
        if self.recorded >= MAX_RECORDED:
            return self.run_eagerly(*call)
        self.recorded += 1
        return super().record(key, call, structure, leaves)

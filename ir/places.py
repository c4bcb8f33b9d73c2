"""Where the user was: cheap to take while ops run, resolved only when an error asks."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from bisect import bisect_right
from typing import Any

Place = tuple[Any, int]  # a code object and an instruction offset

OUR_FILES: dict[str, bool] = {}
USERS_FILES: set[str] = set()  # those known to be none of ours
_PACKAGE_FOLDERS: list[str] = []
_GO_BETWEENS = (copy.__file__, pickle.__file__)  # they call us for the user
# by id of a code object: itself, and its `line_starts`; recording asks for a line at every op
_LINES: dict[int, tuple[Any, list[int], list[int]]] = {}
MOST_LINE_TABLES = 500


def add_package_folder(folder: str) -> None:
    """Frames of code in `folder` are ours, not the user's."""
    _PACKAGE_FOLDERS.append(folder.rstrip(os.sep) + os.sep)
    OUR_FILES.clear()
    USERS_FILES.clear()


def is_ours(filename: str) -> bool:
    """Is a source file part of the library?"""
    known = OUR_FILES.get(filename)
    if known is None:
        known = filename.startswith((*_PACKAGE_FOLDERS, *_GO_BETWEENS, "<wengert", "<frozen"))
        OUR_FILES[filename] = known
        if not known:
            USERS_FILES.add(filename)
    return known


def user_level() -> int:
    """The `stacklevel` at which a warning of the caller names the user's line."""
    frame: Any = sys._getframe(1)
    level = 1
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def user_place() -> Place | None:
    """The user's code object and instruction offset."""
    frame: Any = sys._getframe(1)
    known_files = OUR_FILES
    while frame is not None:
        code = frame.f_code
        ours = known_files.get(code.co_filename)
        if ours is None:
            ours = is_ours(code.co_filename)
        if not ours:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def describe_place(place: Any) -> str:
    """`file:line` of a place taken by `user_place`, or of one in a graph."""
    if place is None:
        return "unknown place"
    if not isinstance(place, tuple):
        return f"{place.file}:{place.line}"
    return f"{place[0].co_filename}:{line_of(place)}"


def line_of(place: Place) -> int:
    """The line number of a place."""
    code, offset = place
    known = _LINES.get(id(code))
    if known is None or known[0] is not code:
        known = _LINES[id(code)] = (code, *line_starts(code))
        if len(_LINES) > MOST_LINE_TABLES:
            _LINES.clear()
    _, starts, lines = known
    return lines[bisect_right(starts, offset) - 1]


def line_starts(code: Any) -> tuple[list[int], list[int]]:
    """Offsets at which a line begins, in order, and those lines."""
    starts, lines = [-1], [code.co_firstlineno]
    for start, _, line in code.co_lines():
        starts.append(start)
        lines.append(lines[-1] if line is None else line)
    return starts, lines

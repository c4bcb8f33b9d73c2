"""Layered drawings of graphs: which row a box stands in, in which order, and where exactly.

Note [Layered layout]
    Rows by longest path; then boxes with few edges above are pulled down to their first reader. An
    edge over several rows gets a point in each of those between. The order within a row is that of
    the mean position of the neighbours, row by row, down and up in turn. Positions then are the
    least-squares fit to the means that keeps order and gaps: an isotonic regression per row, exact
    and linear.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

GAP, ROW_GAP, MARGIN = 16.0, 34.0, 12.0
SWEEPS = 12


@dataclass(eq=False)
class Box:
    """A box to place, or a point that an edge passes (no size)."""

    key: Hashable
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0  # of its centre
    y: float = 0.0  # of its top
    row: int = 0
    above: list[Box] = field(default_factory=list)
    below: list[Box] = field(default_factory=list)


@dataclass(frozen=True)
class Layout:
    """Placed boxes by key, the path of each edge as points, and the size of it all."""

    boxes: dict[Hashable, Box]
    paths: list[list[tuple[float, float]]]
    width: float
    height: float


def arrange(boxes: Sequence[Box], edges: Sequence[tuple[Hashable, Hashable]]) -> Layout:
    """Places boxes so that edges run downwards; see Note [Layered layout]."""
    by_key = {box.key: box for box in boxes}
    assign_rows(boxes, edges)
    chains, points = route(by_key, edges)
    rows: list[list[Box]] = [[] for _ in range(max((b.row for b in boxes), default=-1) + 1)]
    for box in (*boxes, *points):
        rows[box.row].append(box)
    order_rows(rows)
    place(rows)
    paths = [path_of(chain) for chain in chains]
    width = max((b.x + b.width / 2 for row in rows for b in row), default=0.0) + MARGIN
    height = max((b.y + b.height for row in rows for b in row), default=0.0) + MARGIN
    return Layout(by_key, paths, width, height)


def assign_rows(boxes: Sequence[Box], edges: Sequence[tuple[Hashable, Hashable]]) -> None:
    """Longest path from the sources; boxes must come in an order in which edges go forward."""
    into: dict[Hashable, list[Hashable]] = {}
    out: dict[Hashable, list[Hashable]] = {}
    for start, end in edges:
        into.setdefault(end, []).append(start)
        out.setdefault(start, []).append(end)
    row: dict[Hashable, int] = {}
    for box in boxes:
        row[box.key] = max((row[k] + 1 for k in into.get(box.key, ())), default=0)
    for box in reversed(boxes):
        # moving it down makes no more edges longer than shorter: boxes without inputs come along
        held = sum(1 for k in into.get(box.key, ()) if k in into)
        if 0 < len(out.get(box.key, ())) >= held:
            row[box.key] = min(row[k] for k in out[box.key]) - 1
    lowest = min(row.values(), default=0)
    for box in boxes:
        box.row = row[box.key] - lowest


def route(by_key: dict[Hashable, Box], edges: Sequence[tuple[Hashable, Hashable]]) -> tuple[
        list[list[Box]], list[Box]]:  # fmt: skip
    """Each edge as a chain of boxes and points in neighbouring rows."""
    chains, points = [], []
    for number, (start, end) in enumerate(edges):
        first, last = by_key[start], by_key[end]
        between = [Box(("edge", number, row), row=row) for row in range(first.row + 1, last.row)]
        points += between
        chain = [first, *between, last]
        for upper, lower in itertools.pairwise(chain):
            upper.below.append(lower)
            lower.above.append(upper)
        chains.append(chain)
    return chains, points


def order_rows(rows: list[list[Box]]) -> None:
    """Sorts each row by the mean position of its neighbours, down and up in turn."""
    position: dict[Box, float] = {}
    for row in rows:
        position.update((box, float(k)) for k, box in enumerate(row))
    best, fewest = [list(row) for row in rows], crossings(rows)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            means = {box: mean([position[n] for n in (box.above if down else box.below)],
                               position[box]) for box in row}  # fmt: skip
            row.sort(key=means.__getitem__)
            position.update((box, float(k)) for k, box in enumerate(row))
        now = crossings(rows)
        if now < fewest:
            best, fewest = [list(row) for row in rows], now
    for row, kept in zip(rows, best):
        row[:] = kept


def crossings(rows: list[list[Box]]) -> int:
    """How many edges between neighbouring rows cross: inversions, counted by bisection."""
    from bisect import bisect_right, insort

    total = 0
    for upper, lower in itertools.pairwise(rows):
        place_of = {box: k for k, box in enumerate(lower)}
        ends = [e for box in upper for e in sorted(place_of[b] for b in box.below)]
        seen: list[int] = []
        for end in ends:
            total += len(seen) - bisect_right(seen, end)
            insort(seen, end)
    return total


def mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def place(rows: list[list[Box]]) -> None:
    """Coordinates: rows from the top, boxes near their neighbours' mean."""
    top = MARGIN
    for row in rows:
        tallest = max((b.height for b in row), default=0.0)
        for box in row:
            box.y = top
            box.height = box.height or tallest  # an edge passes a row upright
        top += tallest + ROW_GAP
        x = 0.0
        for box in row:
            box.x = x + box.width / 2
            x += box.width + GAP
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            wanted = [mean([n.x for n in (b.above if down else b.below)], b.x) for b in row]
            fit(row, wanted)
    for row in rows:  # at last, both sides count
        fit(row, [mean([n.x for n in (*b.above, *b.below)], b.x) for b in row])
    left = min((b.x - b.width / 2 for row in rows for b in row), default=0.0)
    for row in rows:
        for box in row:
            box.x += MARGIN - left


def fit(row: list[Box], wanted: list[float]) -> None:
    """The closest positions to `wanted` that keep order and gaps: pools of boxes move together."""
    shifts, total = [], 0.0
    for k, box in enumerate(row):
        if k:
            total += (row[k - 1].width + box.width) / 2 + GAP
        shifts.append(total)
    pools: list[list[float]] = []  # (mean, count)
    for want, shift in zip(wanted, shifts):
        pools.append([want - shift, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            value, count = pools.pop()
            before, n = pools[-1]
            pools[-1] = [(before * n + value * count) / (n + count), n + count]
    k = 0
    for value, count in pools:
        for _ in range(int(count)):
            row[k].x = value + shifts[k]
            k += 1


def path_of(chain: list[Box]) -> list[tuple[float, float]]:
    first, last = chain[0], chain[-1]
    points = [(first.x, first.y + first.height)]
    points += [(box.x, y) for box in chain[1:-1] for y in (box.y, box.y + box.height)]
    points.append((last.x, last.y))
    inner = [b for a, b, c in zip(points, points[1:], points[2:]) if not a[0] == b[0] == c[0]]
    return [points[0], *inner, points[-1]]

"""`Compare`: many measurements as tables, one for each label."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import numpy as np

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

BEST, GOOD, BAD, VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
BOLD, TERMINATE = "\033[1m", "\033[0m"


class Colorize(enum.Enum):
    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Compare(results).print(): a row for each statement, a column for each description."""

    def __init__(self, results: list[Measurement]):
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = self._highlight_warnings = False
        self._colorize = Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements."""
        results = [*results]
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(result)} instead."
                )
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Shows no more figures than the spread of the times allows."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours the fast and the slow of a column, or of a row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks measurements whose times are far apart."""
        self._highlight_warnings = True

    def print(self) -> None:
        print(str(self))

    def __str__(self) -> str:
        groups: dict[Any, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            groups.setdefault(result.label, []).append(result)
        looks = self._colorize, self._trim_significant_figures, self._highlight_warnings
        return "\n".join(Table(group, *looks).render() for group in groups.values())


class Table:
    """The measurements of one label. Rows of equal thread counts are a group."""

    def __init__(self, results: list[Measurement], colours: Colorize, trims: bool, warns: bool):
        self.results, self.colours, self.trims, self.warns = results, colours, trims, warns
        self.unit, self.scale = select_unit(min(r.median for r in results))
        rows = ordered_unique(row_of(r) for r in results)
        self.rows = sorted(rows, key=lambda row: row[:2])
        self.columns = ordered_unique(r.description for r in results)
        self.cells = {(row_of(r), r.description): r for r in results}
        self.templates = {column: self.template(column) for column in self.columns}

    def column(self, description: Any) -> list[Measurement]:
        return [r for r in self.results if r.description == description]

    def template(self, description: Any) -> tuple[str, bool]:
        """How a column's numbers are printed, and whether some of them carry a warning."""
        found = self.column(description)
        digits = [int(np.ceil(np.log10(np.float32(r.median / self.scale)))) for r in found]
        decimals = 1
        if self.trims:
            decimals = min(max(r.significant_figures - d, 0) for r, d in zip(found, digits))
        length = max(digits) + decimals + bool(decimals)
        warned = self.warns and any(r.has_warnings for r in found)
        return f"{{:>{max(length, 0)}.{decimals}f}}{{:>{7 * warned}}}", warned

    def text(self, result: Measurement | None, description: Any) -> str:
        template, warned = self.templates[description]
        if result is None:
            return " " * len(template.format(1, ""))
        value = result.median / self.scale
        if self.trims:
            value = trim_sigfig(value, result.significant_figures)
        spread = result.iqr / result.median
        return template.format(value, f" (! {spread * 100:.0f}%)"
                               if warned and result.has_warnings else "")  # fmt: skip

    def names(self) -> list[str]:
        """The first column: environments where there are several, and the rows' own names."""
        several = len({row[1] for row in self.rows}) > 1
        width = max(len(row[1]) for row in self.rows) if several else 0
        names, before = [], None
        for threads, env, name in self.rows:
            shown = f"({env})" if several and (threads, env) != before else ""
            names.append("  " + shown.ljust(width + 4) + name)
            before = threads, env
        return names

    def render(self) -> str:
        names = self.names()
        texts = [[self.text(self.cells.get((row, c)), c) for c in self.columns]
                 for row in self.rows]  # fmt: skip
        heads = [column or "" for column in self.columns]
        widths = [max(map(len, column)) for column in zip(heads, *texts)]
        first = max(map(len, names))
        lines = ["  |  ".join([" " * first, *(h.center(w) for h, w in zip(heads, widths))])]
        total, threads = len(lines[0]), None
        for row, name, cells in zip(self.rows, names, texts):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(total, "-"))
            shown = [self.coloured(text.center(w), row, c)
                     for text, w, c in zip(cells, widths, self.columns)]  # fmt: skip
            lines.append("  |  ".join([name.ljust(first), *shown]))
        label = f" {self.results[0].label or ''} ".center(total - 2, "-")
        noted = self.warns and any(r.has_warnings for r in self.results)
        note = ("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
                if noted else "")  # fmt: skip
        end = f"Times are in {unit_to_english(self.unit)}s ({self.unit})."
        return "\n".join([f"[{label}]", *lines, "", end, note])

    def coloured(self, text: str, row: Any, description: Any) -> str:
        """A cell's text, coloured by how far it is from the best of its column or row."""
        result = self.cells.get((row, description))
        if result is None or self.colours is Colorize.NONE:
            return text
        if self.colours is Colorize.ROWWISE:
            among = [r for r in self.results if row_of(r) == row]
        else:
            among = [r for r in self.column(description) if r.num_threads == row[0]]
        best, value = min(r.median for r in among), result.median
        if value <= best * 1.01 or value <= best + 100e-9:
            return BEST + BOLD + text + TERMINATE * 2
        if value <= best * 1.1:
            return GOOD + BOLD + text + TERMINATE * 2
        if value >= best * 5:
            return VERY_BAD + BOLD + text + TERMINATE * 2
        return BAD + text + TERMINATE * 2 if value >= best * 2 else text


def row_of(result: Measurement) -> tuple[int, str, str]:
    """What makes a row: threads, environment, name."""
    return result.num_threads, result.env or "Unspecified env", result.as_row_name

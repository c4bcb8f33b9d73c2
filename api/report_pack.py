"""What makes a report small: lines that repeat are written once, and all of it is deflated.

Note [Packed lines]
    Kernels share the text of math functions, and every pass prints the whole graph again, at
    distances that deflate does not see. So all lines go into one table, in order of their first
    use, and a text is the steps from each line's number to the next: mostly ones.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

NATIVE = ("llvm", "llvm-opt", "asm")


class Table:
    """Lines by number, in order of their first use."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def steps(self, lines: list[str]) -> list[int]:
        """A text as differences of numbers; see Note [Packed lines]."""
        found, last = [], 0
        for line in lines:
            number = self.numbers.setdefault(line, len(self.numbers))
            found.append(number - last)
            last = number
        return found

    def columns(self, rows: list[list[Any]], text: int) -> list[list[Any]]:
        """Rows as columns, that of the text as steps."""
        columns = [list(column) for column in zip(*rows)] or [[] for _ in range(text + 1)]
        columns[text] = self.steps(columns[text])
        return columns


def packed(shown: dict[str, Any]) -> str:
    """Data of a report as text; report_page.js.j2 has the inverse."""
    table = Table()
    modules = [
        {**module, **{stage: table.columns(module[stage], 0) for stage in NATIVE}}
        for module in shown["modules"]
    ]
    passes = [
        {**group, "steps": [{**step, "lines": table.columns(step["lines"], 1)}
                            for step in group["steps"]]}
        for group in shown["passes"]
    ]  # fmt: skip
    whole = {**shown, "modules": modules, "passes": passes, "table": list(table.numbers)}
    text = json.dumps(whole, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()

"""`wengert coverage`: every public name, or op, and how it runs, generated from the catalogue."""

from __future__ import annotations

from typing import Any

EXAMPLES = """  wengert coverage | grep softmax     what there is of a name
  wengert coverage --ops              how each op of the IR is compiled
"""


def register(commands: Any) -> None:
    from . import command

    parser = command(commands, "coverage", "list names: class, differentiable, how compiled",
                     run, EXAMPLES)  # fmt: skip
    parser.add_argument("--ops", action="store_true", help="the ops of the IR instead of names")
    parser.add_argument("--markdown", action="store_true", help="as a Markdown table")
    parser.add_argument("--reference", action="store_true", help="the IR reference, docs/ops.md")


def rows() -> list[tuple[str, str, str, str]]:
    """(op, kind, differentiable, how it is compiled) for each entry."""
    from ..codegen.coverage import how
    from ..ir.op import TABLE

    return [(name, op.kind, "yes" if op.differentiable else "no", how(op))
            for name, op in sorted(TABLE.items())]  # fmt: skip


def run(options: Any) -> int:
    if options.reference:
        from ..reference import reference

        print(reference(), end="")
        return 0
    from ..surface import rows as names

    header = (*(("op", "kind") if options.ops else ("name", "class")), "differentiable", "compiled")
    table = [header, *(rows() if options.ops else names())]
    if options.markdown:
        print("| " + " | ".join(header) + " |\n|---|---|---|---|")
        for row in table[1:]:
            print("| " + " | ".join(row) + " |")
        return 0
    widths = [max(len(row[k]) for row in table) for k in range(4)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    return 0

"""The IR reference, docs/ops.md, made from the catalogue."""

from __future__ import annotations

import inspect
from typing import Any

HEAD = """# The ops of the IR

Made by `python -m wengert coverage --reference` from the catalogue; entries are in `ir/ops/`.

An instruction is `%n: type = op operands {attributes}`; attributes left out have the default shown.
*Saved* is what the derivative rule of an input names, and so what is kept for backward. *Compiled*
says how native code computes it.
"""


def reference() -> str:
    """All ops, by the file that defines them."""
    from .ir.op import TABLE

    groups: dict[str, list[Any]] = {}
    for op in TABLE.values():
        groups.setdefault(home(op), []).append(op)
    parts = [HEAD]
    for file in sorted(groups):
        parts.append(f"\n## {file}\n\n| op | attributes | saved for the gradient of | compiled |\n"
                     "|---|---|---|---|")  # fmt: skip
        parts += [row(op) for op in sorted(groups[file], key=lambda op: op.name)]
    return "\n".join(parts) + "\n"


def home(op: Any) -> str:
    """The file of an entry: where its rules or its evaluation are written."""
    functions = [rule.function for rule in op.rules.values()]
    functions += [op.numpy, getattr(op.lower, "emit", None), getattr(op.lower, "function", None)]
    for function in functions:
        code = getattr(function, "__code__", None)
        file = code.co_filename.replace("\\", "/") if code is not None else ""
        if "/ir/ops/" in file and not file.endswith(("kinds.py", "/op.py")):
            return file.rpartition("/")[2]
    return "others"


def row(op: Any) -> str:
    from .codegen.coverage import how

    inputs = " ".join(
        ("*" if k == op.variadic else "") + name + ("?" if k in op.optional else "")
        for k, name in enumerate(op.inputs)
    )
    outputs = ("*" if op.many_outputs else "") + " ".join(op.outputs)
    attributes = ", ".join(
        name if name not in op.defaults else f"{name}={op.defaults[name]!r}"
        for name in op.attributes
    )
    saved = []
    for position, rule in sorted(op.rules.items()):
        names = inspect.signature(rule.function).parameters
        kept = [n for n in names if n in op.inputs or n in op.outputs]
        saved.append(f"{op.inputs[position]}: {', '.join(kept) or 'nothing'}")
    cells = (f"`{op.name}` {inputs} -> {outputs}", attributes, "; ".join(saved) or "-",
             how(op))  # fmt: skip
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

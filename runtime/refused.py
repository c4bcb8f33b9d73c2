"""What LLVM says of text that it refuses, with the lines it speaks of."""

from __future__ import annotations

import re


def explain(message: str, text: str, around: int = 3) -> str:
    """LLVM's message, followed by the lines it speaks of."""
    lines = text.splitlines()
    shown: set[int] = set()
    for number in _lines_at_fault(message, lines):
        shown.update(range(max(0, number - around), min(len(lines), number + around + 1)))
    # Capped, because one broken value may be named by hundreds of lines.
    excerpt = "\n".join(f"{i + 1:6d} | {lines[i]}" for i in sorted(shown)[:60])
    return "\n".join(
        filter(None, [f"internal error: LLVM refused generated text: {message.strip()}", excerpt])
    )


def _lines_at_fault(message: str, lines: list[str]) -> list[int]:
    # The parser gives a position; the verifier prints the instruction, as LLVM would write it.
    position = re.search(r"<string>:(\d+):\d+:", message)
    if position:
        return [int(position[1]) - 1]
    names = set()
    for line in message.splitlines():
        result = re.match(r"\s*(%[\w.]+|%\"[^\"]+\") = ", line)
        if result:
            names.add(result[1])
    found = [
        i
        for i, line in enumerate(lines)
        if any(line.strip().startswith(f"{name} =") for name in names)
    ]
    if found:
        return found
    spelled = {line.strip() for line in message.splitlines()[1:]}
    return [i for i, line in enumerate(lines) if line.strip() in spelled]

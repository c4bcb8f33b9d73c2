"""`wengert explain`: what a code or a message means and what to do."""

from __future__ import annotations

from typing import Any

EXAMPLES = """  wengert explain                       all codes
  wengert explain R101                  one of them
  wengert explain "hands a value"       by words of its message
"""


def register(commands: Any) -> None:
    from . import command

    parser = command(commands, "explain", "say what a code or message means and what to do", run,
                     EXAMPLES)  # fmt: skip
    parser.add_argument("code", nargs="?", help="R101, or words of a message; all if left out")
    parser.add_argument("--markdown", action="store_true", help="all codes as a Markdown page")


def run(options: Any) -> int:
    from .. import codes

    if options.markdown:
        print(codes.markdown(), end="")
    elif options.code is None:
        for code in codes.CODES:
            print(f"{code.code}  {code.words}")
    else:
        found = codes.find(options.code)
        if found is None:
            raise ValueError(f"no code {options.code!r}; `wengert explain` lists all")
        print(codes.text_of(found), end="")
    return 0

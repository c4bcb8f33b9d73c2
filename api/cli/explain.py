"""`wengert explain`: what a code means and what to do; `wengert report`: the page of a function."""

from __future__ import annotations

from typing import Any


def register(commands: Any) -> None:
    from . import command

    parser = command(commands, "explain", "say what a code or message means and what to do", run)
    parser.add_argument("code", nargs="?", help="R101, or words of a message; all if left out")
    parser.add_argument("--markdown", action="store_true", help="all codes as a Markdown page")
    parser = command(commands, "report", "run a script, write the page of a function", report)
    parser.add_argument("target", help="script.py:function")
    parser.add_argument("--out", help="the page (default: function.html)")


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


def report(options: Any) -> int:
    from .graphs import load_target

    function = load_target(options.target)
    if not hasattr(function, "report"):
        raise TypeError(f"{options.target} is not a compiled function; decorate it with compile")
    path = function.report(options.out or f"{options.target.rpartition(':')[2]}.html")
    print(f"wrote {path}")
    return 0

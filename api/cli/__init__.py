"""The command line: `python -m wengert COMMAND`. Errors are one line unless `--debug` is given."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .. import __version__

EXAMPLES = """examples:
  python -m wengert demo                              train a small model, eagerly and compiled
  python -m wengert run-ir graph.ir --inputs x.npz    run a dumped graph
  python -m wengert report train.py:step              the compiler's page of a function
  python -m wengert explain R101                      what a code means, and what to do
  python -m wengert coverage                          what is there, and what is compiled natively
  python -m wengert cache clear                       forget compiled kernels
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit code: 0 well, 1 the command failed, 2 wrong usage."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        return int(options.run(options) or 0)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if options.debug:
            raise
        print(f"wengert: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wengert",
        description="Autograd with torch's names, and a compiler that shows its work.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    from . import cache, coverage, demo, doctor, explain, fuzz, graphs

    for module in (demo, explain, graphs, coverage, cache, doctor, fuzz):
        module.register(commands)
    return parser


def command(commands: Any, name: str, help: str, run: Any) -> argparse.ArgumentParser:
    """Adds a command; its description is its help."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    parser.set_defaults(run=run)
    return parser

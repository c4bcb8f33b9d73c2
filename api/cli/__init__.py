"""The command line: `python -m wengert COMMAND`. Errors are one line unless `--debug` is given."""

from __future__ import annotations

import argparse
import os
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
  python -m wengert bug train.py                      pack a report of a fault of the compiler
  python -m wengert bench --peer-python PYTHON        training steps, beside torch and jax
"""


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit code: 0 well, 1 the command failed, 2 wrong usage."""
    parser = make_parser()
    options, options.rest = parser.parse_known_args(arguments, argparse.Namespace(passes_on=False))
    if options.rest and not options.passes_on:
        parser.error(f"unrecognized arguments: {' '.join(options.rest)}")
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    try:
        return int(options.run(options) or 0)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `wengert coverage | head` has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (what is left is flushed at the exit)
        return 0
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
    from . import bench, bug, cache, coverage, demo, doctor, explain, fuzz, graphs

    for module in (demo, explain, graphs, coverage, cache, doctor, bug, bench, fuzz):
        module.register(commands)
    return parser


def command(commands: Any, name: str, help: str, run: Any, examples: str = "",
            **more: Any) -> argparse.ArgumentParser:  # fmt: skip
    """Adds a command; its description is its help, its examples stand below the options."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=help, epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter, **more,
    )  # fmt: skip
    parser.add_argument("--debug", action="store_true", default=argparse.SUPPRESS,
                        help="show tracebacks of errors")  # fmt: skip
    parser.set_defaults(run=run)
    return parser

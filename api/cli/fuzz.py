"""`wengert fuzz`: random programs on every route; what differs is printed as a script."""

from __future__ import annotations

from typing import Any

from . import command


def register(commands: Any) -> None:
    parser = command(commands, "fuzz", "run random programs eagerly, interpreted and compiled, "
                     "against float64; print what differs", run)  # fmt: skip
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--seeds", default="", metavar="A:B",
                        help="these seeds only, in this process")  # fmt: skip
    parser.add_argument("--whole", action="store_true", help="do not make what fails smaller")


def run(options: Any) -> int:
    from ..fuzz.campaign import campaign, search

    def report(text: str) -> None:
        if text:
            print(text, flush=True)

    if options.seeds:
        first, _, last = options.seeds.partition(":")
        seeds = range(int(first), int(last or int(first) + 1))
        return 1 if search(seeds, report, small=not options.whole) else 0
    ran, failed = campaign(options.first, options.seconds, report)
    print(f"{ran} programs, {failed} failed")
    return 1 if failed else 0

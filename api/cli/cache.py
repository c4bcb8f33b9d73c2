"""`wengert cache`: the disk cache of compiled kernels."""

from __future__ import annotations

from typing import Any

EXAMPLES = """  wengert cache          where it is, how large
  wengert cache clear    forget compiled kernels
"""


def register(commands: Any) -> None:
    from . import command

    parser = command(commands, "cache", "show or clear the cache of compiled kernels", run,
                     EXAMPLES)  # fmt: skip
    parser.add_argument("action", nargs="?", choices=["info", "clear"], default="info")


def run(options: Any) -> int:
    from ..runtime import cache, store

    if options.action == "clear":
        print(f"removed {cache.clear()} entries")
        return 0
    info = store.info()
    print(f"directory  {info.directory}")
    print(f"enabled    {info.enabled}" + (f" ({info.reason})" if info.reason else ""))
    print(f"entries    {info.entries}")
    print(f"bytes      {info.bytes:,} of at most {info.limit:,}")
    return 0

"""One-line events on stderr, for those who ask: `WENGERT_LOG=compile,guards,cache,kernels`.

Note [Events]
    Events are few (none on a replayed call), so the environment is read at each one. A message is
    a function of what is known, called only if somebody listens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

KINDS = ("compile", "guards", "cache", "kernels")


def wanted(kind: str) -> bool:
    """Is this kind of event asked for? `all` asks for every kind."""
    asked = os.environ.get("WENGERT_LOG", "")
    return bool(asked) and (kind in asked.split(",") or asked == "all")


def log(kind: str, message: Callable[[], str]) -> None:
    """Prints an event if its kind is asked for; see Note [Events]."""
    if wanted(kind):
        line = " ".join(message().split())
        print(f"wengert {kind}: {line}", file=sys.stderr, flush=True)

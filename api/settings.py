"""What `compile(numerics=..., threads=...)` asks for."""

from __future__ import annotations

from typing import Any, NamedTuple


class Settings(NamedTuple):
    """`strict`: pointwise results bit-equal to eager's; `threads`: of the function's calls."""

    strict: bool = False
    threads: int | None = None


DEFAULT = Settings()


def settings_of(numerics: Any, threads: Any) -> Settings:
    """The options, checked."""
    if numerics not in ("default", "strict"):
        raise ValueError(f"numerics must be 'default' or 'strict', got {numerics!r}")
    if threads is not None and (type(threads) is not int or threads < 1):
        raise ValueError(f"threads must be a positive integer or None, got {threads!r}")
    return Settings(numerics == "strict", threads)

"""Modules made without drawing their first values."""

from __future__ import annotations

from typing import Any

from ...tracer.tensor import device as device_of


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """skip_init(module_cls, *args, **kwargs): a module whose parameters are not initialised.

    There is no device without memory here, so the values are drawn, but from no one's generator.
    """
    from ... import random as generators
    from ..modules.module import Module

    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    device_of(kwargs.pop("device", "cpu"))
    with generators.fork_rng():
        return module_cls(*args, **kwargs)

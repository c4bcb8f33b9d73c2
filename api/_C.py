"""`torch._C`: the few names of torch's core that programs use for `__torch_function__`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .ir.overriding import unasked
from .tracer.subclasses import disabled as _disabled_torch_function_impl

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "_disabled_torch_function_impl"]


@contextlib.contextmanager
def DisableTorchFunctionSubclass() -> Iterator[Any]:
    """A block in which no `__torch_function__` is asked."""
    with unasked():
        yield


DisableTorchFunction = DisableTorchFunctionSubclass

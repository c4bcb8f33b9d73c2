"""`torch.nn.attention`: which kernel attention uses; here there is one, so nothing changes."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any


class SDPBackend(enum.IntEnum):
    """The kernels torch has for scaled_dot_product_attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """sdpa_kernel(backends): a block in which attention may use only these kernels."""
    for backend in backends if isinstance(backends, list) else [backends]:
        if not isinstance(backend, SDPBackend):
            raise AssertionError("Backend must be an instance of SDPBackend or a list of "
                                 f"SDPBackend instances, got {type(backend).__name__}")  # fmt: skip
    yield

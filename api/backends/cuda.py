"""`torch.backends.cuda`: settings that change nothing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any


class _Matmul:
    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Matmul()


def is_built() -> bool:
    """False."""
    return False


def _accept(*args: Any, **kwargs: Any) -> None:
    """Accepted: attention has one implementation."""


enable_flash_sdp = enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = _accept


def flash_sdp_enabled() -> bool:
    """False."""
    return False


def math_sdp_enabled() -> bool:
    """True."""
    return True


mem_efficient_sdp_enabled = cudnn_sdp_enabled = flash_sdp_enabled


def preferred_linalg_library(backend: Any = None) -> None:
    """Accepted: there is one."""


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True,
               enable_mem_efficient: bool = True, enable_cudnn: bool = True) -> Any:  # fmt: skip
    """A block in which attention may use some implementations: there is one."""
    yield {}

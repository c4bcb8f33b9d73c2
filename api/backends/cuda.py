"""`torch.backends.cuda`: settings that change nothing."""

from __future__ import annotations

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

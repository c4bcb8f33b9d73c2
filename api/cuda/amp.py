"""`torch.cuda.amp`: the old names of `torch.amp`, for a device that is not there."""

from __future__ import annotations

from typing import Any

from .. import amp
from ..amp import warn_of_old_name


def custom_fwd(fwd: Any = None, **kwargs: Any) -> Any:
    """The old name of `torch.amp.custom_fwd(device_type="cuda")`."""
    warn_of_old_name("cuda", "custom_fwd", "args..., device_type='cuda'")
    return amp.custom_fwd(fwd, device_type="cuda", **kwargs)


def custom_bwd(bwd: Any) -> Any:
    """The old name of `torch.amp.custom_bwd(device_type="cuda")`."""
    warn_of_old_name("cuda", "custom_bwd", "args..., device_type='cuda'")
    return amp.custom_bwd(bwd, device_type="cuda")


class autocast(amp.autocast):
    """autocast(enabled=True): does nothing without CUDA."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True):
        warn_of_old_name("cuda", "autocast", "'cuda', args...")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """GradScaler(): does nothing without CUDA."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        warn_of_old_name("cuda", "GradScaler", "'cuda', args...")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval,
                         enabled)  # fmt: skip

"""`torch.cuda.amp`: the old names of `torch.amp`, for a device that is not there."""

from __future__ import annotations

import functools
from typing import Any

from .. import amp

custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")
custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")


class autocast(amp.autocast):
    """autocast(enabled=True): does nothing without CUDA."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True):
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
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval,
                         enabled)  # fmt: skip

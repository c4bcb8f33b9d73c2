"""`torch.cpu.amp`: the old names of `torch.amp` for the CPU."""

from __future__ import annotations

from typing import Any

from .. import amp
from ..amp import warn_of_old_name
from ..ir.types import bfloat16


class autocast(amp.autocast):
    """autocast(enabled=True): `torch.amp.autocast("cpu")`."""

    def __init__(self, enabled: bool = True, dtype: Any = bfloat16, cache_enabled: bool = True):
        warn_of_old_name("cpu", "autocast", "'cpu', args...")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """GradScaler(): `torch.amp.GradScaler("cpu")`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        warn_of_old_name("cpu", "GradScaler", "'cpu', args...")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval,
                         enabled)  # fmt: skip

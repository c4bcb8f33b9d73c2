"""`torch.cpu.amp`: the old names of `torch.amp` for the CPU."""

from __future__ import annotations

from typing import Any

from .. import amp
from ..ir.types import bfloat16


class autocast(amp.autocast):
    """autocast(enabled=True): `torch.amp.autocast("cpu")`."""

    def __init__(self, enabled: bool = True, dtype: Any = bfloat16, cache_enabled: bool = True):
        super().__init__("cpu", dtype, enabled, cache_enabled)

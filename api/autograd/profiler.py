"""`torch.autograd.profiler`: the older names of `torch.profiler`."""

from __future__ import annotations

from typing import Any

from .. import profiler
from ..profiler import EventList, record_function

__all__ = ["EventList", "profile", "record_function"]


class profile(profiler.profile):
    """profile(enabled=True, ...): measures the block."""

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self.enabled = enabled

    def start(self) -> None:
        """Begins to measure, if it is enabled."""
        if self.enabled:
            super().start()

    @property
    def function_events(self) -> EventList:
        """Every call, in order."""
        return self.events()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The table of all calls."""
        return self.events().table(*args, **kwargs)

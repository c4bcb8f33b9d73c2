"""`torch.cpu`: the device that is there, asked as the others are. Streams change nothing on it."""

from __future__ import annotations

import contextlib
from typing import Any

from . import amp

__all__ = ["Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count",
           "is_available", "is_initialized", "set_device", "stream", "synchronize"]  # fmt: skip


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing to do: there is one."""


def synchronize(device: Any = None) -> None:
    """Nothing to do: a call has computed its results when it returns."""


class Stream:
    """Stream(priority=-1): calls on the CPU run in their order, whatever the stream."""

    def __init__(self, priority: int = -1):
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing to do."""

    def record_event(self) -> None:
        """Nothing to do."""

    def wait_event(self, event: Any) -> None:
        """Nothing to do."""


class Event:
    """Event(): what came before it is done."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing to do."""

    def synchronize(self) -> None:
        """Nothing to do."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to do."""


_current = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream of all calls, or that of the `StreamContext` around this one."""
    return _current


class StreamContext(contextlib.AbstractContextManager[None]):
    """StreamContext(stream): makes it `current_stream()` in the block."""

    def __init__(self, stream: Stream):
        self.stream = stream

    def __enter__(self) -> None:
        global _current
        self.before, _current = _current, _current if self.stream is None else self.stream

    def __exit__(self, *error: Any) -> None:
        global _current
        _current = self.before


def stream(stream: Stream) -> StreamContext:
    """stream(s): `StreamContext(s)`."""
    return StreamContext(stream)

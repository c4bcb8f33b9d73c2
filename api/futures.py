"""`torch.futures`: values that are set later, by another thread."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any


class Future:
    """Future(*, devices=None): `wait()` gives what `set_result()` was given."""

    def __init__(self, *, devices: Any = None) -> None:
        self._future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def done(self) -> bool:
        """Is there a value, or an error?"""
        return self._future.done()

    def set_result(self, result: Any) -> None:
        """Sets the value, once."""
        if self.done():
            raise RuntimeError("Attempting to mark a completed Future as complete again. Note that "
                               "a Future can only be marked completed once.")  # fmt: skip
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which `wait()` raises."""
        self._future.set_exception(result)

    def wait(self) -> Any:
        """The value, when it is there."""
        return self._future.result()

    value = wait

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of `callback(self)`, called when this one is done."""
        after = Future()

        def run(_: Any) -> None:
            try:
                after.set_result(callback(self))
            except Exception as error:
                after.set_exception(error)

        self._future.add_done_callback(run)
        return after

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Calls `callback(self)` when it is done."""
        self._future.add_done_callback(lambda _: callback(self))


def wait_all(futures: list[Future]) -> list[Any]:
    """The values of all."""
    return [future.wait() for future in futures]


def collect_all(futures: list[Future]) -> Future:
    """A future of the list of futures, done when all are."""
    whole = Future()
    left = len(futures)

    def one_less(_: Future) -> None:
        nonlocal left
        left -= 1
        if not left:
            whole.set_result(futures)

    for future in futures:
        future.add_done_callback(one_less)
    if not futures:
        whole.set_result(futures)
    return whole

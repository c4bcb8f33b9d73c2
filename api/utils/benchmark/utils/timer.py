"""`Timer`: timeit with warm-up, a fixed number of threads, and as many runs as it takes."""

from __future__ import annotations

import enum
import sys
import textwrap
import timeit
from collections.abc import Callable
from typing import Any

from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer
MOST_RUNS = 2147483647


class Language(enum.Enum):
    PYTHON = 0
    CPP = 1


class Timer:
    """Timer(stmt, setup, globals=...): measures a statement given as text.

    `label`, `sub_label`, `description` and `env` name it in prints; `torch` is known in `stmt`.

    >>> Timer("x @ x", globals={"x": torch.ones(64, 64)}).blocked_autorange()
    """

    _timer_cls: Any = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ):
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("language='c++' needs a C++ compiler and torch's headers; "
                                      "time Python statements")  # fmt: skip
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this "
                             "code can simply be moved to `setup`.")  # fmt: skip
        package = sys.modules[__name__.partition(".")[0]]
        self._globals = {"torch": package, **(globals or {})}
        stmt, setup = _without_margin(stmt), _without_margin(setup)
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env,
                                   num_threads)  # fmt: skip

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _threads(self) -> Any:
        return set_torch_threads(self._task_spec.num_threads)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One run of `number` executions, after a warm-up of a hundredth of them."""
        with self._threads():
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not here: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> None:
        """Not here: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None,
                          min_run_time: float = 0.2) -> Measurement:  # fmt: skip
        """Runs of equal length for `min_run_time` seconds in all.

        A run has so many executions that reading the clock is a ten-thousandth of it.
        """
        number = self._number_for(min_run_time)
        times = self._times(number, min_run_time, None, callback, lambda times: True)
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """As `blocked_autorange`, until the interquartile range is small, or time is up."""
        number = self._number_for(0.05)

        def is_steady(times: list[float]) -> bool:
            found = Measurement(number, times, self._task_spec)
            return len(times) > 3 and found.meets_confidence(threshold)

        times = self._times(number, min_run_time, max_run_time, callback, is_steady)
        return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> None:
        """Not here: there is no Valgrind in sight."""
        raise NotImplementedError("instruction counts need Valgrind and torch's own build; use "
                                  "blocked_autorange()")  # fmt: skip

    def _times(self, number: int, least: float, most: float | None, callback: Any,
               is_done: Callable[[list[float]], bool]) -> list[float]:  # fmt: skip
        times: list[float] = []
        total, done = 0.0, False
        with self._threads():
            while total < least or not done:
                spent = self._timeit(number)
                times.append(spent)
                total += spent
                if callback:
                    callback(number, spent)
                done = is_done(times)
                if most and total > most:
                    break
        return times

    def _number_for(self, seconds: float) -> int:
        """How many executions make a run beside which reading the clock is nothing."""
        with self._threads():
            clock = sorted(self._timeit(0) for _ in range(5))[2]
            number = 1
            while number * 10 <= MOST_RUNS:
                spent = self._timeit(number)
                if spent > seconds or (clock / spent <= 1e-4 and spent >= seconds / 1000):
                    break
                number *= 10
        return number


def _without_margin(text: str) -> str:
    text = textwrap.dedent(text)
    return (text[1:] if text.startswith("\n") else text).rstrip()

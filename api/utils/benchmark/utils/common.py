"""What was measured: a statement, its times and their statistics.

Statistics for people (units, significant figures) are taken in 32 bits, as torch does: the same
times print the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads",
           "trim_sigfig", "unit_to_english"]  # fmt: skip

MOST_FIGURES = 4
SHORTEST_INTERVAL = 25e-9  # seconds; a clock is not better
UNSTEADY, VERY_UNSTEADY = 0.1, 0.25  # interquartile range, relative to the median
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """What a Timer runs, and what people call it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is not None or "\n" not in self.stmt:
            name = self.stmt if self.label is None else self.label
            return f"{name}: {self.sub_label}" if self.sub_label else name
        below = f" ({self.sub_label})" if self.sub_label else ""
        return f"stmt:{below}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """The setup in words; "" where there is none."""
        if self.setup in ("pass", ""):
            return ""
        several = "\n" in self.setup
        return "setup:\n" + textwrap.indent(self.setup, "  ") if several else f"setup: {self.setup}"

    def summarize(self) -> str:
        """The lines of a measurement that say what was measured."""
        parts = [part for part in (self.title, self.description, self.setup_str()) if part]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts)


_FIELDS = tuple(field.name for field in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(repr=False)
class Measurement:
    """Times of a statement: `raw_times` of runs of `number_per_run` executions each."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Seconds of one execution, by run."""
        return [time / self.number_per_run for time in self.raw_times]

    def quantile(self, q: float) -> float:
        """-1 without a run."""
        return float(np.quantile(np.sort(self.times), q)) if self.raw_times else -1.0

    @property
    def median(self) -> float:
        return self.quantile(0.5)

    @property
    def mean(self) -> float:
        return float(np.mean(np.sort(self.times))) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The interquartile range."""
        return self.quantile(0.75) - self.quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something, by the spread of the middle half."""
        times, count = sorted(self.times), len(self.raw_times)
        middle = np.array(times[count // 4 : int(np.ceil(np.float32(3 * count / 4)))], np.float32)
        interval = max(1.645 * float(middle.std()) / len(middle) ** 0.5, SHORTEST_INTERVAL)
        figures = int(np.floor(np.log10(np.float32(self.median / interval))))
        return min(max(figures, 1), MOST_FIGURES)

    def meets_confidence(self, threshold: float = UNSTEADY) -> bool:
        """Is the interquartile range below this part of the median?"""
        return self.iqr / self.median < threshold

    @property
    def _warnings(self) -> tuple[str, ...]:
        if not self.raw_times or self.meets_confidence():
            return ()
        why = ("This could indicate system fluctuation." if self.meets_confidence(VERY_UNSTEADY)
               else "This suggests significant environmental influence.")  # fmt: skip
        return (f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the "
                f"median measurement.\n           {why}",)  # fmt: skip

    @property
    def has_warnings(self) -> bool:
        """Are the times far apart?"""
        return bool(self._warnings)

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count, (unit, scale) = len(self.raw_times), select_unit(self.median)
        low, high = (self.quantile(q) / scale for q in (0.25, 0.75))
        lines = [object.__repr__(self), self.task_spec.summarize(),
                 f"  {'Median: ' * (count > 1)}{self.median / scale:.2f} {unit}"]  # fmt: skip
        if count >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(f"  {count} measurement{'s' * (count > 1)}, {self.number_per_run} runs "
                     f"{'per measurement,' if count > 1 else ','} {self.num_threads} "
                     f"thread{'s' * (self.num_threads > 1)}")  # fmt: skip
        return "\n".join([*lines, *self._warnings]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Those of one task as one measurement."""
        times: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            times.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, found, task) for task, found in times.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time has one to three figures before the point, and its seconds."""
    with np.errstate(all="ignore"):  # of a float32, rounded to one: so are torch's powers of ten
        power = float(np.float32(np.log10(float(np.float32(t))))) // 3
    unit = {-3.0: "ns", -2.0: "us", -1.0: "ms"}.get(power, "s")
    return unit, UNITS[unit]


def unit_to_english(u: str) -> str:
    """unit_to_english("us") is "microsecond"."""
    return ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """x to n significant figures: trim_sigfig(3.14159, 2) is 3.1."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    magnitude = int(np.ceil(np.log10(np.abs(np.float32(x)))))
    scale = 10 ** (magnitude - n)
    return float(np.round(np.float32(x / scale)) * np.float32(scale))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements without repetitions, in order."""
    return [*dict.fromkeys(elements)]


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """So many threads for the block."""
    from ....facts import get_num_threads, set_num_threads

    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)

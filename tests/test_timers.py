"""`torch.utils.benchmark`: the prints are torch 2.13's, character by character."""

import json
import pickle
from pathlib import Path

import pytest
import wengert as torch

b = torch.utils.benchmark
EXPECTED = json.loads((Path(__file__).parent / "data" / "benchmark_texts.json").read_text())
STEADY = [1.01e-6, 1.02e-6, 1.0e-6, 1.03e-6, 1.02e-6]


def measured(times, number=10, **task):
    spec = b.TaskSpec("x + y", "pass", **task)
    return b.Measurement(number, [t * number for t in times], spec)


def add(times, size, kind, **task):
    return measured(times, label="add", sub_label=size, description=kind, **task)


def measurements():
    return [
        add(STEADY, "small", "f32"),
        add([t * 1.4 for t in STEADY], "small", "f64"),
        add([t * 123.4 for t in STEADY], "large one", "f32"),
        add([2e-4, 5e-4, 9e-4, 3e-4], "large one", "f64"),
        add(STEADY, "small", "f32", num_threads=4),
        measured([3.2e-3], label="other", description="only", env="A"),
        measured([3.2e-3, 9e-3], label="other", description="only", env="B"),
        measured([0.5, 0.6, 0.62, 0.7, 0.5], label=None, sub_label="deep", description="long"),
    ]


def texts():
    found = [repr(m).partition("\n")[2] for m in measurements()]
    spec = b.TaskSpec("a = 1\nb = 2", "import math\nc = 3", description="words", sub_label="s")
    found.append(repr(b.Measurement(3, [1e-8, 3e-8, 2e-8, 9e-8], spec)).partition("\n")[2])
    looks = [lambda c: None, lambda c: c.trim_significant_figures(),
             lambda c: (c.highlight_warnings(), c.trim_significant_figures()),
             lambda c: c.colorize(), lambda c: c.colorize(rowwise=True)]  # fmt: skip
    for look in looks:
        table = b.Compare(measurements())
        look(table)
        found.append(str(table))
    found.append(str([b.select_unit(10.0**-k) for k in range(-2, 12)]))
    found.append(str([b.trim_sigfig(3.14159 * 10**k, n) for k in (-7, 0, 5) for n in (1, 2, 3)]))
    return [*found, str([m.significant_figures for m in measurements()])]


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_prints_are_those_of_torch(number):
    assert texts()[number] == EXPECTED[number]


def test_timers_measure():
    timer = b.Timer("y = x.sin()", "x = torch.ones(n)", globals={"n": 10}, label="sin")
    blocked = timer.blocked_autorange(min_run_time=0.01)
    assert sum(blocked.raw_times) >= 0.01 and blocked.number_per_run >= 10
    assert 0 < blocked.median < 1 and blocked.mean > 0 and blocked.iqr >= 0
    seen = []
    timer.adaptive_autorange(0.5, max_run_time=0.5, callback=lambda n, t: seen.append((n, t)))
    assert len(seen) > 3 and all(t > 0 for _, t in seen)
    once = timer.timeit(50)
    assert len(once.times) == 1 and once.number_per_run == 50 and once.label == "sin"
    assert pickle.loads(pickle.dumps(once)).raw_times == once.raw_times


def test_threads_hold_while_it_runs():
    before, seen = torch.get_num_threads(), []
    clock = {"note": lambda: seen.append(torch.get_num_threads())}
    b.Timer("note()", globals=clock, num_threads=2).timeit(2)
    assert set(seen) == {2} and torch.get_num_threads() == before


def test_errors():
    with pytest.raises(ValueError, match="only a `str` stmt"):
        b.Timer(print)
    with pytest.raises(ValueError, match=r"global_setup is C\+\+ only"):
        b.Timer("pass", global_setup="#include")
    with pytest.raises(ValueError, match="Invalid language `rust`"):
        b.Timer("pass", language="rust")
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        b.Timer("pass").repeat()
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        b.Compare([3])
    with pytest.raises(NotImplementedError, match="Valgrind"):
        b.Timer("pass").collect_callgrind()

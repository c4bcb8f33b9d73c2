"""Every chunk runs exactly once: nested, from many threads, after a fork, after a resize."""

import ctypes
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from wengert.runtime import blas, cache, threads

WORK = """
declare void @wengert_parallel(ptr, ptr, i64)

; counts[chunk] += 1, and a little work so that chunks overlap
define void @count(ptr %counts, i64 %chunk) {
entry:
  br label %spin
spin:
  %i = phi i64 [ 0, %entry ], [ %i1, %spin ]
  fence seq_cst
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, 20
  br i1 %more, label %spin, label %add
add:
  %p = getelementptr i64, ptr %counts, i64 %chunk
  %old = atomicrmw add ptr %p, i64 1 seq_cst
  ret void
}

; each of the outer chunks shares eight inner ones
define void @outer(ptr %counts, i64 %chunk) {
  %first = mul i64 %chunk, 8
  %p = getelementptr i64, ptr %counts, i64 %first
  call void @wengert_parallel(ptr @count, ptr %p, i64 8)
  ret void
}

; arrives, and waits (not forever) for the other chunk: 50 each if they met
define void @meet(ptr %met, i64 %chunk) {
entry:
  %old = atomicrmw add ptr %met, i64 1 seq_cst
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i1, %wait ]
  %here = load atomic i64, ptr %met seq_cst, align 8
  %both = icmp sge i64 %here, 2
  br i1 %both, label %together, label %wait
wait:
  %yielded = call i32 @sched_yield()
  %i1 = add i64 %i, 1
  %patient = icmp slt i64 %i1, 10000000
  br i1 %patient, label %look, label %out
together:
  %added = atomicrmw add ptr %met, i64 50 seq_cst
  br label %out
out:
  ret void
}
declare i32 @sched_yield()

define void @many(ptr %counts, i64 %chunks, i64 %times) {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  call void @wengert_parallel(ptr @count, ptr %counts, i64 %chunks)
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %times
  br i1 %more, label %next, label %out
out:
  ret void
}
"""


class Bench:
    """A pool and the functions above, bound to it."""

    def __init__(self, pool, serial=False):
        self.pool, self.serial = pool, serial
        self.library = cache.build(
            WORK, ["count", "outer", "meet", "many"], {"wengert_parallel": pool.address}
        )
        self.meet = self.library.address("meet")
        self.count = self.library.address("count")
        self.outer = self.library.address("outer")
        self.many = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
            self.library.address("many")
        )

    def counted(self, chunks, times=1):
        counts = np.zeros(max(chunks, 1), np.int64)
        self.many(counts.ctypes.data, chunks, times)
        return counts[:chunks]


@pytest.fixture(params=["futex", "condition", "serial"])
def bench(request):
    if request.param == "futex" and not sys.platform.startswith("linux"):
        pytest.skip("futex is Linux's")
    pool = threads.Pool(request.param)
    pool.resize(3)
    yield Bench(pool, serial=request.param == "serial")
    pool.resize(0)


@pytest.fixture
def restored():
    before = threads._chosen
    yield
    threads.set_num_threads(threads.get_num_threads() if before is None else before)
    threads._chosen = before


@pytest.mark.parametrize("chunks", [0, 1, 2, 3, 7, 64, 1000])
def test_every_chunk_runs_once(bench, chunks):
    assert (bench.counted(chunks, 50) == 50).all()


@pytest.mark.parametrize("chunks", [65534, 65535, 65536, 140000])
def test_more_chunks_than_a_job_has(bench, chunks):
    assert (bench.counted(chunks) == 1).all()


def test_workers_do_take_part(bench):
    if bench.serial:
        assert bench.pool.running() == 0
        return
    met = np.zeros(1, np.int64)
    bench.pool.parallel(bench.meet, met.ctypes.data, 2)
    assert bench.pool.running() == 3
    assert met[0] == 102


def test_nested_calls_run_inline(bench):
    counts = np.zeros(8 * 40, np.int64)
    for _ in range(20):
        bench.pool.parallel(bench.outer, counts.ctypes.data, 40)
    assert (counts == 20).all()


def test_threads_share_the_pool(bench):
    results = []

    def work():
        results.append((bench.counted(32, 300) == 300).all())

    running = [threading.Thread(target=work) for _ in range(6)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert results == [True] * 6


def test_sleepers_wake(bench):
    for _ in range(5):
        assert (bench.counted(16, 3) == 3).all()
        time.sleep(0.02)  # longer than the workers' patience


def test_resize_up_and_down(bench):
    for workers in (0, 1, 7, 2, 0, 3):
        bench.pool.resize(workers)
        assert (bench.counted(50, 20) == 20).all()
        assert bench.pool.running() in (0, workers)


def test_resize_while_in_use(bench):
    stop = threading.Event()
    wrong = []

    def work():
        while not stop.is_set():
            if not (bench.counted(16, 20) == 20).all():
                wrong.append(1)

    running = [threading.Thread(target=work) for _ in range(2)]
    for thread in running:
        thread.start()
    for workers in (1, 4, 0, 2) * 5:
        bench.pool.resize(workers)
    stop.set()
    for thread in running:
        thread.join()
    assert not wrong


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


PRELUDE = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import os, time
import numpy as np
from test_threads import Bench
from wengert.runtime import threads
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_its_own_workers():
    done = run(
        PRELUDE
        + """
threads.set_num_threads(3)
bench = Bench(threads.pool())
assert (bench.counted(64, 20) == 20).all()
child = os.fork()
if child == 0:
    assert bench.pool.running() == 0
    assert (bench.counted(64, 200) == 200).all()
    assert bench.pool.running() == 2, bench.pool.running()
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (bench.counted(64, 20) == 20).all()
"""
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_in_the_middle_of_work_harms_nobody():
    done = run(
        PRELUDE
        + """
import threading, warnings
warnings.simplefilter("ignore")
threads.set_num_threads(3)
bench = Bench(threads.pool())
stop = threading.Event()
def work():
    while not stop.is_set():
        assert (bench.counted(64, 50) == 50).all()
helper = threading.Thread(target=work); helper.start()
for _ in range(5):
    time.sleep(0.005)
    child = os.fork()
    if child == 0:
        ok = (bench.counted(64, 50) == 50).all() and bench.pool.running() == 2
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set(); helper.join()
"""
    )
    assert done.returncode == 0, done.stderr


def test_exit_is_clean_with_workers_and_a_busy_daemon():
    done = run(
        PRELUDE
        + """
import threading
threads.set_num_threads(4)
bench = Bench(threads.pool())
bench.counted(64, 20)
def forever():
    while True: bench.counted(64, 20)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.05)
print("bye")
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "bye\n", "")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
def test_idle_workers_use_no_time():
    done = run(
        PRELUDE
        + """
threads.set_num_threads(3)
bench = Bench(threads.pool())
bench.counted(64, 20)
states = lambda: [open(f"/proc/self/task/{t}/stat").read().rsplit(")", 1)[1].split()[0]
                  for t in os.listdir("/proc/self/task") if int(t) != os.getpid()]
assert bench.pool.running() == 2
for _ in range(500):                    # asleep sooner or later, however busy the machine is
    if states() and set(states()) == {"S"}:
        break
    time.sleep(0.01)
else:
    sys.exit(f"workers still running: {states()}")
""",
        OPENBLAS_NUM_THREADS="1",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
def test_workers_leave_signals_to_python():
    done = run(
        PRELUDE
        + """
threads.set_num_threads(2)
before = set(os.listdir("/proc/self/task"))
bench = Bench(threads.pool())
met = np.zeros(1, np.int64)
bench.pool.parallel(bench.meet, met.ctypes.data, 2)  # the worker has begun, with its own mask
(worker,) = set(os.listdir("/proc/self/task")) - before
lines = open(f"/proc/self/task/{worker}/status").read().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("SigBlk")))
"""
    )
    assert done.returncode == 0, done.stderr
    blocked = int(done.stdout, 16)
    assert blocked >> (signal.SIGINT - 1) & 1 and blocked >> (signal.SIGTERM - 1) & 1
    assert not blocked >> (signal.SIGSEGV - 1) & 1


def test_the_number_of_threads(restored):
    threads.set_num_threads(2)
    assert threads.get_num_threads() == 2
    bench = Bench(threads.pool())
    assert (bench.counted(64, 5) == 5).all()
    for bad in (0, -1, 1.5, "2", True, None):
        with pytest.raises(RuntimeError, match="positive integer"):
            threads.set_num_threads(bad)
    assert threads.get_num_threads() == 2


def test_the_environment_sets_the_number():
    code = "from wengert.runtime import threads; print(threads.get_num_threads())"
    assert run(code, WENGERT_NUM_THREADS="5").stdout == "5\n"
    assert run(code, WENGERT_NUM_THREADS="").stdout.strip().isdigit()
    assert "WENGERT_NUM_THREADS" in run(code, WENGERT_NUM_THREADS="many").stderr


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity")
def test_affinity_limits_the_default():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from wengert.runtime import threads; print(threads.get_num_threads())"
    )
    assert run(code, WENGERT_NUM_THREADS="").stdout == "1\n"


@pytest.mark.parametrize(
    "files, share",
    [
        ({}, math.inf),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, math.inf),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "250000 100000\n"}, 2.5),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
                "sys/fs/cgroup/a/cpu.max": "50000 100000\n",
            },
            0.5,
        ),
        ({"proc/self/cgroup": "0::/host/path\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3.0),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/x\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
            },
            1.5,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/x\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
            },
            math.inf,
        ),
    ],
)
def test_cgroup_share(tmp_path, files, share):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert threads._cgroup_share(tmp_path) == share


def test_the_blas_uses_as_many_threads_as_we_do():
    if blas.get_num_threads() is None:
        pytest.skip("NumPy's BLAS cannot be asked")
    before = threads.get_num_threads()
    try:
        for count in (1, 2):
            threads.set_num_threads(count)
            assert blas.get_num_threads() == count
    finally:
        threads.set_num_threads(before)

"""The thread pool that generated kernels call, and how many threads it has.

The pool is LLVM text (`pool.ll`), so that a kernel reaches it without Python: it declares
`void wengert_parallel(ptr fn, ptr ctx, i64 count)`, `fn` being `void(ptr ctx, i64 chunk)`, and is
loaded with `imports={"wengert_parallel": threads.address()}`.

Invariants:
- The caller cuts the work into chunks, from shapes alone. Threads only decide who runs a chunk,
  so results do not depend on their number.
- Threads start when a kernel first shares work, and again after a fork. Idle ones sleep.
- At exit the workers are stopped and joined before the interpreter goes.

Where it runs: Linux on x86-64 and aarch64 sleeps on a futex; macOS on a condition variable, a
variant that is tested on Linux only. Elsewhere `wengert_parallel` runs all chunks in the caller.
"""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import platform
import string
import sys
import threading
from functools import cache
from pathlib import Path

from . import blas, jit
from . import cache as object_cache

MAX_THREADS = 256
# About 0.5 ms: longer than the gap between two kernels of a graph, shorter than anyone minds.
SPINS = 20_000

FUTEX = """
declare i64 @syscall(i64, ...)
define internal void @sleep_while(i32 %generation) {
  %word = getelementptr i8, ptr @work, i64 4  ; the generation: the upper half, little endian
  %value = zext i32 %generation to i64
  %r = call i64 (i64, ...) @syscall(i64 ${FUTEX}, ptr %word, i64 128, i64 %value, ptr null,
                                    ptr null, i64 0)
  ret void
}
define internal void @wake_sleepers(i64 %count) {
  %word = getelementptr i8, ptr @work, i64 4
  %most = call i64 @llvm.smin.i64(i64 %count, i64 2147483647)
  %r = call i64 (i64, ...) @syscall(i64 ${FUTEX}, ptr %word, i64 129, i64 %most, ptr null,
                                    ptr null, i64 0)
  ret void
}
declare i64 @llvm.smin.i64(i64, i64)
define internal void @reset_sleep() {
  ret void
}
"""

CONDITION = """
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
@mutex     = internal global [128 x i8] zeroinitializer, align 16  ; larger than any system's
@condition = internal global [128 x i8] zeroinitializer, align 16
define internal void @sleep_while(i32 %generation) {
entry:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  br label %look
look:
  %word = load atomic i64, ptr @work seq_cst, align 8
  %upper = lshr i64 %word, 32
  %now = trunc i64 %upper to i32
  %same = icmp eq i32 %now, %generation
  br i1 %same, label %sleep, label %out
sleep:
  %woken = call i32 @pthread_cond_wait(ptr @condition, ptr @mutex)
  br label %look
out:
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}
define internal void @wake_sleepers(i64 %count) {
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %sent = call i32 @pthread_cond_broadcast(ptr @condition)
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}
define internal void @reset_sleep() {
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr @condition, ptr null)
  ret void
}
"""

SERIAL = """
define void @wengert_parallel(ptr %fn, ptr %ctx, i64 %count) {
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %chunk, label %out
chunk:
  %i = phi i64 [ 0, %entry ], [ %i1, %chunk ]
  call void %fn(ptr %ctx, i64 %i)
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %count
  br i1 %more, label %chunk, label %out
out:
  ret void
}
define void @wengert_pool_resize(i32 %wanted) {
  ret void
}
define void @wengert_pool_reset() {
  ret void
}
define i32 @wengert_pool_running() {
  ret i32 0
}
"""

PAUSE = {
    "x86_64": ("llvm.x86.sse2.pause", "()", "()"),
    "aarch64": ("llvm.aarch64.hint", "(i32)", "(i32 1)"),
}
FUTEX_CALL = {"x86_64": "202", "aarch64": "98"}
MACHINE = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
# SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGSEGV and both systems' SIGBUS.
FAULTS = (4, 5, 6, 8, 11, 7, 10)


def sleep_kind() -> str:
    """How workers sleep here: "futex", "condition", or "serial" where there are no workers."""
    if MACHINE.get(platform.machine().lower()) is None:
        return "serial"
    return {"linux": "futex", "darwin": "condition"}.get(sys.platform, "serial")


def pool_text(kind: str) -> str:
    """The pool's LLVM text for a way of sleeping."""
    if kind == "serial":
        return SERIAL
    machine = MACHINE[platform.machine().lower()]
    name, parameters, arguments = PAUSE[machine]
    text = Path(__file__).with_name("pool.ll").read_text()
    text += FUTEX if kind == "futex" else CONDITION
    text += f"declare void @{name}{parameters}\n"
    return string.Template(text).substitute(
        PAUSE=f"call void @{name}{arguments}",
        SPINS=SPINS,
        MAX_WORKERS=MAX_THREADS,
        MOST=(1 << 16) - 1,
        FUTEX=FUTEX_CALL[machine],
        SIG_SETMASK=3 if sys.platform == "darwin" else 2,
        SIGNALS=-1 - sum(1 << (signal - 1) for signal in FAULTS),
    )


class Pool:
    """One pool of workers. The process has one, `pool()`; more exist in tests only."""

    def __init__(self, kind: str) -> None:
        self.library = object_cache.build(
            pool_text(kind),
            [
                "wengert_parallel",
                "wengert_pool_resize",
                "wengert_pool_reset",
                "wengert_pool_running",
            ],
            options=jit.BRIEF,
        )
        address = self.library.address
        self.address = address("wengert_parallel")
        # CFUNCTYPE: these let go of the GIL, so a thread that is in the pool can leave it.
        self.parallel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
            self.address
        )
        self.resize = ctypes.CFUNCTYPE(None, ctypes.c_int32)(address("wengert_pool_resize"))
        self.reset = ctypes.CFUNCTYPE(None)(address("wengert_pool_reset"))
        self.running = ctypes.CFUNCTYPE(ctypes.c_int32)(address("wengert_pool_running"))
        self.reset()


_lock = threading.Lock()
_pool: Pool | None = None
_chosen: int | None = None


def pool() -> Pool:
    """The process's pool, made at the first call."""
    global _pool
    with _lock:
        if _pool is None:
            made = Pool(sleep_kind())
            made.resize(get_num_threads() - 1)
            atexit.register(made.resize, 0)
            _pool = made
        return _pool


def address() -> int:
    """Where `wengert_parallel` is, for the imports of a kernel that shares its work."""
    return pool().address


def set_num_threads(n: int) -> None:
    """Sets how many threads, the caller's included, share a kernel's work.

    >>> set_num_threads(1)   # no workers: kernels run where they are called
    """
    global _chosen
    n = _positive(n, "set_num_threads expects a positive integer")
    with _lock:
        _chosen = min(n, MAX_THREADS)
        if _pool is not None:
            _pool.resize(_chosen - 1)
    blas.set_num_threads(_chosen)


def get_num_threads() -> int:
    """How many threads share a kernel's work: as set, as `WENGERT_NUM_THREADS` says, or all."""
    return _chosen if _chosen is not None else _default()


@cache
def _default() -> int:
    asked = os.environ.get("WENGERT_NUM_THREADS", "").strip()
    if asked:
        number = int(asked) if asked.isdigit() else asked
        return min(MAX_THREADS, _positive(number, "WENGERT_NUM_THREADS must be a positive integer"))
    return max(1, min(available_cpus(), MAX_THREADS))


def _positive(n: object, rule: str) -> int:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise RuntimeError(f"{rule}, got {n!r}")
    return n


def available_cpus() -> int:
    """CPUs this process may use: its affinity, and its cgroup's share rounded up."""
    if hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    else:
        cpus = os.cpu_count() or 1
    return max(1, math.ceil(min(cpus, _own_share())))


@cache
def _own_share() -> float:
    """What the cgroups of this process let it use; kept, for the answer lies in several files."""
    return _cgroup_share(Path("/"))


def _cgroup_share(root: Path) -> float:
    """The tightest CPU limit of the cgroups this process is in; infinite if there is none."""
    share = math.inf
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return share
    for line in lines:
        _, controllers, inside = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        group = mount / inside.lstrip("/")
        # A limit on any ancestor holds; in a container the path may be the host's, not ours.
        for place in {mount, group, *group.parents}:
            if place == mount or mount in place.parents:
                share = min(share, _share_at(place))
    return share


def _share_at(place: Path) -> float:
    try:
        if (place / "cpu.max").exists():
            quota, period = (place / "cpu.max").read_text().split()
        else:
            quota = (place / "cpu.cfs_quota_us").read_text().strip()
            period = (place / "cpu.cfs_period_us").read_text().strip()
        return int(quota) / int(period) if quota.isdigit() else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    if _pool is not None:
        _pool.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

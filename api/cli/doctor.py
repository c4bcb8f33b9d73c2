"""`wengert doctor`: versions, CPU, threads, self-tests and a short benchmark."""

from __future__ import annotations

import platform
import time
from typing import Any

EXAMPLES = """  wengert doctor || echo "compiled code does not work here"
"""
BENCHMARK_SECONDS = 2.0
FEATURES = ("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "neon", "sve")


def register(commands: Any) -> None:
    from . import command

    command(commands, "doctor", "check this machine: versions, CPU, threads, self-tests, speed",
            run, EXAMPLES)  # fmt: skip


def run(options: Any) -> int:
    import numpy as np

    from .. import __version__

    tell("wengert", __version__)
    tell("python", f"{platform.python_version()} on {platform.platform()}")
    tell("numpy", np.__version__)
    healthy = native() and self_test()
    benchmark()
    return 0 if healthy else 1


def tell(name: str, what: str) -> None:
    print(f"{name:10s} {what}", flush=True)


def native() -> bool:
    """What compiled code needs; False where compile() falls back to the interpreter."""
    try:
        from ..runtime import fastcall, jit, store, threads

        host = jit.host()
    except ImportError as error:
        tell("compile", f"falls back to the interpreter: {error}")
        return False
    present = {f[1:] for f in host.features.split(",") if f.startswith("+")}
    tell("llvmlite", f"{host.llvmlite} (LLVM {host.llvm})")
    tell("cpu", f"{host.cpu} ({host.triple})")
    tell("features", " ".join(f for f in FEATURES if f in present) or "none of those looked for")
    tell("threads", f"{threads.get_num_threads()} of {threads.available_cpus()} usable")
    info = store.info()
    tell("cache", f"{info.entries} entries in {info.directory}" if info.enabled else info.reason)
    reason = fastcall.reason_for_fallback()
    tell("layout", f"calls go through ctypes: {reason}" if reason else
         "ok: arguments are read from Python's objects by native code")  # fmt: skip
    return True


def self_test() -> bool:
    """Does compiled code compute what eager code does, forward and backward?"""
    from .. import allclose, compile, linspace

    def function(x: Any) -> Any:
        return ((x @ x.t()).tanh().softmax(1) * x.sum(1)).sum()

    function_too = compile(function)
    found = []
    for run in (function, function_too, function_too):
        x = linspace(-1, 1, 64).reshape(8, 8).requires_grad_()
        value = run(x)
        value.backward()
        found.append((value.detach(), x.grad))
    good = all(allclose(a, b) for pair in found[1:] for a, b in zip(found[0], pair))
    tell("compile", "ok: agrees with eager, forward and backward" if good else
         "WRONG: compiled code differs from eager; please report it")  # fmt: skip
    return good


def benchmark() -> None:
    """Eager and compiled speed of one small function, for comparing machines."""
    from .. import compile, randn

    def function(x: Any, w: Any) -> Any:
        return ((x @ w).tanh() * 2).sum()

    x, w = randn(64, 64), randn(64, 64)
    for name, run in (("eager", function), ("compiled", compile(function))):
        run(x, w)
        times = []
        stop = time.perf_counter() + BENCHMARK_SECONDS / 2
        while time.perf_counter() < stop:
            start = time.perf_counter()
            run(x, w)
            times.append(time.perf_counter() - start)
        tell(name, f"{min(times) * 1e6:.1f} us for tanh(x @ w).sum() of 64 x 64")

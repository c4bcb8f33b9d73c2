"""`wengert doctor`: versions, CPU, threads, self-tests and a short benchmark."""

from __future__ import annotations

import platform
import time
from typing import Any


def register(commands: Any) -> None:
    from . import command

    command(commands, "doctor", "check this machine: versions, CPU, threads, benchmark", run)


def run(options: Any) -> int:
    import numpy as np

    from .. import __version__

    print(f"wengert    {__version__}")
    print(f"python     {platform.python_version()} on {platform.platform()}")
    print(f"numpy      {np.__version__}")
    healthy = native()
    benchmark()
    return 0 if healthy else 1


def native() -> bool:
    """What compiled code needs; False where compile() falls back to the interpreter."""
    try:
        from ..runtime import fastcall, jit, threads
    except ImportError as error:
        print(f"compile    falls back to the interpreter: {error}")
        return False
    host = jit.host()
    print(f"llvmlite   {host.llvmlite} (LLVM {host.llvm})")
    print(f"cpu        {host.cpu} ({host.triple})")
    print(f"threads    {threads.get_num_threads()} of {threads.available_cpus()} usable")
    reason = fastcall.reason_for_fallback()
    print(f"fast calls {'by ctypes: ' + reason if reason else 'ok'}")
    return True


def benchmark() -> None:
    """Eager and compiled speed of one small function, for comparing machines."""
    from .. import compile, randn

    def f(x: Any, w: Any) -> Any:
        return ((x @ w).tanh() * 2).sum()

    x, w = randn(64, 64), randn(64, 64)
    for name, function in (("eager", f), ("compiled", compile(f))):
        function(x, w)
        times = []
        stop = time.perf_counter() + 1.0
        while time.perf_counter() < stop:
            start = time.perf_counter()
            function(x, w)
            times.append(time.perf_counter() - start)
        print(f"{name:10s} {min(times) * 1e6:.1f} us for tanh(x @ w).sum() of 64 x 64")

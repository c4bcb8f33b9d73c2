"""Code run in a process of its own, with limits on memory and time.

`WENGERT_OFTEN=10 python -m pytest tests/reliability` kills, forks, interrupts and damages files ten
times as often as usual.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# no bytecode: where files can't grow, Python leaves half of one behind that nobody can import
CHILD = {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
OFTEN = int(os.environ.get("WENGERT_OFTEN", "1"))


def often(count):
    """`range(count)`, or longer where a long run was asked for."""
    return range(count * OFTEN)


def limited(code, *, memory=None, file_size=None, seconds=120, check=True, **environment):
    """Runs Python text; `memory` limits what it takes beyond a usual start, `file_size` files."""

    def limit():
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    seconds *= OFTEN
    start = f"import sys; sys.path.insert(0, {str(HERE)!r})\nfrom limits import often\n"
    if memory is not None:
        start += f"from limits import limit_memory\nlimit_memory({memory})\n"
    done = subprocess.run(
        [sys.executable, "-c", start + code], capture_output=True, text=True, timeout=4 * seconds,
        env={**os.environ, **CHILD, **environment}, preexec_fn=limit,
    )  # fmt: skip
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def limit_memory(more):
    """From now on this process may take `more` bytes beyond what it has."""
    import wengert as torch

    torch.compile(lambda x: x.sin() + 1)(torch.ones(3))  # what is loaded once is loaded by now
    now = address_space() + more
    resource.setrlimit(resource.RLIMIT_AS, (now, now))


def address_space():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def resident():
    """Bytes of memory that the process occupies."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()

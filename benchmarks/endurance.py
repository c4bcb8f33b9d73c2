"""Long runs: does memory grow? Compiling and dropping, eager steps, and very large graphs.

    python benchmarks/endurance.py                       all, at full length (an hour or so)
    python benchmarks/endurance.py compile --times 500   one of them, shorter

Each part prints the resident memory at every tenth of the way and at the end, in megabytes, and
fails where it grew after the first tenth by more than the allowance. docs/reliability.md has the
last figures.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import wengert as torch
from wengert import nn
from wengert.runtime import cache

# Object code is remembered up to a limit; a low one is reached in the warm-up.
cache.MEMORY_LIMIT = 1 << 20
ALLOWED = 24 << 20  # bytes: allocators keep some of what they were given


def resident() -> int:
    """Bytes of memory the process occupies now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def compile_and_drop(number: int) -> None:
    """A new function, compiled, run forward and backward, and forgotten."""
    factor = 1.0 + number / 1024
    function = torch.compile(lambda x: (x * factor).tanh().sum())
    x = torch.ones(17, requires_grad=True)
    for _ in range(2):
        function(x).backward()


def make_eager_step() -> Callable[[int], None]:
    """Training steps: of one weight, and every tenth of a network, with views written to."""
    weight = torch.ones(4, requires_grad=True)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x = torch.ones(3, 4)

    def short(number: int) -> None:
        (weight * x).tanh().sum().backward()
        with torch.no_grad():
            weight.sub_(weight.grad, alpha=1e-3)
        weight.grad = None

    def full(number: int) -> None:
        optimizer.zero_grad()
        y = net(x)
        y[:, 0].mul_(0.5)
        y.square().mean().backward()
        optimizer.step()

    return lambda number: short(number) if number % 10 else full(number)


def watch(name: str, step: Callable[[int], None], times: int) -> int:
    """Runs a step many times; returns by how many bytes memory grew after a warm-up."""
    tenth = max(times // 10, min(times // 2, 50))
    start, samples = time.perf_counter(), []
    for number in range(1, times + 1):
        step(number)
        if number % tenth == 0 or number == times:
            gc.collect()
            samples.append(resident())
            print(f"{name}: {number} times in {time.perf_counter() - start:.0f} s, "
                  f"{samples[-1] / 2**20:.1f} MB", flush=True)  # fmt: skip
    return samples[-1] - samples[0]


def deep(nodes: int) -> int:
    """A chain of as many nodes: forward, backward, and freeing it, without recursion."""
    start = time.perf_counter()
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(nodes):
        y = y + x
    built = time.perf_counter()
    y.sum().backward()
    assert x.grad.tolist() == [nodes + 1.0] * 3
    done = time.perf_counter()
    del y
    print(f"deep: {nodes} nodes built in {built - start:.1f} s, backward in {done - built:.1f} s, "
          f"freed in {time.perf_counter() - done:.1f} s", flush=True)  # fmt: skip
    return 0


def wide(nodes: int) -> int:
    """As many nodes side by side, of one leaf, joined by one more."""
    start = time.perf_counter()
    x = torch.ones(3, requires_grad=True)
    torch.stack([x * 2 for _ in range(nodes)]).sum().backward()
    assert x.grad.tolist() == [2.0 * nodes] * 3
    print(f"wide: {nodes} nodes in {time.perf_counter() - start:.1f} s", flush=True)
    return 0


def recorded(nodes: int) -> int:
    """A compiled function of as many ops, forward and backward; then it is called again."""

    def function(x: torch.Tensor) -> torch.Tensor:
        for _ in range(nodes // 4):
            x = (x * 0.999 + 0.001).sin() * 1.01
        return x.sum()

    def call() -> tuple[list[float], float]:
        x.grad, start = None, time.process_time()
        compiled(x).backward()
        return x.grad.tolist(), time.process_time() - start

    compiled, x = torch.compile(function), torch.ones(3, requires_grad=True)
    (expected, first), (grad, _), (_, replay) = call(), call(), call()
    assert all(abs(a - b) <= 1e-3 * abs(b) for a, b in zip(grad, expected))
    print(f"recorded: {nodes} ops in {first:.1f} s of processor time, {resident() / 2**20:.0f} MB; "
          f"again in {1000 * replay:.1f} ms", flush=True)  # fmt: skip
    return 0


PARTS = {
    "compile": (10_000, lambda times: watch("compile", compile_and_drop, times)),
    "eager": (1_000_000, lambda times: watch("eager", make_eager_step(), times)),
    "deep": (100_000, deep),
    "wide": (100_000, wide),
    "recorded": (100_000, recorded),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--times", type=int, help="how often, instead of the full length")
    options = parser.parse_args(arguments)
    failed = 0
    for name in options.part or PARTS:
        full, run = PARTS[name]
        grown = run(options.times or full)
        if grown > ALLOWED:
            print(f"{name}: memory grew by {grown / 2**20:.1f} MB", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())

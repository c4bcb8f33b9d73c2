"""Is the compiler linear? Records graphs of 500 to 5,000 ops, runs all passes, makes kernels.

    python benchmarks/ir_linearity.py

Each row gives CPU seconds of recording, of the reverse-mode transform and the passes, of partition
and verification, of fusion and LLVM text (without LLVM's own time); and the time per op relative to
the first row, which stays near 1.
"""

import gc
import time
from itertools import pairwise

import wengert as torch
from wengert import ir
from wengert.codegen.assemble import assemble
from wengert.ir import passes, reverse
from wengert.ir.partition import partition
from wengert.ir.verify import verify

SIZES = (500, 1000, 2000, 4000)


def chain(x, weights, count):
    """Products and pointwise ops, one after the other."""
    for k in range(count // 5):
        x = (x @ weights[k % len(weights)]).tanh() * 0.5 + x.sin()
    return x.sum()


def writes(x, weights, count):
    """In-place writes through views, which become values."""
    x = x.clone()
    for k in range(count // 9):
        x[k % 8].mul_(0.5).add_(1.0)
    return x.sum()


def step(x, weights, count):
    """A training step: backward and the update of many weights inside."""
    used = weights[: count // 12]
    for weight in used:
        x = (x @ weight).tanh()
    loss = x.sum()
    grads = torch.autograd.grad(loss, used)
    with torch.no_grad():
        for weight, grad in zip(used, grads):
            weight.sub_(grad, alpha=1e-4)
    return loss.detach()


def measure(function, count):
    """The graph's length, and CPU seconds of each part."""
    weights = [torch.randn(8, 8, requires_grad=function is step) for _ in range(400)]
    x = torch.randn(8, 8, requires_grad=function is not step)
    gc.collect()
    times = [time.process_time()]
    graph = ir.trace(function)(x, weights, count)
    times.append(time.process_time())
    joint = passes.optimise(reverse.joint(graph, [0]))
    times.append(time.process_time())
    parts = partition(joint)
    verify(parts.forward)
    verify(parts.backward)
    times.append(time.process_time())
    assemble(parts.forward)
    assemble(parts.backward)
    times.append(time.process_time())
    return len(graph.nodes), [b - a for a, b in pairwise(times)]


def main():
    print(
        f"{'graph':8} {'ops':>6} {'record':>8} {'passes':>8} {'partition':>10} {'kernels':>8} "
        f"{'total':>8}  per op"
    )
    for function in (chain, writes, step):
        measure(function, 100)  # what is made once
        first = None
        for count in SIZES:
            length, parts = min(
                (measure(function, count) for _ in range(3)), key=lambda m: sum(m[1])
            )
            record, optimise, split, kernels = parts
            each = sum(parts) / length
            first = first or each
            print(f"{function.__name__:8} {length:6} {record:8.3f} {optimise:8.3f} {split:10.3f} "
                  f"{kernels:8.3f} {sum(parts):8.3f}  {each / first:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()

"""Compiled graphs against NumPy, and torch where it is installed: microseconds and ratios.

    python benchmarks/kernels.py [--threads N] [--only WORD]

Contenders run in turn, round after round; the minimum of each is shown. With torch in another
environment, run this file there too: without wengert it measures torch alone, as JSON lines, which
`--peer FILE` reads back.
"""

import argparse
import json
import time

import numpy as np

try:
    import wengert
except ImportError:
    wengert = None
try:
    import torch
except ImportError:
    torch = None

ROUNDS = 40
F = "float32"


def gelu(x, w, b):
    u = x * w + b
    return 0.5 * u * (1 + (0.7978845608 * (u + 0.044715 * u * u * u)).tanh())


def layer_norm(x, w, b):
    centred = x - x.mean(1, keepdim=True)
    return centred * ((centred * centred).mean(1, keepdim=True) + 1e-5).rsqrt() * w + b


def softmax_grad(x, g):
    y = x.softmax(1)
    return y * (g - (g * y).sum(1, keepdim=True))


CASES = {
    "add 4": (lambda a, b: a + b, (4,), (4,)),
    "add 64K": (lambda a, b: a + b, (65536,), (65536,)),
    "add 1M": (lambda a, b: a + b, (1 << 20,), (1 << 20,)),
    "gelu(x*w+b) 64K": (gelu, (65536,), (65536,), (65536,)),
    "gelu(x*w+b) 1M": (gelu, (1 << 20,), (1 << 20,), (1 << 20,)),
    "exp 64K": (lambda x: x.exp(), (65536,)),
    "sum 1M": (lambda x: x.sum(), (1 << 20,)),
    "row sums 1024x1000": (lambda x: x.sum(1), (1024, 1000)),
    "column sums 1024x1000": (lambda x: x.sum(0), (1024, 1000)),
    "column sums 128x512": (lambda x: x.sum(0), (128, 512)),
    "softmax 1024x1000": (lambda x: x.softmax(1), (1024, 1000)),
    "softmax fwd+bwd 1024x1000": (softmax_grad, (1024, 1000), (1024, 1000)),
    "log_softmax 128x10": (lambda x: x.log_softmax(1), (128, 10)),
    "layer norm 1024x768": (layer_norm, (1024, 768), (768,), (768,)),
    "transpose 1024": (lambda x: (x.t() * 2).contiguous(), (1024, 1024)),
    "bias+relu 128x512": (lambda x, b: (x + b).relu(), (128, 512), (512,)),
    "linear+relu 128x784x512": (lambda x, w, b: (x @ w.t() + b).relu(), (128, 784), (512, 784),
                                (512,)),
}  # fmt: skip


def arrays(shapes):
    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 1.5, s).astype("f") for s in shapes]


def compiled(function, shapes):
    """The function as a compiled graph, and how long compiling took."""
    from wengert.backend import compile_graph
    from wengert.ir import passes
    from wengert.ir.builder import Builder
    from wengert.ir.types import BY_NAME, TensorType

    builder = Builder("case")
    inputs = [builder.input(TensorType(BY_NAME[F], s)) for s in shapes]
    with builder.building():
        builder.output(function(*inputs))
    start = time.process_time()
    graph = compile_graph(passes.optimise(builder.graph()))
    return graph, time.process_time() - start


def minimum(calls):
    """The least time of each call, in microseconds; they take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: 1e6 * t for name, t in best.items()}


def contenders(function, shapes):
    data, calls, compiling = arrays(shapes), {}, None
    if wengert is not None:
        graph, compiling = compiled(function, shapes)
        calls["wengert"] = lambda: graph(*data)
    if torch is not None:
        tensors = [torch.from_numpy(a) for a in data]
        calls["torch"] = lambda: function(*tensors)
    return calls, compiling


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--peer", help="JSON lines of a run in an environment with torch")
    options = parser.parse_args()
    if wengert is not None:
        from wengert.runtime import threads

        threads.set_num_threads(options.threads)
    if torch is not None:
        torch.set_num_threads(options.threads)
    peer = {}
    if options.peer:
        with open(options.peer) as file:
            peer = {case: times for line in file for case, times in [json.loads(line)]}
    for name, (function, *shapes) in CASES.items():
        if options.only not in name:
            continue
        calls, compiling = contenders(function, shapes)
        times = minimum(calls)
        if wengert is None:
            print(json.dumps([name, times]), flush=True)
            continue
        times.update(peer.get(name, {}))
        line = f"{name:28s} compile {1e3 * compiling:6.1f} ms"
        line += "".join(f"  {who} {t:9.1f} us" for who, t in times.items())
        others = [t for who, t in times.items() if who != "wengert"]
        line += f"  x{min(others) / times['wengert']:.2f}" if others else ""
        print(line, flush=True)


if __name__ == "__main__":
    main()

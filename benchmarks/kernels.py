"""Single kernels beside torch and jax: microseconds, ratios, share of the memory's bandwidth.

    python benchmarks/kernels.py [--peer PYTHON_WITH_TORCH_AND_JAX] [--threads N] [--only WORD]

Systems take turns, case by case and round by round; the least time of each is shown, and how many
times as fast as the best of the others we are. Of cases that move much and compute little, the
bandwidth is compared with NumPy's `add` of arrays as large, into memory that is there (the triad):
all systems but that one allocate their results. jax has no setting for threads: for one, give all
processes one core (`taskset -c 0 python benchmarks/kernels.py --threads 1 ...`).
"""

import argparse
import os

import numpy as np
from turns import Turns, against_the_best, installed, serve

ROUNDS = 60


# --- cases: functions of a system's names (`torch`'s, or jax.numpy's) and its arrays -------------


def gelu(lib, x, w, b):
    u = x * w + b
    return 0.5 * u * (1 + lib.tanh(0.7978845608 * (u + 0.044715 * u * u * u)))


def layer_norm(lib, x, w, b):
    if hasattr(lib, "nn"):
        return lib.nn.functional.layer_norm(x, (x.shape[1],), w, b)
    centred = x - x.mean(1, keepdims=True)
    return centred / lib.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5) * w + b


def softmax(lib, x):
    if hasattr(lib, "nn"):
        return x.softmax(1)
    e = lib.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# name: function, shapes; with a gradient of the result ("+bwd") or not
BIG, MIDDLE = (1 << 22,), (1 << 16,)
CASES = {
    "add 4": (lambda lib, a, b: a + b, (4,), (4,)),
    "add 64K": (lambda lib, a, b: a + b, MIDDLE, MIDDLE),
    "x*w+b 4M": (lambda lib, x, w, b: x * w + b, BIG, BIG, BIG),
    "relu(x*w+b)*y 4M": (lambda lib, x, w, b, y: lib.maximum(x * w + b, b) * y, BIG, BIG, BIG, BIG),
    "gelu(x*w+b) 64K": (gelu, MIDDLE, MIDDLE, MIDDLE),
    "gelu(x*w+b) 4M": (gelu, BIG, BIG, BIG),
    "gelu(x*w+b) 4M +bwd": (gelu, BIG, BIG, BIG),
    "exp 64K": (lambda lib, x: lib.exp(x), MIDDLE),
    "sum 4M": (lambda lib, x: x.sum(), BIG),
    "row sums 1024x1000": (lambda lib, x: x.sum(1), (1024, 1000)),
    "column sums 1024x1000": (lambda lib, x: x.sum(0), (1024, 1000)),
    "row sums 100000x8": (lambda lib, x: x.sum(1), (100000, 8)),
    "column sums 100000x8": (lambda lib, x: x.sum(0), (100000, 8)),
    "middle sums 64x128x256": (lambda lib, x: x.sum(1), (64, 128, 256)),
    "softmax 1024x1000 +bwd": (softmax, (1024, 1000)),
    "softmax 4096x512 +bwd": (softmax, (4096, 512)),
    "layer norm 1024x768 +bwd": (layer_norm, (1024, 768), (768,), (768,)),
    "layer norm 4096x512 +bwd": (layer_norm, (4096, 512), (512,), (512,)),
    "transpose 1024": (lambda lib, x: x.T * 2 + x, (1024, 1024)),
}  # fmt: skip
STREAMS = {"x*w+b 4M": 4, "relu(x*w+b)*y 4M": 5}  # arrays that are read or written, of one size


def arrays(case):
    """Operands, and the gradient of the result."""
    function, *shapes = CASES[case]
    rng = np.random.default_rng(0)
    data = [rng.uniform(0.5, 1.5, s).astype("f") for s in shapes]
    result = function(np, *data) if function not in (softmax, layer_norm) else data[0]
    return data, rng.uniform(0.5, 1.5, np.shape(result)).astype("f")


# --- systems -------------------------------------------------------------------------------------


def by_wengert(case, threads):
    import wengert

    wengert.set_num_threads(threads)
    return wengert.compile(torch_step(wengert, case)), torch_tensors(wengert, case)


def by_torch(case, threads):
    import torch

    torch.set_num_threads(threads)
    return torch_step(torch, case), torch_tensors(torch, case)


def torch_tensors(lib, case):
    data, grad = arrays(case)
    tensors = [lib.tensor(a, requires_grad="+bwd" in case) for a in data]
    return [lib.tensor(grad), *tensors]


def torch_step(lib, case):
    def step(grad, *tensors):
        result = CASES[case][0](lib, *tensors)
        return (result, *lib.autograd.grad(result, tensors, grad)) if "+bwd" in case else result

    return step


def by_jax(case, threads):
    import jax

    def step(grad, *values):
        if "+bwd" not in case:
            return CASES[case][0](jax.numpy, *values)
        result, pull = jax.vjp(lambda *v: CASES[case][0](jax.numpy, *v), *values)
        return result, pull(grad)

    data, grad = arrays(case)
    compiled = jax.jit(step)
    return (lambda *v: jax.block_until_ready(compiled(*v))), [jax.numpy.asarray(a)
                                                              for a in (grad, *data)]  # fmt: skip


def triad(case, threads):
    """What memory gives; only beside our own library, so that there is one."""
    import wengert  # noqa: F401

    if case not in STREAMS:
        raise ImportError("nothing to compare")
    a, b, c = (np.ones(CASES[case][1], "f") for _ in range(3))
    return (lambda *v: np.add(*v)), (a, b, c)


def calls_of(case, threads):
    found = installed({"wengert": by_wengert, "torch": by_torch, "jax": by_jax, "triad": triad},
                      case, threads)  # fmt: skip
    calls = {name: (lambda f=f, v=values: f(*v)) for name, (f, values) in found.items()}
    for call in calls.values():
        call()  # records; the next compiles
    return calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--peer", help="a Python with torch or jax")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(lambda case: calls_of(case, options.threads))
        return
    turns = Turns(__file__, options.peer, "--threads", str(options.threads))
    for case in (name for name in CASES if options.only in name):
        best = turns.best(case, ROUNDS)
        stream = best.pop("triad", None)
        line = f"{case:26s}" + "".join(f"  {who} {1e6 * t:9.1f} us" for who, t in best.items())
        line += against_the_best(best)
        if stream is not None:
            line += f"  {stream / 3 * STREAMS[case] / best['wengert']:.2f} of triad"
        print(line, flush=True)


if __name__ == "__main__":
    main()

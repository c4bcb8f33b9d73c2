"""conv2d, forward and both gradients, beside torch and jax: GF/s and ratios.

    python benchmarks/convolutions.py [--peer PYTHON_WITH_TORCH_AND_JAX] [--threads N] [--only WORD]
                                      [--apart] [--again RATIO]

The peer's process and this one take turns, case by case and round by round; the minimum of each
system is shown. `--apart` and `--again` are as in gemm.py. jax has no setting for threads: on one
thread give both processes one core: `taskset -c 0 python benchmarks/convolutions.py ...`.
"""

import argparse
import os

import numpy as np
from turns import Turns, against_the_best, installed, ratio_to_best, serve

ROUNDS = 5
# channels, side, outputs, kernel, stride, padding
LAYERS = {
    "lenet 1-6 28 5x5": (1, 28, 6, 5, 1, 2),
    "lenet 6-16 14 5x5": (6, 14, 16, 5, 1, 0),
    "resnet 3-64 224 7x7/2": (3, 224, 64, 7, 2, 3),
    "resnet 64 56 3x3": (64, 56, 64, 3, 1, 1),
    "resnet 64-128 56 3x3/2": (64, 56, 128, 3, 2, 1),
    "resnet 128 28 3x3": (128, 28, 128, 3, 1, 1),
    "resnet 256 14 3x3": (256, 14, 256, 3, 1, 1),
    "resnet 512 7 3x3": (512, 7, 512, 3, 1, 1),
    "resnet 256-64 56 1x1": (256, 56, 64, 1, 1, 0),
}
CASES = {f"{name} batch {n}": (n, *layer) for name, layer in LAYERS.items() for n in (1, 8, 32)}


def arrays(n, channels, side, outputs, kernel, stride, padding):
    """Input, weight and the result's gradient."""
    out = (side + 2 * padding - kernel) // stride + 1
    shapes = (n, channels, side, side), (outputs, channels, kernel, kernel), (n, outputs, out, out)
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype("f") for shape in shapes]


def by_wengert(threads, data, stride, padding):
    from wengert.backend import compile_graph
    from wengert.ir import passes
    from wengert.ir.builder import Builder
    from wengert.ir.op import TABLE
    from wengert.ir.types import TensorType, float32
    from wengert.runtime import threads as pool

    pool.set_num_threads(threads)
    how = {"stride": (stride,) * 2, "padding": (padding,) * 2, "dilation": (1, 1), "groups": 1}
    builder = Builder("convolution")
    x, w, g = (builder.input(TensorType(float32, a.shape)) for a in data)
    with builder.building():
        builder.output(TABLE["convolution"](x, w, None, **how))
        builder.output(TABLE["conv_input"](g, w, None, size=tuple(x.shape[2:]), **how))
        builder.output(TABLE["conv_weight"](x, g, kernel=tuple(w.shape[2:]), **how))
    graph = compile_graph(passes.optimise(builder.graph()))
    return lambda: graph(*data)


def by_torch(threads, data, stride, padding):
    import torch

    torch.set_num_threads(threads)
    x, w, g = map(torch.from_numpy, data)
    how = ([stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1)

    def call():
        torch.ops.aten.convolution(x, w, None, *how)
        torch.ops.aten.convolution_backward(g, x, w, None, *how, [True, True, False])

    return call


def by_jax(threads, data, stride, padding):
    import jax

    def forward(x, w):
        return jax.lax.conv_general_dilated(x, w, (stride,) * 2, [(padding,) * 2] * 2)

    def both(x, w, g):
        y, pull = jax.vjp(forward, x, w)
        return y, pull(g)

    compiled, values = jax.jit(both), [jax.numpy.asarray(a) for a in data]
    return lambda: jax.block_until_ready(compiled(*values))


SYSTEMS = {"wengert": by_wengert, "torch": by_torch, "jax": by_jax}


def calls_of(case, threads):
    """What of SYSTEMS is installed here, ready to run a case."""
    return installed(SYSTEMS, threads, arrays(*CASES[case]), *CASES[case][-2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--peer", help="a Python with torch or jax")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--again", type=float, default=0, metavar="RATIO",
                        help="measure longer where ours / best is below this")  # fmt: skip
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(lambda case: calls_of(case, options.threads))
        return
    turns = Turns(__file__, options.peer, "--threads", str(options.threads))
    for case, (n, channels, _, outputs, kernel, *_) in CASES.items():
        if options.only not in case:
            continue
        positions = arrays(*CASES[case])[2].shape[-1] ** 2
        flops = 6 * n * channels * outputs * kernel * kernel * positions
        rounds = max(ROUNDS, min(100, int(5e9 / flops)))
        best = turns.settled(case, rounds, options.apart, options.again, ratio_to_best)
        line = f"{case:34s}" + "".join(f"  {k} {flops / t / 1e9:6.1f}" for k, t in best.items())
        print(line + against_the_best(best), flush=True)


if __name__ == "__main__":
    main()

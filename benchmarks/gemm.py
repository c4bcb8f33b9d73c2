"""Matrix products beside OpenBLAS (NumPy's) and, with a peer, MKL (torch's): GF/s and ratios.

    python benchmarks/gemm.py [--peer PYTHON_WITH_TORCH] [--threads N] [--kinds] [--float64]
                              [--apart] [--again RATIO]

Contenders take turns, round by round; the least time of each counts. With several threads say
`--apart` (see turns.py). Cores that are shared make any row seem slow at times:
`--again RATIO` measures rows below it longer, all contenders alike, until minima settle. `--kinds`
times every kind of kernel that can compute a shape, to check the rule in codegen/gemm.py.
"""

import argparse
import ctypes
import functools
import os

import numpy as np
from turns import Turns, installed, serve

SHAPES = [
    *((s, s, s, "NN") for s in (16, 32, 64, 128, 256, 512, 1024, 2048)),
    *((s, s, s, layout) for s in (64, 256, 1024) for layout in ("NT", "TN")),
    (128, 512, 784, "NN"), (128, 512, 784, "NT"), (784, 512, 128, "TN"), (128, 784, 512, "NN"),
    (128, 10, 512, "NN"), (128, 10, 512, "NT"), (512, 10, 128, "TN"), (128, 512, 10, "NN"),
    (32, 256, 784, "NN"), (32, 256, 784, "NT"), (4, 512, 784, "NN"), (4, 512, 784, "NT"),
    (8, 1024, 1024, "NN"), (16, 2048, 2048, "NN"), (1024, 16, 1024, "TN"),
    (2, 2048, 2048, "NN"), (8, 512, 2048, "NN"), (12, 768, 3072, "NN"), (23, 1000, 1000, "NN"),
    (33, 65, 129, "NN"), (100, 100, 100, "NN"), (300, 300, 300, "NN"),
    (10000, 16, 16, "NN"), (16, 16, 10000, "NN"), (32, 32, 10000, "TN"), (200, 200, 200, "TN"),
    (1, 512, 784, "NN"), (1, 512, 784, "NT"), (1, 4096, 4096, "NN"), (1, 4096, 4096, "NT"),
    (4096, 1, 4096, "NN"), (4096, 1, 4096, "TN"), (1, 10, 512, "NN"),
]  # fmt: skip


BLAS = ("OpenBLAS", "MKL")
CASES = {f"{m}x{n}x{k} {layout}": (m, n, k, layout) for m, n, k, layout in SHAPES}


@functools.lru_cache(maxsize=1)
def operands(case, dtype):
    """The same memory for all contenders of a process: where its pages lie may matter by 20%."""
    m, n, k, layout = CASES[case]
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
    a = np.asfortranarray(a) if layout[0] == "T" else a
    b = np.asfortranarray(b) if layout[1] == "T" else b
    return a, b, np.empty((m, n), dtype)


# --- systems -------------------------------------------------------------------------------------


@functools.cache
def cores():
    """What products import: the packed cores, and who runs chunks."""
    from wengert.codegen.gemm_shared import shared_texts
    from wengert.runtime import jit, threads

    found, keep = {"wengert_parallel": threads.address()}, []
    for element in ("float", "double"):
        for name, text, needs in shared_texts(element):
            code = jit.compile_text(text(element, target()), options=jit.LIGHT)
            keep.append(jit.load(code, [name], {need: found[need] for need in needs}))
            found[name] = keep[-1].address(name)
    return found, keep


def target():
    from wengert.codegen.target import Target
    from wengert.runtime import jit, machine

    host = jit.host()
    return Target.of(host.triple, host.features, machine.caches())


def by_wengert(case, options):
    """A call of each kind of kernel that is wanted, by its name."""
    from wengert.codegen import gemm
    from wengert.runtime import threads

    threads.set_num_threads(options.threads)
    a, b, c = operands(case, options.dtype)
    strides = [tuple(s // x.itemsize for s in x.strides) for x in (a, b, c)]
    (m, k), n = a.shape, b.shape[1]
    product = gemm.Matmul("product", str(a.dtype), m, n, k, *strides)
    kinds = gemm.possible(product) if options.kinds else [None]
    return dict(native(product, kind, (a, b, c)) for kind in kinds)


def native(product, kind, data):
    """The kernel's kind, and a call of it."""
    from wengert.codegen import gemm
    from wengert.codegen.prelude import prelude
    from wengert.runtime import jit

    kernel = gemm.emit(product, target(), kind)
    text = kernel.text + gemm.declarations(set(kernel.imports)) + prelude(kernel.calls, target())
    # as programs do: tiles are scheduled by hand
    library = jit.load(jit.compile_text(text, options=jit.LIGHT), [kernel.name],
                       {n: cores()[0][n] for n in kernel.imports})  # fmt: skip
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kernel.parameters))
    function, work = call(library.address(kernel.name)), np.empty(kernel.workspace + 64, np.uint8)
    base = work.ctypes.data
    pointers = *(x.ctypes.data for x in data), base + -base % 64
    return kernel.kind, lambda keep=(library, work, data): function(*pointers)


def by_numpy(case, options):
    import wengert  # noqa: F401  beside it only: the peer's NumPy is another

    a, b, c = operands(case, options.dtype)
    return {"OpenBLAS": lambda: np.matmul(a, b, out=c)}


def by_torch(case, options):
    import torch

    torch.set_num_threads(options.threads)
    a, b, c = map(torch.from_numpy, operands(case, options.dtype))
    return {"MKL": lambda: torch.mm(a, b, out=c)}


def calls_of(case, options):
    """All that is installed here."""
    found = installed({"wengert": by_wengert, "numpy": by_numpy, "torch": by_torch}, case, options)
    return {name: call for part in found.values() for name, call in part.items()}


def ratio_of(best):
    """Ours to the best BLAS."""
    blas = min(seconds for name, seconds in best.items() if name in BLAS)
    return blas / min(seconds for name, seconds in best.items() if name not in BLAS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--peer", help="a Python with torch")
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--again", type=float, default=0, metavar="RATIO",
                        help="measure longer where ours / best is below this")  # fmt: skip
    parser.add_argument("--float64", dest="dtype", action="store_const", const="float64",
                        default="float32")  # fmt: skip
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(lambda case: calls_of(case, options))
        return
    os.environ["OPENBLAS_NUM_THREADS"] = str(options.threads)
    flags = ["--kinds"] * options.kinds + ["--float64"] * (options.dtype == "float64")
    turns = Turns(__file__, options.peer, "--threads", str(options.threads), *flags)
    print("| m x n x k, layout | GF/s | OpenBLAS | MKL | ours / best |\n|---|---|---|---|---|")
    for case in (name for name in CASES if options.only in name):
        flops = 2 * np.prod([float(n) for n in CASES[case][:3]])
        rounds = int(min(60, max(7, 4e9 / flops)))
        best = turns.settled(case, rounds, options.apart, options.again, ratio_of)
        rates = {name: flops / seconds / 1e9 for name, seconds in best.items()}
        blas = [rates.pop(name, None) for name in BLAS]
        ours = ", ".join(f"{kind} {rate:.1f}" for kind, rate in rates.items())
        theirs = " | ".join("" if rate is None else f"{rate:.1f}" for rate in blas)
        print(f"| {case} | {ours} | {theirs} | {ratio_of(best):.2f} |", flush=True)


if __name__ == "__main__":
    main()

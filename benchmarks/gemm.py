"""Matrix products against NumPy's BLAS: GF/s and ratios, interleaved in one process.

    OPENBLAS_NUM_THREADS=1 WENGERT_NUM_THREADS=1 python benchmarks/gemm.py [--kinds] [float64]

Takes the minimum over rounds in which every contender runs once. With several threads say
`--apart`: idle threads of one pool spin for a while and would take the other's core, so each
contender runs all its rounds after a pause. `--kinds` times every kind of kernel that can compute
a shape, to check the rule in codegen/gemm.py.
"""

import ctypes
import sys
import time

import numpy as np
from wengert.codegen import gemm
from wengert.codegen.gemm_core import core_symbol, core_text, fold_symbol, fold_text
from wengert.codegen.prelude import prelude
from wengert.codegen.target import Target
from wengert.runtime import jit, threads

SHAPES = [
    *((s, s, s, "NN") for s in (16, 32, 64, 128, 256, 512, 1024, 2048)),
    *((s, s, s, layout) for s in (64, 256, 1024) for layout in ("NT", "TN")),
    (128, 512, 784, "NN"), (128, 512, 784, "NT"), (784, 512, 128, "TN"), (128, 784, 512, "NN"),
    (128, 10, 512, "NN"), (128, 10, 512, "NT"), (512, 10, 128, "TN"), (128, 512, 10, "NN"),
    (32, 256, 784, "NN"), (32, 256, 784, "NT"), (4, 512, 784, "NN"), (4, 512, 784, "NT"),
    (1, 512, 784, "NN"), (1, 512, 784, "NT"), (1, 4096, 4096, "NN"), (1, 4096, 4096, "NT"),
    (4096, 1, 4096, "NN"), (4096, 1, 4096, "TN"), (1, 10, 512, "NN"),
]  # fmt: skip


def host_target():
    host = jit.host()
    return Target.of(host.triple, host.features)


def imports():
    found, keep = {"wengert_parallel": threads.address()}, []
    for element in ("float", "double"):
        core, fold = core_symbol(element), fold_symbol(element)
        for name, text, needs in ((core, core_text, "wengert_parallel"), (fold, fold_text, core)):
            code = jit.compile_text(text(element, host_target()), options=jit.LIGHT)
            keep.append(jit.load(code, [name], {needs: found[needs]}))
            found[name] = keep[-1].address(name)
    return found, keep


FOUND, KEEP = imports()


def build(product, kind=None):
    """A function without arguments is made of it by the caller; returns (kernel, function)."""
    kernel = gemm.emit(product, host_target(), kind)
    text = kernel.text + gemm.declarations(set(kernel.imports))
    text += prelude(kernel.calls, host_target())
    library = jit.load(jit.compile_text(text), [kernel.name],
                       {n: FOUND[n] for n in kernel.imports})  # fmt: skip
    KEEP.append(library)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kernel.parameters))
    return kernel, call(library.address(kernel.name))


def operands(rng, m, n, k, layout, dtype):
    a = rng.standard_normal((m, k)).astype(dtype)
    b = rng.standard_normal((k, n)).astype(dtype)
    a = np.asfortranarray(a) if layout[0] == "T" else a
    b = np.asfortranarray(b) if layout[1] == "T" else b
    return a, b, np.empty((m, n), dtype)


def contenders(a, b, c, kinds):
    (m, k), n = a.shape, b.shape[1]
    strides = [tuple(s // x.itemsize for s in x.strides) for x in (a, b, c)]
    product = gemm.Matmul("product", str(a.dtype), m, n, k, *strides)
    wanted = gemm.possible(product) if kinds else [None]
    for kind in wanted:
        kernel, function = build(product, kind)
        work = np.empty(kernel.workspace + 64, np.uint8)
        base = work.ctypes.data
        pointers = a.ctypes.data, b.ctypes.data, c.ctypes.data, base + -base % 64
        yield kernel.kind, (lambda f=function, p=pointers, w=work: f(*p))
    yield "numpy", lambda: np.matmul(a, b, out=c)


def measure(runs, flops):
    rounds = int(min(2000, max(7, 4e9 / max(flops, 1e6))))
    best = dict.fromkeys((name for name, _ in runs), 1e9)
    groups = [[run] * rounds for run in runs] if "--apart" in sys.argv else [runs] * rounds
    for group in groups:
        if "--apart" in sys.argv:
            time.sleep(0.2)
        for name, run in group:
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def main():
    rng = np.random.default_rng(0)
    dtype = "float64" if "float64" in sys.argv else "float32"
    kinds = "--kinds" in sys.argv
    print("| m x n x k | layout | GF/s | NumPy GF/s | ratio |\n|---|---|---|---|---|")
    for m, n, k, layout in SHAPES:
        a, b, c = operands(rng, m, n, k, layout, dtype)
        best = measure(list(contenders(a, b, c, kinds)), 2 * m * n * k)
        blas = best.pop("numpy")
        shown = ", ".join(f"{kind} {2e-9 * m * n * k / t:.1f}" for kind, t in best.items())
        ratio = blas / min(best.values())
        print(f"| {m}x{n}x{k} | {layout} | {shown} | {2e-9 * m * n * k / blas:.1f} | "
              f"{ratio:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

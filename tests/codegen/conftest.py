"""Compiles what codegen emits and runs it on arrays; needs nothing of the runtime but its JIT."""

import ctypes
import functools

import numpy as np
import pytest
from wengert.codegen import gemm
from wengert.codegen.gemm_shared import shared_texts
from wengert.codegen.prelude import prelude
from wengert.codegen.scalar import LLVMReader
from wengert.codegen.target import Target
from wengert.runtime import jit, machine

LOOP = """define void @kernel({params}, i64 %n) nounwind {{
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{body}  %next = add nuw nsw i64 %i, {lanes}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit, !llvm.loop !0
exit:
  ret void
}}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.vectorize.enable", i1 true}}
"""
ELEMENT = {"bool": "i8", "float32": "float", "float64": "double", "float16": "half",
           "bfloat16": "i16"}  # fmt: skip


def element(dtype):
    return ELEMENT.get(dtype) or f"i{dtype.lstrip('uint')}"


def storage(dtype):
    return np.dtype({"bfloat16": "uint16"}.get(dtype, dtype))


def target():
    host = jit.host()
    return Target.of(host.triple, host.features, machine.caches())


def kernel_text(function, dtypes, compute, lanes=1):
    """A loop that applies a scalar function; the result's dtype comes with it."""
    s = LLVMReader(compute, lanes=lanes)
    operands = []
    for k, dtype in enumerate(dtypes):
        s.m.effect(f"%p{k} = getelementptr inbounds {element(dtype)}, ptr %a{k}, i64 %i")
        operands.append(s.load(f"%p{k}", dtype))
    result = function(s, *operands)
    s.m.effect(f"%pr = getelementptr inbounds {element(result.dtype)}, ptr %r, i64 %i")
    s.store(result, "%pr")
    params = ", ".join([f"ptr noalias %a{k}" for k in range(len(dtypes))] + ["ptr noalias %r"])
    text = LOOP.format(params=params, body=s.text(), lanes=lanes)
    return text + prelude(s.calls, target()), result.dtype


class Compiled:
    """A scalar function as a callable of arrays."""

    def __init__(self, function, dtypes, compute=None, lanes=1):
        compute = compute or dtypes[0]
        self.text, self.dtype = kernel_text(function, dtypes, compute, lanes)
        self.library = jit.load(jit.compile_text(self.text), ["kernel"])
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(dtypes) + 1), ctypes.c_int64)
        self.kernel, self.dtypes = kind(self.library.address("kernel")), dtypes

    def __call__(self, *arrays):
        arrays = [np.ascontiguousarray(a, storage(d)) for a, d in zip(arrays, self.dtypes)]
        out = np.empty(arrays[0].shape, storage(self.dtype))
        self.kernel(*(a.ctypes.data for a in arrays), out.ctypes.data, out.size)
        return out


@pytest.fixture(scope="session")
def compiled():
    return Compiled


@pytest.fixture
def rng():
    return np.random.default_rng(7)


SERIAL = """define void @wengert_parallel(ptr %f, ptr %ctx, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %f(ptr %ctx, i64 %i)
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
"""


@functools.cache
def cores(parallel=None):
    """Imports of products: the packed cores, and who runs chunks (one after the other)."""
    found, kept = {"wengert_parallel": parallel}, []
    if parallel is None:
        kept.append(jit.load(jit.compile_text(SERIAL), ["wengert_parallel"]))
        found["wengert_parallel"] = kept[0].address("wengert_parallel")
    for element_ in ("float", "double"):
        for name, text, needs in shared_texts(element_):
            code = jit.compile_text(text(element_, target()), options=jit.LIGHT)
            kept.append(jit.load(code, [name], {need: found[need] for need in needs}))
            found[name] = kept[-1].address(name)
    return found, kept


class Product:
    """A matrix product as a callable of arrays; the workspace comes and goes with it."""

    def __init__(self, product, kind=None, parallel=None):
        self.kernel = kernel = gemm.emit(product, target(), kind)
        text = kernel.text + gemm.declarations(set(kernel.imports))
        text += prelude(kernel.calls, target())
        imports = {name: cores(parallel)[0][name] for name in kernel.imports}
        self.library = jit.load(jit.compile_text(text), [kernel.name], imports)
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kernel.parameters))
        self.function = kind(self.library.address(kernel.name))
        self.work = np.empty(kernel.workspace + 64, np.uint8)

    def __call__(self, *arrays):
        work = self.work.ctypes.data
        work += -work % 64
        self.function(*(a.ctypes.data for a in arrays), work)
        return arrays[2]


@pytest.fixture(scope="session")
def matmul():
    return Product

"""Random graphs, and the comparison of compiled code with the reference interpreter."""

import numpy as np
import wengert as torch  # noqa: F401  fills the catalogue
from wengert.backend import compile_graph
from wengert.ir import interp, packing, passes
from wengert.ir.builder import Builder
from wengert.ir.types import BY_NAME, TensorType, from_bfloat16, to_bfloat16

TOLERANCE = {"float32": 2e-5, "float64": 1e-11, "float16": 4e-3, "bfloat16": 3e-2,
             "complex64": 2e-5, "complex128": 1e-11}  # fmt: skip


def sample(type_, rng):
    """Random values of a type, in storage form."""
    name = type_.dtype.name
    if name == "bool":
        return np.asarray(rng.integers(0, 2, type_.shape)).astype(bool)
    if not type_.dtype.is_floating_point:
        return np.asarray(rng.integers(0, 5, type_.shape)).astype(type_.dtype.storage)
    values = np.asarray(rng.uniform(0.5, 1.5, type_.shape) * rng.choice([-1, 1], type_.shape))
    if name == "bfloat16":
        return to_bfloat16(values.astype(np.float32))
    return values.astype(type_.dtype.storage)


def build(function, *types, name="graph", writes=()):
    """The graph of a function of Values; `writes` gives the target input of an output."""
    builder = Builder(name)
    inputs = [builder.input(t if isinstance(t, TensorType) else of(*t)) for t in types]
    with builder.building():
        results = function(*inputs)
        results = results if isinstance(results, tuple | list) else (results,)
        for k, value in enumerate(results):
            target = dict(writes).get(k)
            builder.output(value, "result" if target is None else "write", target)
    return builder.graph()


def of(dtype, *shape):
    return TensorType(BY_NAME[dtype], tuple(shape))


def assert_same(got, expected, dtype, what="", least=1e-30):
    """Up to rounding of the largest value, or of `least` where all are smaller."""
    assert got.shape == expected.shape and got.dtype == expected.dtype, what
    tolerance = TOLERANCE.get(dtype.name)
    if tolerance is None:
        np.testing.assert_array_equal(got, expected, err_msg=what)
        return
    if dtype.name == "bfloat16":
        got, expected = from_bfloat16(got), from_bfloat16(expected)
    with np.errstate(all="ignore"):
        finite = np.abs(expected[np.isfinite(expected)])
    scale = float(finite.max()) if finite.size else 1.0
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * max(scale, least),
                               err_msg=what)  # fmt: skip


def reference(graph, optimised, arrays):
    """The interpreter's outputs; the optimised graph stands in where a view would have to copy."""
    for candidate in (graph, optimised):
        try:
            return [np.array(e) for e in interp.run(candidate, [a.copy() for a in arrays])]
        except RuntimeError as error:
            if "view size" not in str(error):
                raise
    raise AssertionError("neither graph can be interpreted")


def assert_packs(program):
    """All but texts for reports comes back from bytes."""
    kernels = tuple(kernel._replace(text="") for kernel in program.kernels)
    again = packing.unpack(packing.pack(program), lambda number: program.modules[number].text)
    assert again == program._replace(kernels=kernels)


def check(graph, arrays=None, seed=0, runs=2, least=1e-30):
    """Compiles an (optimised) graph and compares it with the interpreter; returns the compiled."""
    optimised = passes.optimise(graph)
    compiled = compile_graph(optimised)
    assert_packs(compiled.program)
    rng = np.random.default_rng(seed)
    if arrays is None:
        arrays = [sample(i.var.type, rng) for i in graph.inputs]
    expected = reference(graph, optimised, arrays)
    for _ in range(runs):
        fresh = [a.copy() for a in arrays]
        got = compiled(*fresh)
        for k, (g, e, output) in enumerate(zip(got, expected, graph.outputs)):
            what = f"output {k}\n{optimised}\n{compiled.texts()['kernels']}"
            assert_same(g, e, output.var.dtype, what, least)
            if output.kind == "write":
                assert g is fresh[output.target]
        written = {o.target for o in graph.outputs if o.kind == "write"}
        for k, (a, b) in enumerate(zip(fresh, arrays)):
            if k not in written:
                np.testing.assert_array_equal(a, b, err_msg=f"input {k} was changed")
    return compiled


# --- random graphs -------------------------------------------------------------------------------

UNARY = """neg abs exp tanh sigmoid relu sin square reciprocal sqrt log1p floor isnan
logical_not""".split()  # noqa: SIM905
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "gt", "le", "eq"]
SIZES = (1, 2, 3, 5, 8, 17, 33)


def random_shape(rng, most=3):
    return tuple(int(n) for n in rng.choice(SIZES, rng.integers(0, most + 1)))


def random_graph(rng, steps=12, dtype="float32"):
    """A graph of random ops over a few inputs of related shapes."""
    builder = Builder("random")
    shape = random_shape(rng)
    pool = [builder.input(of(dtype, *shape)) for _ in range(2)]
    pool.append(builder.input(of(dtype, *(1 if rng.random() < 0.5 else n for n in shape))))
    with builder.building():
        for _ in range(steps):
            value = pool[rng.integers(len(pool))]
            made = random_step(rng, value, pool, dtype)
            if made is not None and made.numel() < 20000:
                pool.append(made)
        chosen = {id(v): v for v in [pool[-1], *(pool[rng.integers(len(pool))] for _ in range(3))]}
        for value in chosen.values():
            builder.output(value)
    return builder.graph()


def random_step(rng, value, pool, dtype):
    kind = rng.choice(["unary", "binary", "binary", "reduce", "view", "where", "cast"])
    if kind == "unary":
        name = rng.choice(UNARY)
        if name in ("sqrt", "log1p", "reciprocal"):
            value = value.to(dtype).abs() + 0.5
        if name in ("exp", "square"):
            value = value.to(dtype).clamp(-3, 3)
        if name in ("neg", "sign", "abs", "relu", "square", "floor"):
            value = value.to(dtype)
        return getattr(value, name)()
    if kind == "binary":
        others = [o for o in pool if broadcastable(o.shape, value.shape)]
        other = others[rng.integers(len(others))]
        name = rng.choice(BINARY)
        if name in ("sub", "div"):
            value, other = value.to(dtype), other.to(dtype)
        if name == "div":
            other = other.abs() + 1
        return getattr(value, name)(other)
    if kind == "where":
        others = [o for o in pool if broadcastable(o.shape, value.shape)]
        a, b = (others[rng.integers(len(others))].to(dtype) for _ in range(2))
        if not broadcastable(a.shape, b.shape):
            b = a
        return a.where(value.to(dtype) > 0, b)
    if kind == "cast":
        return value.to(rng.choice([dtype, "int64", "bool", dtype])).to(dtype)
    return random_reduction(rng, value, dtype) if kind == "reduce" else random_view(rng, value)


def broadcastable(a, b):
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1]))


def random_reduction(rng, value, dtype):
    value = value.to(dtype)
    name = rng.choice(["sum", "mean", "amax", "amin", "logsumexp", "softmax"])
    if not value.ndim:
        return value.sum()
    count = rng.integers(1, value.ndim + 1)
    dims = tuple(int(d) for d in rng.choice(value.ndim, count, replace=False))
    if name == "softmax":
        return value.softmax(dims[0])
    return getattr(value, name)(dims, bool(rng.integers(2)))


def random_view(rng, value):
    if not value.ndim:
        return value.reshape((1,))
    d = int(rng.integers(value.ndim))
    kind = rng.choice(["permute", "reshape", "slice", "select", "expand", "unsqueeze", "flatten"])
    if kind == "permute":
        return value.permute(tuple(int(k) for k in rng.permutation(value.ndim)))
    if kind == "reshape":
        return value.reshape((value.shape[0], -1)) if value.numel() else None
    if kind == "flatten":
        return value.reshape((-1,)) if value.numel() else None
    if kind == "slice" and value.shape[d] > 1:
        start = int(rng.integers(value.shape[d] - 1))
        return value[(slice(None),) * d + (slice(start, None, int(rng.integers(1, 3))),)]
    if kind == "select" and value.shape[d]:
        return value.select(d, int(rng.integers(value.shape[d])))
    if kind == "expand":
        return value.unsqueeze(d).expand((*value.shape[:d], 3, *value.shape[d:]))
    return value.unsqueeze(d)

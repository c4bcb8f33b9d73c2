"""Matrix products: every kind of kernel, layout, edge and epilogue, against NumPy in float64."""

import ctypes

import numpy as np
import pytest
from wengert.codegen import gemm, gemm_core
from wengert.codegen.epilogue import Epilogue
from wengert.codegen.target import Target

SHAPES = [(1, 1, 1), (6, 16, 4), (5, 7, 0), (37, 53, 29), (1, 40, 33), (40, 1, 33), (3, 130, 17),
          (145, 17, 257), (64, 64, 64), (70, 33, 300)]  # fmt: skip
EDGES = [(1, 300, 1000), (300, 1, 1000), (2, 301, 1000), (96, 4, 2003), (13, 10, 77), (130, 17, 99)]
KINDS = {k.kind: k for k in (gemm.Direct, gemm.Blocked, gemm.Strips, gemm.Packed)}
ALL = {
    kind.kind: kind
    for kind in (gemm.Row, gemm.Deep, gemm.Dot, gemm.Tall, gemm.Flipped, *KINDS.values())
}


def matrix(rng, rows, columns, dtype, layout):
    """A matrix stored by rows ("N"), by columns ("T") or with gaps ("S")."""
    if layout == "T":
        return rng.standard_normal((columns, rows)).astype(dtype).T
    if layout == "S":
        return rng.standard_normal((rows * 2, columns * 3)).astype(dtype)[::2, ::3]
    return rng.standard_normal((rows, columns)).astype(dtype)


def strides(x):
    return tuple(s // x.itemsize for s in x.strides)


def describe(a, b, c, **options):
    (m, k), n = a.shape, b.shape[1]
    return gemm.Matmul("product", str(a.dtype), m, n, k, strides(a), strides(b), strides(c),
                       **options)  # fmt: skip


def close(got, want, k, dtype):
    np.testing.assert_allclose(got, want, rtol=0, atol=np.finfo(dtype).eps * 8 * max(k, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind,layouts", [
    ("direct", "NN"), ("direct", "TN"), ("direct", "SN"),
    ("blocked", "NN"), ("blocked", "TN"), ("blocked", "SN"),
    ("strips", "NN"), ("strips", "NT"), ("strips", "TN"), ("strips", "ST"),
    ("flipped", "TN"), ("flipped", "TT"), ("tall", "TN"), ("packed", "NN"), ("packed", "NT"),
    ("packed", "TN"), ("packed", "TT"), ("packed", "SS"),
])  # fmt: skip
def test_layouts(matmul, rng, kind, layouts, dtype):
    for m, n, k in SHAPES:
        if kind != "direct" and k == 0:
            continue
        a, b = matrix(rng, m, k, dtype, layouts[0]), matrix(rng, k, n, dtype, layouts[1])
        c = np.full((m, n), np.nan, dtype)
        if kind == "flipped" and min(m, n) == 1:  # C lies both ways then
            continue
        run = matmul(describe(a, b, c), ALL[kind])
        close(run(a, b, c), a.astype(float) @ b, k, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layouts", ["NN", "NT", "TN", "TT"])
def test_every_possible_kind(matmul, rng, layouts, dtype):
    add = False
    every = 1 if dtype == "float32" else 3  # texts differ by the element alone
    for m, n, k in [*SHAPES, *EDGES][::every]:
        a, b = matrix(rng, m, k, dtype, layouts[0]), matrix(rng, k, n, dtype, layouts[1])
        add = not add  # every other product is added to what is there
        for kind in gemm.possible(describe(a, b, np.empty((m, n)))):
            c = matrix(rng, m, n, dtype, "N")
            want = c * add + a.astype(float) @ b
            close(matmul(describe(a, b, c, accumulate=add), kind)(a, b, c), want, k, dtype)


@pytest.mark.parametrize("rows", range(1, 12))
def test_slices_of_columns_and_tiles_of_any_rows(matmul, rng, rows):
    """Where C has many columns: last rows of all numbers, several blocks of k, a last slice."""
    for layouts in ("NN", "NT"):
        a = matrix(rng, rows, 530, "float32", "N")
        b = matrix(rng, 530, 1100, "float32", layouts[1])
        c = matrix(rng, rows, 1100, "float32", "N")
        want = c + a.astype(float) @ b
        close(matmul(describe(a, b, c, accumulate=True), gemm.Packed)(a, b, c), want, 530,
              "float32")  # fmt: skip


@pytest.mark.parametrize("add", [False, True])
def test_last_columns_of_any_number(matmul, rng, add):
    """Packed products have tiles of fewer vectors for them, which write nothing beside."""
    for n in (*range(33, 64, 2), *range(98, 146, 3)):  # tiles have 16 columns or 48
        for m in (24, 25):
            a, b = matrix(rng, m, 37, "float32", "N"), matrix(rng, 37, n, "float32", "N")
            rows = np.full((m, n + 5), 7, np.float32)
            c = rows[:, :n]
            want = c * add + a.astype(float) @ b
            close(matmul(describe(a, b, c, accumulate=add), gemm.Packed)(a, b, c), want, 37,
                  "float32")  # fmt: skip
            assert (rows[:, n:] == 7).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns_first", [False, True])
def test_accumulates_into_c_by_rows_or_columns(matmul, rng, kind, columns_first):
    a, b = matrix(rng, 19, 300, "float32", "N"), matrix(rng, 300, 21, "float32", "N")
    if columns_first:
        a, b = b.T, a.T
    c = matrix(rng, a.shape[0], b.shape[1], "float32", "T" if columns_first else "N")
    want = c + a.astype(float) @ b
    close(matmul(describe(a, b, c, accumulate=True), KINDS[kind])(a, b, c), want, 300, "float32")


def bias_gelu(site):
    s = site.s
    y = s.add(site.value, site.load("bias", "float32", 0, 1))
    y = s.mul(y, s.sigmoid(s.mul(y, s.const(1.702))))
    return s.add(y, site.load("residual", "float32", *site_strides))


site_strides = (1, 1)


EPILOGUE_SHAPES = [(12, 32, 300), (13, 35, 300), (7, 5, 20), (1, 70, 40), (3, 70, 40)]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("kind,shape", [
    (kind, shape) for kind in ALL for shape in EPILOGUE_SHAPES if kind != "row" or shape[0] < 4
])  # fmt: skip
def test_epilogue(matmul, rng, kind, swapped, shape):
    global site_strides
    m, n, k = shape
    m, n = (n, m) if kind == "row" and swapped else (m, n)
    # C by columns: the kernel computes the transpose
    layouts = ("N", "T") if kind == "dot" else ("T", "T") if swapped else ("N", "N")
    layouts = ("T", "N") if kind == "tall" else layouts
    layouts = ("N" if swapped else "T", "N") if kind == "flipped" else layouts
    a, b = matrix(rng, m, k, "float32", layouts[0]), matrix(rng, k, n, "float32", layouts[1])
    c = matrix(rng, m, n, "float32", "T" if swapped else "N")
    if kind == "flipped" and min(m, n) == 1:
        pytest.skip("C lies both ways")
    bias, residual = matrix(rng, 1, n, "float32", "N")[0], matrix(rng, m, n, "float32", "N")
    site_strides = strides(residual)
    y = a.astype(float) @ b + bias
    want = y / (1 + np.exp(-1.702 * y)) + residual
    product = describe(a, b, c, epilogue=Epilogue(("bias", "residual"), bias_gelu))
    close(matmul(product, ALL[kind])(a, b, c, bias, residual), want, k, "float32")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [7, 64])
def test_broadcast_batches(matmul, rng, kind, m):
    a = rng.standard_normal((5, 1, m, 40)).astype(np.float32)
    b = rng.standard_normal((3, 40, 24)).astype(np.float32)
    c = np.full((5, 3, m, 24), np.nan, np.float32)
    batch = ((5, m * 40, 0, 3 * m * 24), (3, 0, 40 * 24, m * 24))
    product = gemm.Matmul("product", "float32", m, 24, 40, (40, 1), (24, 1), (24, 1), batch=batch)
    run = matmul(product, KINDS[kind])
    close(run(a, b, c), a.astype(float) @ b, 40, "float32")


def test_nan_and_infinity_stay_in_their_rows(matmul):
    a, b = np.ones((40, 50), np.float32), np.ones((50, 40), np.float32)
    a[3, 7], a[5, 9] = np.nan, np.inf
    for kind in KINDS.values():
        c = np.empty((40, 40), np.float32)
        matmul(describe(a, b, c), kind)(a, b, c)
        assert np.isnan(c[3]).all() and np.isinf(c[5]).all() and (c[4] == 50).all()


def test_layout_of_c_must_have_a_unit_stride(rng):
    a = matrix(rng, 4, 4, "float32", "N")
    with pytest.raises(ValueError, match="copy it first"):
        gemm.emit(gemm.Matmul("product", "float32", 4, 4, 4, (4, 1), (4, 1), (20, 5)))
    assert gemm.orientations(describe(a, a, a.T))[0].swapped


@pytest.mark.parametrize("kind,m", [("Row", 1), ("Row", 3), ("Dot", 3), ("Dot", 400),
                                    ("Blocked", 3), ("Strips", 70)])  # fmt: skip
def test_products_and_their_tails_are_vectors(kind, m):
    """What is compiled with light optimisation has no loops that LLVM would have to vectorise."""
    n, k = 300, 40
    b = (1, k) if kind == "Dot" else (n, 1)

    def add_bias(site):
        return site.s.add(site.value, site.load("bias", "float32", 0, 1))

    tail = Epilogue(("bias",), add_bias)
    product = gemm.Matmul("product", "float32", m, n, k, (k, 1), b, (n, 1), epilogue=tail)
    text = gemm.emit(product, Target("avx512", 512, 32), getattr(gemm, kind)).text
    assert "call <16 x float> @llvm.fma.v16f32" in text
    assert "fadd <16 x float>" in text and "store <16 x float>" in text


@pytest.mark.parametrize("name,bits,registers", [("avx512", 512, 32), ("neon", 128, 32)])
def test_other_targets_compile(name, bits, registers):
    from wengert.codegen.gemm_core import core_text, fold_text, turn_text
    from wengert.runtime import jit

    target = Target(name, bits, registers)
    product = gemm.Matmul("product", "float32", 33, 45, 20, (20, 1), (45, 1), (45, 1))
    for kind in KINDS.values():
        kernel = gemm.emit(product, target, kind)
        jit.compile_text(kernel.text + gemm.declarations(set(kernel.imports)), options=jit.LIGHT)
    for text in (core_text, fold_text, turn_text):
        jit.compile_text(text("double", target), options=jit.LIGHT)


@pytest.mark.parametrize("shape,layouts,kind", [
    ((64, 64, 64), "NN", "direct"), ((64, 64, 64), "NT", "packed"),
    ((256, 256, 256), "NN", "packed"), ((128, 10, 512), "NT", "dot"),
    ((8, 1024, 1024), "NN", "packed"), ((5, 1024, 1024), "NN", "blocked"),
    ((8, 1000, 1000), "NN", "blocked"), ((16, 2048, 2048), "NN", "packed"),
    ((16, 512, 512), "NN", "blocked"), ((8, 256, 256), "NN", "direct"),
    ((1024, 16, 1024), "TN", "tall"), ((784, 32, 784), "TN", "tall"),
    ((784, 10, 784), "TN", "flipped"), ((784, 32, 128), "TN", "direct"),
    ((1024, 48, 1024), "TN", "packed"), ((784, 3, 784), "TN", "row"),
    ((2048, 16, 1024), "NN", "direct"), ((5, 512, 784), "NN", "blocked"),
    ((1, 512, 784), "NN", "row"), ((4, 512, 784), "NN", "row"), ((2, 2048, 2048), "NN", "row"),
    ((2, 64, 2048), "NN", "blocked"), ((3, 256, 200), "NN", "direct"),
    ((512, 1, 784), "TN", "row"), ((512, 1, 784), "NN", "dot"), ((1, 10, 512), "NN", "direct"),
    ((16, 16, 10000), "NN", "deep"), ((32, 32, 10000), "TN", "deep"),
    ((16, 16, 1000), "NN", "direct"), ((4096, 32, 784), "NN", "strips"),
    ((4096, 24, 784), "NN", "direct"), ((4096, 60, 784), "NN", "packed"),
    ((4096, 32, 784), "NT", "strips"), ((16, 1024, 1024), "NT", "dot"),
    ((10000, 48, 128), "TN", "tall"), ((2048, 32, 784), "TN", "packed"),
    ((1024, 1024, 32), "NN", "packed"), ((1024, 1024, 8), "NN", "direct"),
    ((1024, 64, 32), "NN", "direct"), ((1000, 250, 32), "NN", "packed"),
    ((1000, 250, 16), "NN", "direct"), ((1024, 8, 1024), "TN", "tall"),
    ((2048, 14, 2048), "TN", "tall"), ((1000, 14, 1000), "TN", "flipped"),
    ((256, 16, 128), "TN", "direct"), ((512, 16, 40), "NT", "strips"),
    ((2048, 10, 4096), "TN", "tall"), ((2048, 5, 2048), "TN", "tall"),
    ((512, 20, 100), "NT", "dot"), ((512, 24, 100), "NT", "strips"), ((512, 24, 200), "NT", "dot"),
])  # fmt: skip
def test_choice(rng, shape, layouts, kind):
    m, n, k = shape
    a, b = matrix(rng, m, k, "float32", layouts[0]), matrix(rng, k, n, "float32", layouts[1])
    assert gemm.choose(describe(a, b, np.empty((m, n), "float32"))).kind == kind


ROOMY = Target("avx512", 512, 32, 48 << 10, 2 << 20)


@pytest.mark.parametrize("shape,layouts,kind", [
    ((1, 512, 784), "NN", "row"), ((4, 512, 784), "NN", "strips"),
    ((4, 1024, 1024), "NN", "strips"), ((4, 2048, 2048), "NN", "blocked"),
    ((16, 2048, 2048), "NN", "blocked"), ((64, 784, 784), "NN", "strips"),
    ((128, 128, 128), "NN", "strips"), ((128, 512, 10), "NN", "strips"),
    ((1000, 80, 50), "NN", "direct"),
    ((128, 784, 512), "NN", "strips"), ((256, 256, 256), "NN", "strips"),
    ((128, 1024, 1024), "NN", "strips"), ((128, 784, 128), "NN", "strips"),
    ((128, 64, 128), "NN", "direct"), ((1024, 1024, 1024), "NN", "packed"),
    ((32, 256, 784), "NT", "strips"), ((128, 10, 512), "NT", "dot"), ((16, 8, 8), "NT", "strips"),
    ((784, 512, 128), "TN", "packed"), ((1024, 1024, 1024), "NT", "packed"),
    ((512, 10, 128), "TN", "flipped"), ((512, 64, 512), "TN", "tall"),
    ((500, 40, 500), "NN", "direct"),
])  # fmt: skip
def test_choice_where_caches_have_room(rng, shape, layouts, kind):
    m, n, k = shape
    a, b = matrix(rng, m, k, "float32", layouts[0]), matrix(rng, k, n, "float32", layouts[1])
    assert gemm.choose(describe(a, b, np.empty((m, n), "float32")), ROOMY).kind == kind


@pytest.mark.parametrize("layouts", ["NN", "NT", "TN"])
@pytest.mark.parametrize(
    "m,n,k", [(700, 50, 40), (137, 500, 130), (50, 300, 300), (2100, 100, 200)]
)
def test_strips_of_several_cells(matmul, rng, m, n, k, layouts):
    """Cells above and beside each other, with an epilogue that knows its row and column."""

    def add_bias(site):
        return site.s.add(site.value, site.load("bias", "float32", 0, 1))

    a, b = matrix(rng, m, k, "float32", layouts[0]), matrix(rng, k, n, "float32", layouts[1])
    c, bias = np.full((m, n), np.nan, np.float32), rng.standard_normal(n).astype(np.float32)
    tail = Epilogue(("bias",), add_bias)
    run = matmul(describe(a, b, c, epilogue=tail), gemm.Strips)
    cells = run.kernel.kernel
    assert cells.extent > 1 and cells.across * cells.cell_columns >= n
    close(run(a, b, c, bias), a.astype(float) @ b + bias, k, "float32")


@pytest.mark.parametrize("kind", ["blocked", "strips"])
@pytest.mark.parametrize("m,row,asked", [(8, 1000, 3), (12, 1000, 2), (23, 1000, 1), (23, 1024, 3)])
def test_tiles_share_what_is_asked_for(kind, m, row, asked):
    """Together they ask for all lines of the next strip, each in turn for few of them; rows that
    meet in the cache are asked for by the first tile alone."""
    product = gemm.Matmul("product", "float32", m, 1000, 1000, (1000, 1), (row, 1), (1000, 1))
    kernel = ALL[kind](product, ROOMY)
    tile = kernel.tiles[0]
    assert tile.ahead.count("call void @llvm.prefetch") == asked
    assert kernel.shares * asked * 16 >= tile.columns


@pytest.mark.parametrize("m,n,k,layouts", [
    (512, 512, 512, "NN"), (100, 100, 100, "NN"), (1, 512, 784, "NN"), (1, 512, 784, "NT"),
    (300, 300, 300, "NN"), (128, 10, 512, "NT"),
])  # fmt: skip
def test_two_threads_have_as_much_to_do(rng, m, n, k, layouts):
    a, b = matrix(rng, m, k, "float32", layouts[0]), matrix(rng, k, n, "float32", layouts[1])
    kernel = gemm.emit(describe(a, b, np.empty((m, n), "float32")), ROOMY).kernel
    assert kernel.chunks % 2 == 0 or kernel.chunks >= 16


@pytest.mark.parametrize("target, shared", [(Target(), True), (ROOMY, False)],
                         ids=["avx2", "roomy"])  # fmt: skip
def test_products_of_few_microseconds_are_not_shared(target, shared):
    """Wide vectors take half as long; few rows wait for memory, however wide they are."""

    def chunks(m, n, k):
        product = gemm.Matmul("product", "float32", m, n, k, (k, 1), (n, 1), (n, 1))
        return gemm.emit(product, target).kernel.chunks

    assert (chunks(64, 64, 64) > 1) is shared
    assert chunks(32, 64, 64) == 1
    assert chunks(128, 128, 64) > 1 and chunks(1, 512, 784) > 1


def test_targets_know_caches():
    features = "+avx512f,+avx512vl,+avx512dq,+avx2,+fma"
    assert Target.of("x86_64", features, (48 << 10, 2 << 20)) == ROOMY
    assert ROOMY.roomy and not ROOMY._replace(l2=1 << 19).roomy and not Target().roomy
    assert Target.of("x86_64", features) == Target("avx512", 512, 32)


@pytest.mark.parametrize("target", [Target(), ROOMY], ids=["avx2", "roomy"])
def test_blocks_of_a_have_no_gaps(target):
    """Few rows and a long k, as of a convolution's weight: the workspace is what A is packed to."""
    core = gemm_core.Core("float", target)
    m, n, k = 2 * core.tile.rows, 8 * core.pack_columns, 20 * core.block_k
    assert core.wide(m, n, k)
    assert m * k <= core.work_elements(m, n, k) <= m * k + 20 * core.slack


@pytest.mark.parametrize("m,n,l2,kind", [
    (8, 1024, 1 << 19, "packed"), (8, 1024, 1 << 20, "blocked"), (12, 1024, 1 << 20, "packed"),
    (12, 4096, 1 << 19, "packed"), (12, 4096, 1 << 20, "blocked"), (12, 1000, 1 << 19, "blocked"),
])  # fmt: skip
def test_rows_that_meet_are_packed_sooner_in_small_caches(m, n, l2, kind):
    product = gemm.Matmul("product", "float32", m, n, n, (n, 1), (n, 1), (n, 1))
    assert gemm.choose(product, Target(l2=l2)).kind == kind


@pytest.mark.parametrize("n,l2,kind", [
    (48, 1 << 20, "tall"), (64, 1 << 20, "packed"), (48, 1 << 19, "packed"), (24, 1 << 19, "tall"),
])  # fmt: skip
def test_columns_that_meet_are_packed_sooner_in_small_caches(n, l2, kind):
    product = gemm.Matmul("product", "float32", 2048, n, 2048, (1, 2048), (n, 1), (n, 1))
    assert gemm.choose(product, Target(l2=l2)).kind == kind


@pytest.mark.parametrize("shape,kind", [((32, 4096, 784), "strips"), ((48, 48, 4096), "strips"),
                                        ((128, 10, 512), "dot")])  # fmt: skip
def test_choice_of_doubles_along_k(shape, kind):
    m, n, k = shape
    product = gemm.Matmul("product", "float64", m, n, k, (k, 1), (1, k), (n, 1))
    assert gemm.choose(product).kind == kind


def test_slices_of_columns_where_a_stays_in_cache():
    """Each slice reads all of A again."""
    core, roomy = gemm_core.Core("float", Target()), gemm_core.Core("float", ROOMY)
    assert core.wide(288, 3000, 300) and not core.wide(768, 3072, 768)
    assert core.wide(64, 25088, 576) and not core.wide(64, 100, 576)
    assert not roomy.wide(2 * roomy.block_rows, 3000, 30)


@pytest.mark.parametrize("shape,layout", [
    ((300, 200, 400), "N"), ((90, 80, 100), "N"), ((1, 2000, 700), "N"), ((3, 900, 700), "N"),
    ((6, 900, 700), "N"), ((900, 16, 700), "T"), ((16, 16, 5000), "N"), ((24, 10, 7000), "T"),
])  # fmt: skip
def test_same_bits_whatever_the_order_of_chunks(matmul, rng, shape, layout):
    """Chunks run backwards give the same bits, so threads may run them in any order."""
    m, n, k = shape
    a, b = matrix(rng, m, k, "float32", layout), matrix(rng, k, n, "float32", "N")
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    chunk = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

    @kind
    def backwards(function, context, count):
        for i in reversed(range(count)):
            chunk(function)(context, i)

    results = []
    for parallel in (None, ctypes.cast(backwards, ctypes.c_void_p).value):
        c = np.empty((m, n), np.float32)
        results.append(matmul(describe(a, b, c), parallel=parallel)(a, b, c))
    assert (results[0].view(np.uint32) == results[1].view(np.uint32)).all()

"""Products with windows of an image, read in place or packed, against NumPy in float64."""

import ctypes
import mmap
import sys

import numpy as np
import pytest
from wengert.codegen import gemm, gemm_fold
from wengert.codegen.epilogue import Epilogue
from wengert.codegen.gemm_fold import Fold
from wengert.codegen.gemm_walk import walk
from wengert.codegen.target import Target

ROOMY = Target("avx512", 512, 32, 48 << 10, 2 << 20)
KINDS = [gemm.Packed, gemm.Walked]
# images, channels, their size, the window's, its steps
SHAPES = [(2, 3, (9, 11), (3, 2), (2, 1)), (1, 40, (8, 8), (3, 3), (1, 1)),
          (3, 1, (5, 40), (1, 5), (1, 2)), (1, 2, (2, 2), (2, 2), (1, 1)),
          (5, 17, (12, 15), (1, 1), (1, 1))]  # fmt: skip


def windows(image, size, step):
    """(image, channel, row in a window, column, its place's row, column) of images, as a view."""
    n, c, height, width = image.shape
    places = [(a - b) // s + 1 for a, b, s in zip((height, width), size, step)]
    s = image.strides
    strides = (s[0], s[1], s[2], s[3], s[2] * step[0], s[3] * step[1])
    return np.lib.stride_tricks.as_strided(image, (n, c, *size, *places), strides)


def elements(x):
    return [s // x.itemsize for s in x.strides]


def forward(weight, image, size, step, **options):
    """The product of a convolution: weight (channels out, k) times windows (k, places)."""
    view = windows(image, size, step)
    n, c, kh, kw, oh, ow = view.shape
    item, *sides = elements(view)
    m, k, per = len(weight), c * kh * kw, oh * ow
    a = weight.reshape(m, c, kh, kw)
    fold = Fold(tuple(zip((c, kh, kw), elements(a)[1:], sides[:3])),
                tuple(zip((oh, ow), sides[3:])), per)  # fmt: skip
    batch = ((n, 0, item, m * per),)
    return gemm.Matmul("product", str(image.dtype), m, per, k, (elements(a)[0], 1), (1, 1),
                       (per, 1), batch, fold=fold, **options)  # fmt: skip


def wanted(weight, image, size, step):
    view = windows(image, size, step).astype(float)
    return np.einsum("mcij,ncijyx->nmyx", weight.astype(float), view)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [1, 6, 16, 17, 33, 48, 50, 64, 70, 112])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_windows(matmul, rng, kind, m, dtype):
    for n, c, shape, size, step in SHAPES:
        image = rng.standard_normal((n, c, *shape)).astype(dtype)
        weight = rng.standard_normal((m, c, *size)).astype(dtype)
        want = wanted(weight, image, size, step)
        c_ = np.full(want.shape, np.nan, dtype)
        got = matmul(forward(weight, image, size, step), kind)(weight, image, c_)
        bound = np.finfo(dtype).eps * 8 * weight[0].size
        np.testing.assert_allclose(got, want, rtol=0, atol=bound)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_turned_weights_sums_and_tails(matmul, rng, kind):
    """A weight whose k runs backwards, added to what is there, then a bias by rows."""

    def add_bias(site):
        return site.s.add(site.value, site.load("bias", "float32", 1, 0))

    image = rng.standard_normal((2, 20, 10, 13)).astype(np.float32)
    stored = rng.standard_normal((20, 37, 3, 3)).astype(np.float32)
    weight = stored.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1]
    product = forward(np.ascontiguousarray(weight), image, (3, 3), (1, 1), accumulate=True,
                      epilogue=Epilogue(("bias",), add_bias))  # fmt: skip
    k = tuple((n, a, b) for (n, _, b), a in zip(product.fold.k, elements(weight)[1:]))
    product = gemm.Matmul(**{**vars(product), "a": (elements(weight)[0], 1),
                             "fold": Fold(k, product.fold.columns, product.fold.per)})  # fmt: skip
    want = wanted(weight, image, (3, 3), (1, 1))
    old = rng.standard_normal(want.shape).astype(np.float32)
    bias = rng.standard_normal(37).astype(np.float32)
    got = matmul(product, kind)(weight, image, old.copy(), bias)
    np.testing.assert_allclose(got, want + old + bias[:, None, None], rtol=0, atol=2e-4)


@pytest.mark.parametrize("target", [ROOMY, Target()], ids=lambda target: target.name)
def test_strips_of_rows_cover_all(target):
    described = walk("float", target)
    for m in range(1, 700):
        more, strips = described.strips(m)
        vectors = -(-m // described.lanes)
        least = (vectors - more) / strips
        assert least == vectors // strips and strips == -(-vectors // described.most)
        assert least + (more > 0) <= described.most


def test_many_strips_are_shared_out_before_columns():
    described = walk("float", Target())
    assert described.cell_columns(512, 392, 10_000) >= 392
    assert described.cell_columns(16, 392, 10_000) < 392 / 4


def test_cells_are_few_and_even():
    """480 columns at a time would leave a cell of 128 to one thread, and of 32."""
    described = walk("float", Target())
    assert described.cell_columns(256, 1568, 10_000) == 400  # 400, 400, 400, 368
    assert described.cell_columns(128, 6272, 10_000) == 448  # fourteen of them
    assert described.cell_columns(64, 100_352, 10_000) == described.most_columns


def test_windows_of_a_cell_stay_in_cache():
    described = walk("float", Target())
    assert 96 <= described.cell_columns(512, 6272, 150) <= 144
    assert described.cell_columns(512, 6272, 50) <= 96
    assert described.cell_columns(512, 6272, 10) > 400  # none would stay


def test_memory_of_windows(rng):
    image = rng.standard_normal((2, 3, 9, 11)).astype(np.float32)
    product = forward(np.zeros((4, 3, 3, 2), np.float32), image, (3, 2), (1, 1))
    assert product.fold.span == 3 * 9 * 11  # of one image
    assert gemm_fold.gathered(product).fold.span == image.size


def before_a_wall(values):
    """A copy whose last element lies right before memory that may not be read."""
    page = mmap.PAGESIZE
    size = -(-values.nbytes // page) * page
    memory = mmap.mmap(-1, size + page)
    copy = np.frombuffer(memory, values.dtype, values.size, size - values.nbytes)
    copy[:] = values.ravel()
    wall = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + size
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(wall), page, 0) == 0
    return copy.reshape(values.shape)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is protected as on Linux")
@pytest.mark.parametrize("m", [1, 5, 16, 37, 70])
@pytest.mark.parametrize("size", [(1, 2), (3, 3), (5, 5), (7, 7)], ids=str)
def test_weights_with_short_runs_are_read_to_their_last_element(matmul, rng, m, size):
    """Channels change places, so k has runs of a window; sums are the bits of a plain weight's."""
    image = rng.standard_normal((2, 21, 9, 12)).astype(np.float32)
    stored = before_a_wall(rng.standard_normal((21, m, *size)).astype(np.float32))
    turned = stored.transpose(1, 0, 2, 3)
    plain = np.ascontiguousarray(turned)
    product = forward(plain, image, size, (1, 1))
    shape = wanted(plain, image, size, (1, 1)).shape
    want = matmul(product, gemm.Walked)(plain, image, np.full(shape, np.nan, np.float32))
    k = tuple((n, a, b) for (n, _, b), a in zip(product.fold.k, elements(turned)[1:]))
    product = gemm.Matmul(**{**vars(product), "a": (elements(turned)[0], 1),
                             "fold": Fold(k, product.fold.columns, product.fold.per)})  # fmt: skip
    got = matmul(product, gemm.Walked)(stored, image, np.full(shape, np.nan, np.float32))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("channels", [14, 29, 57])
def test_blocks_of_k_are_as_long_as_each_other(matmul, rng, channels):
    """k of 126, 261 (one more than a block and a bit) and 513."""
    image = rng.standard_normal((1, channels, 6, 7)).astype(np.float32)
    weight = rng.standard_normal((20, channels, 3, 3)).astype(np.float32)
    want = wanted(weight, image, (3, 3), (1, 1))
    got = matmul(forward(weight, image, (3, 3), (1, 1)), gemm.Walked)(
        weight, image, np.full(want.shape, np.nan, np.float32))  # fmt: skip
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-4)


def test_windows_are_walked_where_there_are_enough(rng):
    """All where caches have room; else not few windows for a large weight, turned as a whole."""
    image = rng.standard_normal((2, 600, 9, 9)).astype(np.float32)
    large, small = (np.zeros((m, 600, 3, 3), np.float32) for m in (300, 8))
    for weight in (large, small):
        assert gemm.choose(forward(weight, image, (3, 3), (1, 1)), ROOMY) is gemm.Walked
    assert gemm.choose(forward(small, image, (3, 3), (1, 1)), Target()) is gemm.Walked
    assert gemm.choose(forward(large, image, (3, 3), (1, 1)), Target()) is gemm.Packed
    many = rng.standard_normal((8, 600, 9, 9)).astype(np.float32)
    assert gemm.choose(forward(large, many, (3, 3), (1, 1)), Target()) is gemm.Walked


def test_windows_of_short_sums_are_packed(rng):
    """Each is copied for many rows, and has few products to hide its way to memory behind."""
    image = rng.standard_normal((2, 5, 30, 30)).astype(np.float32)
    for rows, kind in ((48, gemm.Packed), (32, gemm.Walked)):  # sums of 45
        weight = np.zeros((rows, 5, 3, 3), np.float32)
        assert gemm.choose(forward(weight, image, (3, 3), (1, 1)), Target()) is kind

"""Matrix products as kernels: a description in, LLVM text out.

    product = Matmul("linear", "float32", m=128, n=512, k=784, a=(784, 1), b=(1, 784), c=(512, 1),
                     epilogue=Epilogue(("bias",), bias_relu))
    kernel = emit(product)          # kernel.text defines void @linear(a, b, c, bias, work)

The text needs `prelude(kernel.calls)` beside it, declarations of `kernel.imports`, and at run
time a workspace of `kernel.workspace` bytes, aligned to 64. Modules with `packed` products import
`core_symbol(element)`, which `core_text(element)` defines.

Invariant: work is cut into chunks by shape alone and every element of C is summed in one order,
so results do not depend on the number of threads.
"""

from __future__ import annotations

from .gemm_base import ELEMENT, SIZE, Kernel, KernelText, Matmul
from .gemm_blocked import WAY, Blocked, Tall, meet
from .gemm_core import core_symbol, core_text, fold_symbol, fold_text, turn_symbol
from .gemm_deep import Deep
from .gemm_fold import gathered
from .gemm_kinds import Direct, Dot, Packed, Row, Walked
from .gemm_strips import Flipped, Strips
from .gemm_walk import walk_symbol
from .llvm import SHORT
from .target import DEFAULT, Target

__all__ = [
    "Blocked", "Deep", "Direct", "Dot", "Flipped", "KernelText", "Matmul", "Packed", "Row",
    "Strips", "Tall", "Walked", "core_symbol", "core_text", "declarations", "emit", "fold_symbol",
    "fold_text", "possible",
]  # fmt: skip


NARROW = 128  # columns that are few, where caches have room
WIDEST = 64  # columns of a direct kernel's tile: as many of B's are read row by row
LONG = 160  # sums that are worth walking, however many rows would share what is copied


def orientations(p: Matmul) -> list[Matmul]:
    """The product and its transpose, a C with contiguous columns first; a folded one as it is."""
    if p.fold is not None:
        return [p]
    both = [p, p.transposed()]
    return both if p.c[1] == 1 else both[::-1]


def possible(p: Matmul) -> list[type[Kernel]]:
    """The kinds of kernel that can compute a product, one way round or the other."""
    if p.fold is not None:
        return [Packed, Walked]
    return [
        kind
        for kind in (Row, Dot, Direct, Deep, Blocked, Strips, Flipped, Tall, Packed, Walked)
        if any(map(kind.can, orientations(p)))
    ]


# Note [Which kernel]
# One thread of a Zen 3 (FMA peak 100 GF/s), float32, GF/s; benchmarks/gemm.py --kinds repeats it.
#   m x n x k       layout   row   dot  direct  blocked  packed   OpenBLAS
#   32x32x32        NN                    48               37       25
#   64x64x64        NN                    85               71       64
#   64x64x64        NT              59                     69       61
#   128x128x128     NN                    90               88       84
#   256x256x256     NN                    86               95       92
#   32x256x784      NT              77                     71       72
#   32x256x784      NN                    68       74      77       68
#   128x10x512      NT              76                     33       46
#   128x10x512      NN                    57               33       47
#   4x512x784       NT              72                     26       29
#   8x256x256       NN                    80       70      40       39
#   4x512x784       NN       52           37       38      29       34
#   8x200x1000      NN                    48       73      38       53
#   23x1000x1000    NN                    60       77      63       45
#   12x768x3072     NN                    19       65      51       44
#   8x1024x1024     NN                    16       37      48       35
#   16x1024x1024    NN                    21       45      59       53
#   2x2048x2048     NN       28           16       21      15       10
#   4x2048x2048     NN       34           19       39      24       26
#   8x2048x2048     NN                    13       34      37       36
#   16x2048x2048    NN                    13       41      55       53
#   1x512x784       NN       34           30                8       31
#   1x4096x4096     NN       15            6                5       15
#   1x4096x4096     NT              16     5                4       14
#   1x10x512        NN        6            9                1        4
#                                    tall
#   784x2x784       TN       49   11      11                8       16
#   784x10x784      TN            47      55               38       49
#   784x16x784      TN            87      83               65       69
#   784x32x784      TN            89      67               78       79
#   784x32x128      TN            87      95               80       79
#   2000x16x2000    TN            76      28               37       47
#   2000x64x2000    TN            83      37               70       72
#   1024x16x1024    TN            73      58               65       51
#   1024x48x1024    TN            69      45               81       73
#   2048x24x2048    TN            67      17               22       40
# In words: dot where both lie along k and a side is short; direct while B stays in L2; few rows
# over a larger B read it once, by blocks (up to four by streaming it); few columns of an A that is
# stored by columns read that once, by blocks (tall); the rest is packed. A direct kernel reads a
# few columns of every row of B, for each tile of rows again. Rows of B that meet in the same sets
# of the cache (powers of two) are packed sooner.
# One thread of a Sapphire Rapids (AVX-512, L2 of 2 MB; FMA peak 178 GF/s), all in one process on
# the same memory, to +-5%:
#   m x n x k       layout   row   dot  direct  blocked  strips  packed     MKL
#   4x512x784       NN       81            74       76              28       82
#   8x1024x1024     NN                     39       87       83     40       88
#   16x2048x2048    NN                     29       93       89     53       95
#   12x768x3072     NN                     30       86       70     53       98
#   23x1000x1000    NN                     69      127      127     85      142
#   32x256x784      NN                    114      168      169    105      173
#   128x784x512     NN                     94      160      162    141      172
#   200x1000x1000   NN                             164      169    146      155
#   512x512x512     NN                    138      150      168    166      168
#   1024x1024x1024  NN                     48      110      142    159      164
#   64x64x64        NT              57                      140    102      104
#   32x256x784      NT              95                      141    109      132
#   128x512x784     NT             138                      167    145      154
#   16x1024x1024    NT              82                       98     64       63
#   512x512x512     NT              79                      171    166      165
#   784x512x128     TN                    134      135      172    164      168
# There strips are best while L2 has room for A; a B stored by columns is turned on the way.
# One thread of an Ice Lake (AVX-512, L2 of 1.25 MB; FMA peak 179 GF/s), of MKL; data that begin at
# a line of the cache, and 16 bytes after one, as NumPy's often do:
#   m x n x k       layout     direct        strips        packed
#   64x64x64        NN       1.73  1.69    1.35  1.32
#   128x128x128     NN       1.06  0.94    0.95  1.18
#   64x128x256      NN       1.14  0.87    0.97  0.97
#   128x64x256      NN       1.39  0.97    0.96  1.11
#   256x256x256     NN             0.71          1.02          0.94
#   512x512x512     NN             0.67          1.02          1.01
#   256x256x256     TN             0.62          0.81          0.97
#   784x512x128     TN             0.50          0.70          1.01
#   128x512x10      NN       0.98  0.96    1.00  1.12
#   4x512x784       NN     blocked 0.92          1.17
# So a direct kernel's B should stay in L1, or its tile have all columns: what it reads in two
# lines it reads for each tile of rows.
# Convolutions there, forward, input's and weight's gradient (walked; packed; oneDNN), batch 8:
#   128 channels of 28 x 28, 3 x 3         161 160 152   144 147 141   166 164 155
#   64 channels of 56 x 56, 3 x 3          147 146 133   134 130 121   155 150 134
#   6 to 16 channels of 14 x 14, 5 x 5     110  65 106    58  66  42    77  38  39


def choose(p: Matmul, target: Target = DEFAULT, in_place: bool = False) -> type[Kernel]:
    """The kind of kernel for a product; see Note [Which kernel].

    `in_place`: the epilogue reads C's memory, so sums may not be stored there before it.
    """
    kinds = [kind for kind in possible(p) if not (in_place and kind.stores_sums)]
    if not kinds:
        raise ValueError(f"{p.name}: C has strides {p.c}; one of them must be 1, so copy it first")
    if Walked in kinds and p.fold is not None and is_walked(p, target):
        return Walked
    b_bytes = p.k * max(p.m, p.n) * SIZE[ELEMENT[p.dtype]]
    if Row in kinds and is_streamed(p, target):
        return Row
    if Flipped in kinds and is_flipped(p, target):
        return Flipped
    if Deep in kinds and is_deep(p):
        return Deep
    if Tall in kinds and target.roomy and is_tall(p, target):
        return Tall
    if Strips in kinds and is_cut_in_strips(p, target):
        return Strips
    if Dot in kinds and is_along_sums(p):
        return Dot
    if Blocked in kinds and is_read_once(p, target):
        return Blocked
    if Tall in kinds and is_tall(p, target):
        return Tall
    if Direct in kinds and (p.k == 0 or is_skinny(p, target)):
        return Direct
    if Direct in kinds and b_bytes <= 2**17 and not is_scattered(p, target):
        return Direct
    return Packed


def is_walked(p: Matmul, target: Target) -> bool:
    """Are there windows enough, for an A that is turned as a whole before they are read? And are
    sums longer than windows that are copied would be used?

    GF/s of one thread of a Zen 4 without AVX-512, walked and packed: 512x49x4608 45 and 52,
    64x147x100352 55 and 61, 256x196x2304 67 and 67, 512x392x4608 74 and 75. Of short sums:
    512x4608x49 64 and 81, 512x4608x98 68 and 82, 512x4608x147 80 and 83, 64x576x64 67 and 74,
    32x8192x27 47 and 57, 32x8192x72 67 and 67, 16x150x100 54 and 33.
    """
    if target.roomy:
        return True
    q = gathered(p)
    small = q.m * q.k * SIZE[ELEMENT[p.dtype]] <= target.l2
    if target.vector_bits != 256 or q.k <= min(q.m, LONG):
        return False
    return q.n >= 192 or small


def is_streamed(p: Matmul, target: Target) -> bool:
    """Are there so few rows that factors of several rows of B fit in registers, and long sums?"""
    q = next(q for q in orientations(p) if Row.can(q))
    b_bytes = q.k * q.n * SIZE[ELEMENT[p.dtype]]
    if q.m == 1:
        return b_bytes > 2**15
    if q.c[1] != 1:  # other kinds would have vectors of q.m lanes
        return b_bytes > 2**15 and q.n >= 64
    return b_bytes > 2**18 and q.n >= 256 and not target.roomy


def is_cut_in_strips(p: Matmul, target: Target) -> bool:
    """Does L2 have room for A, and is there enough to do that tiles for a shape are worth 20 ms?

    Few columns need not have all of A there at once. A B that stays in L1 as it is needs no strips,
    unless it is stored by columns (100 cubed on a Zen 5 direct 243, strips 229 GF/s). An A that is
    stored by columns is packed, unless B is small. Small products of a B stored by columns are
    strips on any CPU: packing takes ten times as long where nearly all is edges (20 x 20 x 24: 4.2
    us, strips 0.3). So are few rows of long sums, of float32 while B stays near (one thread of a
    Zen 4 without AVX-512, GF/s of strips, dot and packed, of float64 32x256x784 36, 30, 34,
    32x4096x784 33, 23, 30, 48x48x4096 39, 28, 35, 32x32x512 36, 38, 29; of float32 4096x32x784 71,
    52, 55, 32x256x784 73, 70, 68, 16x1024x1024 50, 53, 48), and few columns of a large A (strips,
    direct and packed: 4096x32x784 77, 79, 58, 10000x48x128 78, 61, 69, 2048x64x2048 72, 68, 72; of
    24 columns 66, 73, 46; of float64 1024x48x1024 33, 31, 36).
    """
    q, size = next(q for q in orientations(p) if Strips.can(q)), SIZE[ELEMENT[p.dtype]]
    short = min(q.m, q.n)
    if q.b[1] != 1 and q.flops < 2**18:
        return short > 1 and (short >= 16 or q.k < 32)
    b_bytes = q.k * q.n * size
    if not target.roomy and Dot.can(q) and short <= 48:
        if q.n == short:
            return fills_strips(q, target)
        if q.k >= 256:
            return short >= 16 and (size == 8 or (q.n >= 128 and b_bytes < 4 * target.l2))
    if not target.roomy and q.n > 24 and q.n * size <= 192 and q.a[1] == 1 and q.b[1] == 1:
        return q.m * q.k * size > 2**17
    if not target.roomy or (q.m * q.k * size > target.l2 * 3 // 4 and q.n > NARROW):
        return False
    if q.b[1] != 1:
        return short >= 16
    if q.m > 24:
        # short sums are mostly stores, of which strips make whole lines
        short = q.k <= 32 and q.m * q.n * size > 2**17
        wide = q.n > WIDEST and (b_bytes > target.l1 or short)
        return q.a[1] == 1 and (wide or b_bytes > 2**17)
    # few rows go through a larger B by blocks, which read memory in order
    room = target.l2 * 2 if q.m <= 4 else target.l2 * 7 // 8
    return b_bytes > 2**17 and q.m > 1 and b_bytes <= room


def fills_strips(q: Matmul, target: Target) -> bool:
    """Do few columns fill strips of two vectors better than a dot kernel is filled by its sums?

    GF/s of one thread of a Zen 3, dot, strips and packed, 512 rows, B stored by columns. For 16:
    sums of 40 44, 89, 61, of 200 50, 64, 49, of 512 65, 86, 63; 20 columns: 49, 57, 47; 76, 63, 52;
    66, 62, 51; 24 columns: 50, 71, 62; 57, 48, 48; 76, 73, 63; 40 columns: 49, 76, 71; 55, 57, 59;
    65, 76, 72; 8 columns: 45, 63, 37; 55, 36, 26; 60, 51, 26; 5 columns of 16 27, 19, 13.
    """
    pair = 2 * target.lanes(ELEMENT[q.dtype])
    filled = q.n / (-(-q.n // pair) * pair)
    filled *= 1.4 if 2 * q.n <= pair else 1  # a single vector
    reached = ((32, 0.45), (64, 0.55), (160, 0.72))  # of the peak, by dot kernels of shorter sums
    return q.n > 1 and filled >= next((share for most, share in reached if q.k < most), 0.82)


def is_along_sums(p: Matmul) -> bool:
    """Are sums long, and one side so short that little would share what is packed?"""
    short = min(p.m, p.n)
    long = 256 if p.m == short else 64
    return (short < 16 and p.k >= 32) or (short <= 48 and p.k >= long)


def is_flipped(p: Matmul, target: Target) -> bool:
    """Would vectors along the rows of C be short, and can they lie along the columns?

    GF/s of one thread of a Sapphire Rapids, flipped, the best otherwise, MKL, OpenBLAS:
    512x10x128 TN 157, 73, 77, 124; 1024x16x1024 TN 96, 70, 80, 72; 64x10x256 TN 145, 83, 70, 79.

    Where vectors have 256 bits they are short only if the last of two would have lanes to spare,
    many of them where B's rows meet; where they do so in half of the sets they never are (a Zen 3,
    flipped and tall or direct, TN: 1000x6x1000 65 and 39, 784x10x784 67 and 52, 1000x14x1000 81 and
    67, 1000x8x1000 57 and 67, 256x16x128 64 and 92, 1024x16x1024 38 and 67, 1024x12x1024 53 and 43,
    1024x15x1024 38 and 58, 2048x10x4096 14 and 22, 2048x12x512 42 and 49, 2048x16x2048 22 and 47;
    of float64 1000x5x1000 31 and 23, 512x10x128 20 and 30, 2048x10x2048 6 and 18).
    """
    q = next(q for q in orientations(p) if Flipped.can(q))
    if q.m > 16 or q.n < 48 or q.flops < 2**14:
        return False
    lanes = target.lanes(ELEMENT[p.dtype])
    if target.roomy:
        return True
    if q.m >= 2 * lanes or meet(q.b[0], q, 2 * WAY):
        return False
    return -q.m % lanes >= (lanes // 2 if meet(q.b[0], q) else 1)


def is_deep(p: Matmul) -> bool:
    """Are sums so long, for a C of so few elements, that only they can be shared out?

    GF/s of two threads of an Ice Lake, deep, the best otherwise, MKL: 16x16x10000 NN 171, 87, 96;
    32x32x10000 TN 248, 190, 154. Of one thread deep is within 10% of the best.
    """
    return max(p.m, p.n) <= 64 and p.k >= 64 * max(p.m, p.n) and p.flops >= 2**21


def is_read_once(p: Matmul, target: Target) -> bool:
    """Are there few rows for a B that does not stay in cache?

    GF/s of one thread of a Zen 4 without AVX-512 (L2 of 1 MB), whose rows of B meet, blocked and
    packed: 8 x 1024 x 1024 52 and 42, 12 x 1024 x 1024 34 and 47, 16 x 4096 x 4096 47 and 40.
    """
    q = next(q for q in orientations(p) if Blocked.can(q))
    b_bytes = q.k * q.n * SIZE[ELEMENT[p.dtype]]
    most = 24 if target.roomy else 23
    if not target.roomy and meet(q.b[0], q):
        if target.l2 < 2**20:
            most = 5
        elif b_bytes <= 8 * target.l2:
            most = 8
    return q.m <= most and b_bytes > 2**18


def is_tall(p: Matmul, target: Target) -> bool:
    """Are there few columns for an A that is stored by columns and does not stay in cache?

    GF/s of one thread of a Zen 4 without AVX-512, tall, direct and packed: 10000x48x128 TN 81, 61
    and 69, 300x64x3000 85, 35 and 74; where A's columns meet, 2048x48x2048 74, 30 and 55,
    2048x64x2048 53, 22 and 59. On a Zen 3 2048x5x2048 20, 12 and 15.
    """
    q = next(q for q in orientations(p) if Tall.can(q))
    size = SIZE[ELEMENT[p.dtype]]
    if q.m * q.k * size <= 2**18:
        return False
    if target.roomy:
        return q.n <= NARROW and q.k > 128
    if q.n * size % 32 and is_skinny(p, target) and not meet(q.a[1], q):
        return False
    if Tall.is_slow(q):
        return q.n * size <= (192 if target.l2 >= 2**20 else 96)
    return q.n * size <= 256 and (q.k > 128 or (q.k >= 64 and q.m * q.k * size > target.l2))


def is_scattered(p: Matmul, target: Target) -> bool:
    """Would a direct kernel read B from so many places that copies of it pay, though it is small?

    GF/s of one thread of a Zen 4 without AVX-512, direct and packed: 1024x1024x32 49 and 80,
    1024x1024x16 54 and 74, 1024x1024x8 42 and 38, 64x1024x64 50 and 79, 1000x250x32 68 and 78,
    1000x250x16 75 and 71, 1024x64x32 85 and 75.
    """
    q = next(q for q in orientations(p) if Direct.can(q))
    if target.roomy or q.n <= WIDEST or q.k <= 8:
        return False
    return meet(q.b[0], q) or (q.k > 16 and q.flops > 2**22)


def is_skinny(p: Matmul, target: Target) -> bool:
    """Is one side so short that packing what a direct kernel jumps about in would not pay?

    Where L2 has room, it reads all of a small B from there.
    """
    q = next(q for q in orientations(p) if Direct.can(q))
    if target.roomy and q.k * q.n * SIZE[ELEMENT[p.dtype]] <= 2**17:
        return True
    short = min(q.m, q.n)
    a = q.m * q.k if q.a[1] != 1 else 0
    b = q.k * q.n if q.n > WIDEST else 0
    size = SIZE[ELEMENT[p.dtype]]
    if q.a[0] == 1 and q.n <= WIDEST and q.k <= 128:  # what a tile reads of A stays in L1
        return True
    return short <= 24 and b * size <= 2**20 and short**3 * (a + b) * size < 2**32


def emit(p: Matmul, target: Target = DEFAULT, kind: type[Kernel] | None = None) -> KernelText:
    """The kernel of a product; `kind` overrides the choice, for tests and measurements."""
    kind = kind or choose(p, target)
    oriented = next((q for q in orientations(p) if kind.can(q)), None)
    if oriented is None:
        raise ValueError(f"{p.name}: a {kind.kind} kernel cannot have these strides: {p}")
    return kind(oriented, target).emit()


def declarations(imports: set[str]) -> str:
    """LLVM declarations of imported functions."""
    elements = [e for e in SHORT if e != "half"]
    cores = [symbol(e) for e in elements for symbol in (core_symbol, fold_symbol, walk_symbol)]
    parameters = dict.fromkeys(cores, "ptr, i64")
    parameters |= {turn_symbol(e): "ptr, i64, i64, ptr, i64" for e in elements}
    parameters["wengert_parallel"] = "ptr, ptr, i64"
    return "".join(f"declare void @{name}({parameters[name]})\n" for name in sorted(imports))

"""Native code for eager random draws: the kernels that compiled functions draw with.

Numbers are the same bits either way, so a draw may be made by NumPy or natively at any time. NumPy
is called until the compiler is there, or until draws have taken about as long as loading it does.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from .eager_kernels import is_ready
from .ir.types import BY_NAME
from .runtime.layout import data_of

FEW = 1 << 17  # what a draw by NumPy costs beside its elements, in elements of an exact call
EACH = 32  # and an element of it

_call = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)  # no other thread draws meanwhile


@lru_cache(maxsize=256)
def drawer(distribution: str, large: bool, dtype: str, parameters: tuple[Any, ...]) -> Any:
    """What `draw` calls, and with what; None where NumPy draws.

    `large`: are there as many as a block of normal numbers?
    """
    from .codegen import draws
    from .ir.program import Program
    from .runtime.jit import NoCompiler
    from .runtime.loading import Code

    made = draws.written(distribution, draws.BLOCK if large else 1, dtype, parameters)
    if made is None:
        return None
    module = draws.module_of(made)
    try:
        code = Code(Program("draw", (), (), (), (), (module,)))
    except NoCompiler:
        return None
    function = _call(code.symbols[module.symbols[0]])
    words = draws.words_of(made)
    return function, ctypes.c_int64 * (3 + len(words)), words, BY_NAME[dtype].storage, code


def draw(generator: Any, distribution: str, size: int, dtype: str, *parameters: Any) -> Any:
    """`size` elements as the functions of tracer/sampling.py give them, or None: by NumPy."""
    engine = generator.address
    if not size or not engine or not is_ready(True, FEW + EACH * size):
        return None
    found = drawer(distribution, size >= 16, dtype, parameters)
    if found is None:
        return None
    function, block, words, storage, _ = found
    out = np.empty(size, storage)
    generator.begin_drawing()
    function(block(engine, data_of(out), size, *words), 0)
    return out

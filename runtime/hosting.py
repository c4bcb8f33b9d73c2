"""Ops without a kernel inside native programs: NumPy, called back from native code.

A host call is a step like a kernel's: native code gives it the addresses of what it reads and
writes, so a program is one native entry whatever is in it. What an op raises is kept and raised
when the entry has returned; the steps after it are not run.
"""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from ..ir.interp import evaluate_op
from ..ir.program import STATUS, HostCall, Strided, Word

RAISED = 1 << 32  # the status of a call in which an op raised
_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_raised = threading.local()


def reraise() -> None:
    """Raises what an op of this thread's last call did."""
    error, _raised.error = _raised.error, None
    raise error


class Host:
    """An op's NumPy evaluation as a function of native code: `address(words, chunk)`.

    Its words are the addresses of the status, of the operands and of the results.
    """

    def __init__(self, step: HostCall):
        self.step, self.attrs = step, dict(step.attrs)
        self.given = [Seen(o) for o in step.operands if o is not None]
        self.results = [Seen(r) for r in step.results]
        self.types = [None if o is None else o.type for o in step.operands]
        self.made = [r.type for r in step.results]
        self.words = ctypes.c_int64 * (1 + len(self.given) + len(self.results))
        self.function = _callback(self)
        self.address = ctypes.cast(self.function, ctypes.c_void_p).value

    def __call__(self, words: int, chunk: int) -> None:
        status, *places = self.words.from_address(words)
        try:
            self.evaluate(places)
        except BaseException as error:  # Ctrl-C as well: native code lies between it and the caller
            _raised.error = error
            ctypes.c_int64.from_address(status).value = RAISED

    def evaluate(self, places: list[int]) -> None:
        arrays = iter([see(at) for see, at in zip(self.given, places)])
        operands = [None if t is None else next(arrays) for t in self.types]
        with np.errstate(all="ignore"):
            values = evaluate_op(self.step.op, operands, self.types, dict(self.attrs), self.made)
        for see, at, value in zip(self.results, places[len(self.given) :], values):
            np.copyto(see(at), value)


class Seen:
    """An array of memory whose address is told at each call."""

    def __init__(self, view: Strided):
        size = view.type.dtype.itemsize
        self.shape, self.dtype = view.type.shape, view.type.dtype.storage
        self.strides = tuple([s * size for s in view.strides])
        ends = [s * (n - 1) for n, s in zip(self.shape, self.strides)] if view.type.numel else []
        self.before = -sum([end for end in ends if end < 0])
        reach = self.before + sum([end for end in ends if end > 0]) + size
        self.bytes = ctypes.c_char * (reach if view.type.numel else 0)

    def __call__(self, address: int) -> np.ndarray:
        memory = self.bytes.from_address(address - self.before)
        return np.ndarray(self.shape, self.dtype, memory, self.before, self.strides)


def words_of(step: HostCall) -> list[Word]:
    """Where native code finds what the call is given."""
    views = [*(o for o in step.operands if o is not None), *step.results]
    return [Word(0, STATUS), *(Word(v.offset * v.type.dtype.itemsize, v.buffer) for v in views)]

"""Native functions behind built-in ones: there soon, and better code for them later."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence

from . import cache, forking, jit
from .layout import METH_FASTCALL

_lock = forking.hold(threading.Lock())

# Note [Brief first]
# LLVM's good code for native calls takes several times as long as code that does (`jit.BRIEF`),
# which makes a call some tens of nanoseconds longer. So where no good code is kept, the brief one
# serves first. Where calls become short, LLVM is asked again, beside the caller (`improve` in
# loading.py), and the addresses in the built-in functions that there are then change. Both stay
# loaded: somebody may be in the midst of the first. Later processes find the good code.


class MethodDef(ctypes.Structure):
    """What a built-in function reads at each call."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Improving:
    """A module of native functions, compiled briefly first; see Note [Brief first]."""

    def __init__(
        self,
        text: Callable[[], str],
        symbols: Sequence[str],
        imports: Callable[[], Mapping[str, int]],
    ) -> None:
        self.text, self.symbols, self.imports = text, symbols, imports
        self.options: jit.Options | None = None  # of what serves, or will
        self.loaded: list[jit.Library] = []  # the last one serves
        self.methods: weakref.WeakValueDictionary[int, MethodDef] = (  # to be changed
            weakref.WeakValueDictionary())  # fmt: skip
        self.improved = False  # or about to be

    def work(self) -> tuple[str, jit.Options]:
        """What must be compiled before it can serve."""
        if self.options is None:
            kept = cache.find(self.text(), options=jit.LIGHT) is not None
            self.options = jit.LIGHT if kept else jit.BRIEF
        return self.text(), self.options

    def library(self) -> jit.Library:
        """The code that serves now."""
        if not self.loaded:
            text, options = self.work()
            library = cache.build(text, self.symbols, self.imports(), options=options)
            with _lock:  # threads may race: all take the first
                self.loaded = self.loaded or [library]
        return self.loaded[-1]

    def method(self, name: str, symbol: str) -> MethodDef:
        """What a new built-in function needs; whoever calls it keeps this."""
        self.library()
        with _lock:
            address = self.loaded[-1].address(symbol)
            method = MethodDef(name.encode(), address, METH_FASTCALL, None)
            if self.options != jit.LIGHT:
                method.symbol = symbol  # type: ignore[attr-defined]
                self.methods[id(method)] = method
            return method

    def may_improve(self) -> bool:
        """Is there better code to wait for? Says so once."""
        with _lock:
            may = bool(self.loaded) and self.options != jit.LIGHT and not self.improved
            self.improved = self.improved or may
            return may

    def improve(self) -> None:
        """Compiles better code, and has it serve."""
        library = cache.build(self.text(), self.symbols, self.imports(), options=jit.LIGHT)
        with _lock:
            self.options = jit.LIGHT
            self.loaded.append(library)
            for method in self.methods.values():
                method.function = library.address(method.symbol)  # type: ignore[attr-defined]
            self.methods.clear()

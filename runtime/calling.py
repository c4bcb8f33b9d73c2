"""Native `__call__` of classes whose objects try a list of callables first (calling.ll).

A frame of Python costs more than a short native call. So the field of the class that Python calls
(`tp_call`) is set to a native function that does what `__call__` does. Whoever assigns `__call__`
anew, or inherits, has Python fill that field again, and gets what he wrote.

Invariants:
- The class keeps a `__call__` in Python that does the same: it is what runs where memory is not as
  expected, or where a trial with a class of our own does not go well (`trouble`).
- Lists of callables are never changed, only replaced.
"""

from __future__ import annotations

import ctypes
import operator
import string
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

from . import cache as object_cache
from . import fastcall, jit, layout

CALL = 128  # where a class has its `tp_call`
LIST_SIZE, LIST_ITEMS = layout.HEAD, layout.HEAD + 8
_FUNCTIONS = ("Py_IncRef", "Py_DecRef", "PyObject_CallFunctionObjArgs", "PyErr_Clear",
              "PyObject_CallMethodObjArgs", "PyDict_New", "PyErr_ExceptionMatches")  # fmt: skip
EXPORTS = ("wengert_call_object", "wengert_call_inner")
_kept: list[Any] = []  # native code in use, and the objects that it knows


@cache
def text() -> str:
    """The same for all classes, so that it is compiled once."""
    text = (Path(__file__).parent / "calling.ll").read_text()
    return string.Template(text).substitute(
        LIST_SIZE=LIST_SIZE, LIST_ITEMS=LIST_ITEMS, TYPE=layout.TYPE, METHOD=layout.METHOD,
        METHOD_SELF=layout.METHOD_SELF, METHOD_FUNCTION=layout.METHOD_FUNCTION,
        METHOD_FLAGS=layout.METHOD_FLAGS, METH_FASTCALL=layout.METH_FASTCALL,
    )  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """What calling an object of `cls` does.

    The callables in its slot `slot` are tried with `(args, kwargs)` until one does not answer with
    `miss`; then the method named `otherwise` decides. Where one raises an Exception, the method
    named `recover` answers. Objects of class `outer` have such an object in their slot `inner`.
    """

    cls: type
    slot: str
    miss: object
    otherwise: str
    recover: str
    outer: type | None = None
    inner: str = ""

    def install(self) -> None:
        """Native code takes the place of `__call__`."""
        library = self.library()
        _set_call(self.cls, library.address("wengert_call_object"))
        if self.outer is not None:
            _set_call(self.outer, library.address("wengert_call_inner"))

    def library(self) -> jit.Library:
        objects: dict[str, Any] = {
            "exception": Exception, "miss": self.miss, "nothing": {},
            "otherwise": self.otherwise, "recover": self.recover, "function": BuiltinFunctionType,
        }  # fmt: skip
        imports = {name: layout.python_function(name) for name in _FUNCTIONS}
        imports |= {name: id(value) for name, value in objects.items()}
        imports["slot"] = imports["inner_slot"] = layout.slot_offset(self.cls, self.slot)
        if self.outer is not None:
            imports["inner_slot"] = layout.slot_offset(self.outer, self.inner)
        library = object_cache.build(text(), EXPORTS, imports, options=jit.LIGHT)
        _kept.append((library, objects))
        return library


def _set_call(cls: type, address: int) -> None:
    ctypes.c_uint64.from_address(id(cls) + CALL).value = address


@cache
def trouble() -> str:
    """Why `__call__` can't be native here; "" if it can."""
    try:
        return fastcall.reason_for_fallback() or _field_trouble() or _self_test()
    except Exception as error:  # an unknown interpreter may fail in any way: that is an answer
        return f"the self-test failed: {error!r}"


def _field_trouble() -> str:
    """Is `tp_call` where it should be: set in classes with `__call__`, all to the same function?"""
    one, two = (type(name, (), {"__call__": lambda self: None}) for name in ("One", "Two"))
    other = type("Other", (), {})
    values = [layout.word_at(id(cls) + CALL) for cls in (one, two, other)]
    two.__call__ = None  # type: ignore[operator, method-assign, assignment]
    del two.__call__  # type: ignore[operator]
    values.append(layout.word_at(id(two) + CALL))
    good = values[0] and values[0] == values[1] and not values[2] and not values[3]
    return "" if good else f"tp_call: {values}"


def _self_test() -> str:
    class Probe:
        __slots__ = ("hot",)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return "python"

        def otherwise(self, args: Any, kwargs: Any) -> Any:
            return "otherwise", args, kwargs

        def recover(self, args: Any, kwargs: Any) -> Any:
            return "recover", args, kwargs

    class Outer:
        __slots__ = ("probe",)

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return "python"

    miss = object()
    Trial(Probe, "hot", miss, "otherwise", "recover", Outer, "probe").install()
    probe, outer = Probe(), Outer()
    outer.probe = probe  # type: ignore[attr-defined]
    found = [probe(1, a=2)]
    hots: tuple[list[Any], ...] = (
        [], [lambda *_: miss], [lambda *_: miss, lambda *both: both], [operator.is_not],
        [lambda *_: 1 / 0], [divmod],
    )  # fmt: skip
    for hot in hots:
        probe.hot = hot  # type: ignore[attr-defined]
        found += [probe(1), outer(1, a=2)]
    Probe.__call__ = lambda self: "anew"  # type: ignore[method-assign]
    found.append(probe())
    one, two = ((1,), {}), ((1,), {"a": 2})
    expected: list[Any] = [("otherwise", *two)]
    expected += [("otherwise", *one), ("otherwise", *two)] * 2 + [one, two, True, True]
    expected += [("recover", *one), ("recover", *two)] * 2 + ["anew"]
    return "" if found == expected else f"the self-test gave {found!r}"

"""Where CPython and NumPy keep the fields that native code reads, and a test that they do.

Invariants:
- Nothing here is trusted: `trouble()` compares each field, read from memory, with what Python
  says, once per process. If it finds a difference, native code reads no objects at all.
- Offsets are those of NumPy 2's public `PyArrayObject_fields`; its head is CPython's.
"""

from __future__ import annotations

import ctypes
import importlib
import operator
import sys
import weakref
from functools import cache
from types import BuiltinFunctionType
from typing import Any

import numpy as np

HEAD = object.__basicsize__  # reference count and type
TYPE = HEAD - 8
DATA, ND, DIMS, STRIDES, BASE, DESCR, FLAGS, WEAK = (HEAD + at for at in range(0, 64, 8))
FLOAT = HEAD
INT_SIZE, INT_DIGIT = HEAD, HEAD + 8
DICT_USED, DICT_VERSION, DICT_KEYS = HEAD, HEAD + 8, HEAD + 16
KEYS_ENTRIES = 24  # how many a table of keys was given, be they there or not
TUPLE_SIZE, TUPLE_ITEMS = HEAD, HEAD + 8
LIST_ITEMS = HEAD + 8
SET_USED = HEAD + 8
METHOD, METHOD_SELF = HEAD, HEAD + 8  # of a built-in function
METHOD_FUNCTION, METHOD_FLAGS = 8, 16
METH_FASTCALL = 0x80

C_CONTIGUOUS, OWNED, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400
NEW_COPY, NEW_FROM_DESCR, SET_BASE = 85, 94, 282  # indices in NumPy's table of functions
C_ORDER = 0
EQUAL = 2  # Py_EQ
MOST_DIGIT = 1 << 30  # of an int

PYTHON_FUNCTIONS: tuple[str, ...] = (
    "Py_IncRef",
    "Py_DecRef",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyErr_NoMemory",
    "PyTuple_New",
    "PyLong_FromLongLong",
    "PyObject_CallObject",
    "PyType_GenericAlloc",
    "PyObject_CallFunctionObjArgs",
    "PyObject_GetAttr",
    "PyDict_GetItem",
    "PyFrame_GetCode",
    "PyFrame_GetBack",
    "PyIter_Next",
    "PyWeakref_NewRef",
    "PyWeakref_GetObject",
    "PySet_Add",
    "PySet_Discard",
    "PyObject_IsTrue",
    "PyLong_AsLongLong",
    "PyDict_Contains",
    "PyDict_Next",
    "PyObject_RichCompareBool",
    "PyLong_FromVoidPtr",
    "PyThreadState_Get",
    "PyThreadState_GetID",
    "PyThreadState_GetFrame",
    "PyErr_Clear",
    "PyList_New",
    "PyList_SetItem",
    "PyDict_New",
    "PyDict_SetItem",
    "PyObject_GenericGetDict",
    "PyObject_GenericSetAttr",
    "PyObject_VectorcallDict",
)

TELLS_INSTRUCTION = hasattr(ctypes.pythonapi, "PyFrame_GetLasti")  # from Python 3.11 on
if TELLS_INSTRUCTION:
    PYTHON_FUNCTIONS += ("PyFrame_GetLasti",)

# How references are counted: by Python's functions, or as those do it where no object is immortal.
COUNTS = sys.version_info < (3, 12) and not hasattr(sys, "gettotalrefcount")
REFERENCES = """
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
"""
if COUNTS:
    PYTHON_FUNCTIONS += ("_Py_Dealloc",)
    REFERENCES = """
declare void @_Py_Dealloc(ptr)
define internal void @Py_IncRef(ptr %object) alwaysinline {
entry:
  %none = icmp eq ptr %object, null
  br i1 %none, label %out, label %count
count:
  %before = load i64, ptr %object
  %now = add i64 %before, 1
  store i64 %now, ptr %object
  br label %out
out:
  ret void
}
define internal void @Py_DecRef(ptr %object) {
entry:
  %none = icmp eq ptr %object, null
  br i1 %none, label %out, label %count
count:
  %before = load i64, ptr %object
  %now = sub i64 %before, 1
  store i64 %now, ptr %object
  %last = icmp eq i64 %now, 0
  br i1 %last, label %free, label %out
free:
  call void @_Py_Dealloc(ptr %object)
  br label %out
out:
  ret void
}
"""


def python_function(name: str) -> int:
    """The address of a function of CPython."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def numpy_function(index: int) -> int:
    """The address of a function of NumPy's table."""
    core: Any = importlib.import_module("numpy._core._multiarray_umath")
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        python_function("PyCapsule_GetPointer")
    )(core._ARRAY_API, None)
    return word_at(pointer + 8 * index)


def imports() -> dict[str, int]:
    """Addresses for native code that handles objects."""
    return {
        **{name: python_function(name) for name in PYTHON_FUNCTIONS},
        "PyArray_NewCopy": numpy_function(NEW_COPY),
        "PyArray_NewFromDescr": numpy_function(NEW_FROM_DESCR),
        "PyArray_SetBaseObject": numpy_function(SET_BASE),
        "None": id(None),
        "True": id(True),
        "False": id(False),
        "NotImplemented": id(NotImplemented),
        "ndarray": id(np.ndarray),
        "tuple": id(tuple),
        "reference": id(weakref.ref),
        "bool": id(np.dtype(bool)),
        "function": id(BuiltinFunctionType),
        "int": id(int),
    }


@cache
def trouble() -> str:
    """Why objects cannot be read from native code; "" if they can."""
    if sys.implementation.name != "cpython":
        return f"this is {sys.implementation.name}, not CPython"
    if HEAD != 16 or ctypes.sizeof(ctypes.c_void_p) != 8:
        return f"an object's head has {HEAD} bytes, not 16 (free-threaded Python's has 32)"
    try:
        return _count_trouble() or _array_trouble() or _float_trouble() or _int_trouble() or (
            _container_trouble() or _function_trouble() or _new_trouble())  # fmt: skip
    except Exception as error:  # an unknown interpreter may fail in any way: that is an answer
        return f"the self-test failed: {error!r}"


def _count_trouble() -> str:
    one = object()
    several = [one] * 3
    found = word_at(id(one)), sys.getrefcount(one) - 1  # less that of the argument
    if COUNTS and (found[0] != found[1] or found[1] != len(several) + 1):
        return f"a reference count: {found[0]} where Python says {found[1]}"
    return ""


def _array_trouble() -> str:
    read_only = np.arange(3)
    read_only.flags.writeable = False
    unaligned = np.zeros(9, np.uint8)[1:].view(np.float64)
    for array in (
        np.zeros((), np.float32),
        np.arange(6.0).reshape(2, 3),
        np.zeros((3, 0, 2)),
        np.arange(24, dtype=np.int16).reshape(2, 3, 4).transpose(2, 0, 1)[::2],
        np.zeros(5, bool),
        read_only,
        unaligned,
        np.zeros(4, ">f4"),
    ):
        seen = weakref.ref(array) if array.ndim else None
        for field, (found, expected) in _fields(array, seen).items():
            if found != expected:
                return f"ndarray.{field}: {found} where Python says {expected}"
    return ""


def _fields(array: np.ndarray, reference: object) -> dict[str, tuple[object, object]]:
    at = id(array)
    flags = ctypes.c_int32.from_address(at + FLAGS).value
    seen: dict[str, tuple[object, object]] = {
        "type": (word_at(at + TYPE), id(np.ndarray)),
        "data": (word_at(at + DATA), array.__array_interface__["data"][0]),
        "nd": (ctypes.c_int32.from_address(at + ND).value, array.ndim),
        "base": (word_at(at + BASE), 0 if array.base is None else id(array.base)),
        "descr": (word_at(at + DESCR), id(array.dtype)),
        "weak": (word_at(at + WEAK), 0 if reference is None else id(reference)),
        "owner": (bool(flags & OWNED), array.flags.owndata),
        "contiguous": (bool(flags & C_CONTIGUOUS), array.flags.c_contiguous),
        "aligned": (bool(flags & ALIGNED), array.flags.aligned),
        "writeable": (bool(flags & WRITEABLE), array.flags.writeable),
    }
    if array.ndim and all(found == expected for found, expected in seen.values()):
        seen["dims"] = (_words(word_at(at + DIMS), array.ndim), array.shape)
        seen["strides"] = (_words(word_at(at + STRIDES), array.ndim), array.strides)
    return seen


def _float_trouble() -> str:
    for value in (1.5, -3.25e300):
        found = ctypes.c_double.from_address(id(value) + FLOAT).value
        if word_at(id(value) + TYPE) != id(float) or found != value:
            return f"float: {found} where Python says {value}"
    return ""


def _int_trouble() -> str:
    sizes = [word_at(id(value) + INT_SIZE) == one_digit() for value in (257, -257, 2**30)]
    if sizes != [True, False, False] or sys.int_info.bits_per_digit != 30:
        return f"int: sizes {sizes}, {sys.int_info.bits_per_digit} bits"
    for value in (1, -1, 2**30 - 1, 123456):
        digit = ctypes.c_uint32.from_address(id(value) + INT_DIGIT).value
        if digit != abs(value) or number_words(value) == number_words(-value):
            return f"int: the digit {digit} where Python says {value}"
    return ""


def _container_trouble() -> str:
    for count in (0, 1, 5):
        items = tuple(object() for _ in range(count))
        found = word_at(id(items) + TUPLE_SIZE), _words(id(items) + TUPLE_ITEMS, count)
        if found != (count, tuple(map(id, items))):
            return f"tuple: {found} where Python says {count} and {items}"
        table = dict.fromkeys(items)
        for container, at in ((table, DICT_USED), (set(items), SET_USED)):
            if word_at(id(container) + at) != count:
                return f"{container}: {word_at(id(container) + at)} items"
    return ""


def _function_trouble() -> str:
    """Are built-in functions where they should be: alike where they take an array of arguments?"""
    functions = operator.is_, operator.is_not, [].append
    methods = [word_at(id(function) + METHOD) for function in functions]
    flags = [ctypes.c_int.from_address(method + METHOD_FLAGS).value for method in methods]
    names = [ctypes.string_at(word_at(method)).decode() for method in methods]
    found = names, [flag == METH_FASTCALL for flag in flags]
    wanted = ["is_", "is_not", "append"], [True, True, False]
    owner = word_at(id(functions[2]) + METHOD_SELF) == id(functions[2].__self__)
    return "" if found == wanted and owner else f"built-in functions: {names}, {flags}"


def _new_trouble() -> str:
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.py_object,
        ctypes.py_object,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
    )(numpy_function(NEW_FROM_DESCR))
    dtype = np.dtype(np.float32)
    ctypes.PYFUNCTYPE(None, ctypes.py_object)(python_function("Py_IncRef"))(dtype)  # it steals one
    dims = (ctypes.c_int64 * 2)(3, 5)
    made = make(np.ndarray, dtype, 2, ctypes.addressof(dims), None, None, 0, None)
    if type(made) is not np.ndarray or (made.shape, made.dtype) != ((3, 5), dtype):
        return f"PyArray_NewFromDescr made {made!r}"
    steps = (ctypes.c_int64 * 2)(4, 12)
    increase = ctypes.PYFUNCTYPE(None, ctypes.py_object)(python_function("Py_IncRef"))
    increase(dtype)
    view = make(np.ndarray, dtype, 2, ctypes.addressof(dims), ctypes.addressof(steps),
                made.ctypes.data, WRITEABLE, None)  # fmt: skip
    increase(made)
    set_base = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object)(
        numpy_function(SET_BASE)
    )
    flags = view.flags
    if set_base(view, made) or view.base is not made or view.strides != (4, 12) or (
            not (flags.writeable and flags.aligned and flags.f_contiguous)):  # fmt: skip
        return f"PyArray_SetBaseObject made {view.base!r} the base, of {flags!r}"
    copy = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_int)(
        numpy_function(NEW_COPY)
    )
    given = np.arange(6, dtype=np.float32).reshape(2, 3).T
    made = copy(given, C_ORDER)
    if type(made) is np.ndarray and made.flags.c_contiguous and made.tolist() == given.tolist():
        return ""
    return f"PyArray_NewCopy made {made!r}"


@cache
def slot_offset(cls: type, slot: str) -> int:
    """Where instances of `cls` keep the value of an entry of `__slots__`; found by trying."""
    probe: Any = object.__new__(cls)
    mark = object()
    object.__setattr__(probe, slot, mark)
    for at in range(HEAD, cls.__basicsize__, 8):
        if word_at(id(probe) + at) == id(mark):
            return at
    raise TypeError(f"{cls.__name__}.{slot} is not an entry of __slots__")


def one_digit() -> int:
    """The word that says of an int that it is positive and has one digit."""
    return word_at(id(12345) + INT_SIZE)


def number_words(value: object) -> list[tuple[int, int]]:
    """Offsets and words that all floats, or ints of one digit, that equal this one have."""
    if type(value) is float:
        offsets = [FLOAT]
    elif type(value) is int and 0 < abs(value) < MOST_DIGIT:
        offsets = [INT_SIZE, INT_SIZE + 4]  # the second ends with the digit, which has four bytes
    else:
        return []
    return [(at, word_at(id(value) + at)) for at in offsets]


def data_of(array: np.ndarray) -> int:
    """The address of an array's first element; NumPy's own answer takes four times as long."""
    if trouble():
        return int(array.__array_interface__["data"][0])
    return word_at(id(array) + DATA)


def word_at(at: int) -> int:
    """The 64-bit word at an address."""
    return ctypes.c_uint64.from_address(at).value


def _words(at: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(at))

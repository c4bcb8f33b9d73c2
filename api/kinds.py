"""What tells kinds of calls apart, as keys and in words.

The key of a call is (structure, a part for each leaf, which arguments share memory, modes,
which containers are one object).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .dynamic import TensorKey
from .ir.types import TensorType
from .plain import EXACT, exact, is_plain
from .pytree import split
from .sharing import layout_of
from .tracer.facts import device
from .tracer.sparse import SparseTensor
from .tracer.tensor import Tensor

MODES = ("grad mode", "inference mode", "the default dtype", "saved_tensors_hooks",
         "which containers are one object")  # fmt: skip


def leaf_key(leaf: Any) -> Any:
    """What of an argument selects a trace."""
    if isinstance(leaf, Tensor):
        array = leaf._array
        facts = (leaf.dtype, array.shape, leaf._requires_grad, layout_of(array), type(leaf))
        return TensorKey(facts)
    if type(leaf) is float:
        return float
    if is_plain(leaf):
        return exact(leaf)
    if isinstance(leaf, tuple):  # a Size: other tuples are containers
        return (type(leaf), *leaf)
    if type(leaf) is slice:
        return (slice, *(exact(end) if is_plain(end) else end
                         for end in (leaf.start, leaf.stop, leaf.step)))  # fmt: skip
    if type(leaf) is device:
        return (EXACT, device, str(leaf))
    if type(leaf) is frozenset and all(map(is_plain, leaf)):
        return (frozenset, frozenset(map(exact, leaf)))
    return ("object", id(leaf))


def with_odd_names(structure: Any) -> Any:
    """The structure of a call, told from others that equal it."""
    odd = odd_names(structure)
    return (*structure, odd) if odd else structure


def odd_names(structure: Any) -> tuple[Any, ...]:
    """The keys of dicts in a structure that are no strings: `True` and `1.0` equal `1`."""
    if structure is None:
        return ()
    names, parts = split(structure)
    found = [name for part in parts if part is not None for name in odd_names(part)]
    if names is not None and not issubclass(structure[0], SparseTensor):
        found += [exact(name) for name in names if type(name) is not str]
    return tuple(found)


def difference(known: Iterable[Any], key: Any, names: list[str]) -> str:
    """How a kind of call differs from the most alike of those that are known."""
    shape = hash(key[0])  # names of members may be of classes that can't be compared
    alike = [k for k in known if hash(k[0]) == shape]
    if not alike:
        return "the arguments have another structure"
    changes = min((changed(k, key, names) for k in alike), key=len)
    return ", ".join(changes) or "a new kind of call"


def changed(before: Any, now: Any, names: list[str]) -> list[str]:
    """The parts of two keys that differ."""
    count = len(names)
    labels = [*names, "which arguments share memory", *MODES]
    found = []
    for position, (label, a, b) in enumerate(zip(labels, before[1:], now[1:])):
        if a != b:
            texts = f" ({described(a)} before, now {described(b)})" if position < count else ""
            found.append(f"{label} differs{texts}")
    return found


def described(part: Any) -> str:
    """What of an argument is part of a key."""
    if isinstance(part, TensorKey):
        dtype, shape, needs_grad, layout, kind = part
        words = [str(TensorType(dtype, shape)), *(["requires grad"] if needs_grad else []),
                 *(["not row-major"] if layout is not True else []),
                 *([f"a {kind.__name__}"] if kind is not Tensor else [])]  # fmt: skip
        return " ".join(words)
    if part is float:
        return "a float"
    kind, *value = part
    if kind == EXACT:
        return str(value[1])
    if kind == "value":
        return repr(float.fromhex(value[0]))
    return "an object" if kind == "object" else repr(value[0]) if len(value) == 1 else repr(part)

"""What a recorder knows of tensors: the memory that they lie in, and which Vars they are now.

Note [What recording keeps]
    A recording keeps tensors from outside, and of those that the body computes only what is known
    of them: a body needs no more memory while it is recorded than when it is not. An entry goes
    when its tensor does; what is known of memory, and of the extents seen in it, when the memory
    does, since autograd may have kept the array alone.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..ir.bind import interpreting
from ..ir.builder import Symbol
from ..ir.graph import ARGUMENT, CAPTURED, SCALAR, Var
from .inplace import look
from .recorded import Entry, Memory, chain_between, extent_of
from .scalars import RunTimeNumber
from .tensor import Tensor


class Entries:
    """The part of a recorder that finds the Var of a tensor."""

    builder: Any
    emit: Any
    input_type: Any
    known_grads: list[tuple[Tensor, Tensor]]
    needing: set[Var]
    refuse: Any
    view_of_memory: Any
    written_storages: list[Any]

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[int, Entry] = {}
        self.lying_in: dict[int, list[Entry]] = {}  # by the key of their memory
        self.memories: dict[int, Memory] = {}
        self.bound: list[tuple[Tensor, Tensor]] = []  # an input, and one that lies in its memory
        self.externals: list[Tensor] = []  # aligned with the builder's inputs
        self.on_lift: Any = None
        self.naming: Any = None  # a tensor from outside -> (kind, name)

    def enter(self, entry: Entry) -> Entry:
        """From now on the entry says what its tensor is."""
        tensor = entry.tensor
        key = id(tensor)
        self.entries[key] = entry
        self.lying_in.setdefault(entry.memory.key, []).append(entry)
        if not entry.outside:
            entry.reference = weakref.ref(tensor, lambda _: self.forget_tensor(key, entry))
        return entry

    def forget_tensor(self, key: int, entry: Entry) -> None:
        """A tensor that the body computed is gone."""
        if self.entries.get(key) is entry:
            del self.entries[key]

    def new_memory(self, root: Any, var: Var) -> Memory:
        """Memory that the body itself made; what is known of it goes when it does."""
        memory = Memory(root, var, None)
        memory.held = weakref.ref(root, lambda _: self.forget_memory(memory))
        return memory

    def forget_memory(self, memory: Memory) -> None:
        self.lying_in.pop(memory.key, None)
        if self.memories.get(memory.key) is memory:
            del self.memories[memory.key]

    def var_of(self, tensor: Tensor) -> Var:
        """The Var a tensor is now."""
        entry = self.entries.get(id(tensor))
        return self.current_var(self.lift(tensor) if entry is None else entry)

    def current_var(self, entry: Entry) -> Var:
        """The Var of an entry, looked at again if its memory was written."""
        if entry.seen != entry.memory.writes:
            tensor = entry.tensor
            requires = entry.var in self.needing if tensor is None else tensor._requires_grad
            entry.var, entry.seen = self.view_of_memory(entry), entry.memory.writes
            if entry.cut or not requires:
                entry.var = self.emit("stop_gradient", entry.var)
            if requires:
                self.needing.add(entry.var)
        return entry.var

    def lift(self, tensor: Tensor) -> Entry:
        """A tensor from outside becomes an input of the graph."""
        root = tensor.storage_.root
        if id(root) in self.memories:
            return self.alias_of_known(tensor, self.memories[id(root)])
        return self.new_input(tensor, root, id(root))

    def new_input(self, tensor: Tensor, root: Any, key: int) -> Entry:
        """An input of its own, on memory filed under `key`."""
        position = len(self.externals)
        kind, name = self.describe(tensor)
        symbol = self.builder.input(self.input_type(tensor), kind, name)
        self.externals.append(tensor)
        if self.on_lift is not None:
            self.on_lift(tensor)
        memory = Memory(root, symbol.var, position)
        self.memories[key] = memory
        entry = self.enter(Entry(tensor, memory, (), symbol.var, outside=True))
        if tensor._requires_grad:
            self.needing.add(symbol.var)
        return entry

    def describe(self, tensor: Tensor) -> tuple[str, str]:
        """The kind and name of an input; `naming` knows arguments and parameters."""
        if isinstance(tensor, RunTimeNumber):
            return SCALAR, self.naming(tensor)[1] if self.naming else ""
        return self.naming(tensor) if self.naming else (CAPTURED, "")

    def alias_of_known(self, tensor: Tensor, memory: Memory) -> Entry:
        """Another tensor on memory that is known: the same extent is an alias, else a new input."""
        extent = extent_of(tensor)
        for entry in self.lying_in.get(memory.key, ()):
            if entry.extent == extent:
                memory = entry.memory
                outside = memory.external is not None
                if outside and tensor._requires_grad:
                    return self.set_apart(tensor, memory)  # with a history of its own
                if outside:
                    self.bound.append((self.externals[memory.external], tensor))
                var = self.current_var(entry)
                fresh = Entry(tensor, memory, entry.chain, var, outside=outside)
                if not tensor._requires_grad and fresh.var in self.needing:
                    fresh.var, fresh.cut = self.emit("stop_gradient", fresh.var), True
                return self.enter(fresh)
        base = None if memory.external is None else self.externals[memory.external]
        chain = chain_between(base, tensor)
        history = tensor._requires_grad and memory.external is not None
        if chain is None or history or self.describe(tensor)[0] == ARGUMENT:
            return self.set_apart(tensor, memory)
        self.bound.append((base, tensor))
        with interpreting(self.builder):
            symbol = look(Symbol(memory.var), chain)
        return self.enter(Entry(tensor, memory, chain, symbol.var, outside=True))

    def set_apart(self, tensor: Tensor, memory: Memory) -> Entry:
        """An input that shares memory with another: right as long as nothing is written there."""
        entry = self.new_input(tensor, tensor.storage_.root, id(tensor))
        memory.apart = entry.memory.apart = True
        if memory.writes:
            self.refuse_shared()
        return entry

    def refuse_shared(self) -> None:
        self.refuse("two tensors from outside share memory that is written, in a way the recorder "
                    "can't follow; pass one of them, or clone() it")  # fmt: skip

    def let_go(self) -> None:
        """The recording is over: nothing of it waits for the collector."""
        for entry in [entry for entries in self.lying_in.values() for entry in entries]:
            entry.reference = entry.memory.held = None  # what is called when it goes holds all this
        self.entries, self.lying_in, self.memories = {}, {}, {}
        self.externals, self.bound, self.known_grads, self.written_storages = [], [], [], []

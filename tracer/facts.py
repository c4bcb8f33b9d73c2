"""Plain facts of a tensor: its shape (`Size`), its device, always the CPU, and what leaves have."""

from __future__ import annotations

import weakref
from typing import Any

from ..ir.bind import epoch


class Size(tuple):
    """A shape; prints as torch.Size([2, 3])."""

    __slots__ = ()

    def __new__(cls, sizes: Any = ()) -> Size:
        self = tuple.__new__(cls, sizes)
        for k, n in enumerate(self):
            if n.__class__ is bool:
                return cls(int(m) if m.__class__ is bool else m for m in self)
            if n.__class__ is not int and not hasattr(n, "__index__"):
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {k} is "
                                f"'{type(n).__name__}')")  # fmt: skip
        return self

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        count = 1
        for size in self:
            count *= size
        return count

    def __getitem__(self, index: Any) -> Any:
        result = tuple.__getitem__(self, index)
        return Size(result) if isinstance(index, slice) else result

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: Any) -> Size:
        return Size(tuple.__mul__(self, count))


class device:
    """Where a tensor lives: always the CPU. Other devices raise as torch without them does."""

    __slots__ = ("index", "type")

    def __init__(self, kind: Any, index: int | None = None):
        if isinstance(kind, device):
            kind, index = kind.type, kind.index
        if not isinstance(kind, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type(kind).__name__}")
        name, _, number = kind.partition(":")
        if not name.isalpha() or (number and not number.isdigit()):
            raise RuntimeError(f"Invalid device string: '{kind}'; use 'cpu' or 'cpu:0'")
        if name not in _KNOWN_DEVICES:
            raise RuntimeError(f"Expected one of {', '.join(_KNOWN_DEVICES)} device type at start "
                               f"of device string: {kind}")  # fmt: skip
        if number:
            index = int(number)
        self.type, self.index = name, index

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return device, (str(self),)

    def __enter__(self) -> device:
        if self.type != "meta":
            require_cpu(self)
        WHERE.append(self)
        note_place()
        return self

    def __exit__(self, *error: Any) -> None:
        note_place()
        WHERE.pop()


def note_place() -> None:
    """New tensors lie elsewhere from now on: compiled traces look where, if not on the CPU."""
    if any(place.type == "meta" for place in WHERE):
        epoch.advance()


WHERE: list[device] = []  # of the blocks `with torch.device(...)` around, the innermost last


_KNOWN_DEVICES = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve",
                  "fpga", "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia",
                  "privateuseone")  # fmt: skip
CPU = device("cpu")


def require_cpu(wanted: Any, pin_memory: bool = False) -> None:
    """Raises torch's error for a device that is not the CPU, and for memory pinned for one."""
    if pin_memory:
        raise RuntimeError("pin_memory=True requires a CUDA or other accelerator backend; no "
                           "pinned memory allocator is available on this system.")  # fmt: skip
    if wanted is None:
        return
    if isinstance(wanted, int):
        raise RuntimeError(
            "Cannot access accelerator device when none is available. Leave "
            "device out or pass 'cpu'."
        )
    if not isinstance(wanted, str | device):
        raise TypeError(f"argument 'device' must be torch.device, not {type(wanted).__name__}")
    kind = (wanted if isinstance(wanted, device) else device(wanted)).type
    if kind in ("cuda", "xpu"):
        raise AssertionError(
            f"Torch not compiled with {kind.upper()} enabled; tensors live on the CPU: leave "
            "device out or pass 'cpu'"
        )
    if kind != "cpu":
        raise NotImplementedError(f"device '{kind}' is not supported: tensors live on the CPU; "
                                  "leave device out or pass 'cpu'")  # fmt: skip


class LeafFacts:
    """What only leaves have: their node (weakly), hooks, and hooks after accumulation."""

    __slots__ = ("accumulator", "hooks", "post_hooks", "unmade")

    def __init__(self) -> None:
        self.accumulator: Any = None
        self.unmade: Unmade | None = None
        self.hooks: dict[int, Any] | None = None
        self.post_hooks: dict[int, Any] | None = None


# Note [Unmade accumulators]
# A leaf has one AccumulateGrad as long as a graph holds it. Backward of a compiled function may put
# gradients into leaves without one, and then nobody ever looks at it. So the node of a compiled
# call keeps an Unmade of the leaf in its place, the same at each call, and makes the edge when it
# is asked for. Nobody can tell as long as the AccumulateGrad is as a new one: only hooks and
# metadata change it. Whoever gives it those has to be kept by all graphs of the leaf. So the Unmade
# that those hold keeps it from then on, and later graphs get another.


class Unmade:
    """Stands for the AccumulateGrad of a leaf."""

    __slots__ = ("accumulator",)

    def __init__(self) -> None:
        self.accumulator: Any = None  # the node, once it is not as a new one


class LastEdges:
    """What stood for the edges of the last node of one kind of call; the next may share it."""

    __slots__ = ("__weakref__", "edges")

    def __init__(self) -> None:
        self.edges: Any = None
        last_edges.add(weakref.ref(self, last_edges.discard))


last_edges: set[weakref.ref[LastEdges]] = set()


def hold_accumulator(node: Any) -> None:
    """An AccumulateGrad gets what a new one has not: graphs that have none yet must hold it."""
    facts = node.variable._leaf
    if facts is None or facts.unmade is None:
        return
    facts.unmade.accumulator = node
    facts.unmade = None
    for reference in list(last_edges):  # other threads may add some meanwhile
        last = reference()
        if last is not None:
            last.edges = None

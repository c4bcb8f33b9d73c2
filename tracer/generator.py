"""The random state: torch's CPU generator (mt19937), bit for bit.

`Generator` holds the state and hands out raw words; the distributions are functions over it:
`sampling` (real-valued and bernoulli), `discrete` (integers, permutations, multinomial) and
`rejection` (poisson, binomial, gamma, dirichlet).

Invariants:
* `words(n)` are the next n outputs of mt19937, in the order torch draws them;
* a state written by `state` has torch's 5056-byte layout and each side can load the other's;
* a normal drawn in a pair but not yet handed out is part of the state.
"""

from __future__ import annotations

import ctypes
import operator
import os
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..ir.bind import notify
from .facts import CPU, device, require_cpu

Array = np.ndarray

DEFAULT_SEED = 67280421310721
_WORDS = 624

STATE = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "key", "normal", "has_normal"]
        + ["single_normal", "has_single_normal"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", _WORDS), "<f8", "<i4", "<f4", "?"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)


def require_generator_on(where: Any) -> None:
    """Only the CPU has one; torch's words for CUDA."""
    kind = device(where).type if isinstance(where, str | device) else None
    if kind == "cuda":
        raise RuntimeError("Cannot get CUDA generator without ATen_cuda library: only the CPU has "
                           "a generator here")  # fmt: skip
    require_cpu(where)


def _memory(bits: np.random.MT19937) -> Array:
    """The memory of an engine: 624 words and the position among them."""
    block = (ctypes.c_uint32 * (_WORDS + 1)).from_address(bits.ctypes.state_address)
    return np.frombuffer(block, np.uint32)


@cache
def _memory_is_known() -> bool:
    """Does NumPy lay an engine out as expected? Its own way to tell takes 50 us a time."""
    bits = np.random.MT19937(1)
    bits.random_raw(10)
    state = bits.state["state"]
    return bool(_memory(bits).tolist() == [*state["key"].tolist(), state["pos"]])


class Snapshot(NamedTuple):
    """A state that is kept: cheap to take, laid out as torch does only when wanted."""

    words: Array  # the engine's memory, but for the position at its end; nobody writes there
    position: int  # where the next word is
    seed: int
    unread: bool  # was nothing drawn since it was seeded, as far as Python knows?
    normal: float | None
    single_normal: float | None

    @property
    def key(self) -> Array:
        """The words of mt19937."""
        return self.words[:_WORDS]

    @property
    def fresh(self) -> bool:
        """Was nothing drawn? Native code draws in the engine's own memory."""
        first = int(self.words[0]) == self.seed & 0xFFFFFFFF
        return self.unread and self.position == _WORDS and first

    @staticmethod
    def of(state: Array) -> Snapshot:
        """What a written state, here or by torch, says."""
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE.itemsize} but found the input "
                f"RNG state size to be {state.size}"
            )
        record = np.frombuffer(np.ascontiguousarray(state).tobytes(), STATE)[0]
        left, following = int(record["left"]), int(record["next"])
        if not record["seeded"] or not 0 < left <= _WORDS or following > _WORDS:
            raise RuntimeError("Invalid mt19937 state; use what get_state() gave")
        return Snapshot(
            record["key"].astype(np.uint32), _WORDS + 1 - left, int(record["seed"]),
            left == 1 and following == 0,
            float(record["normal"]) if record["has_normal"] else None,
            float(record["single_normal"]) if record["has_single_normal"] else None,
        )  # fmt: skip

    def state(self) -> Array:
        """As `Generator.get_state` gives it."""
        record = np.zeros((), STATE)
        record["key"], record["seed"], record["seeded"] = self.key, self.seed, 1
        # torch counts down to the next refill, from 624; a new stream starts one step before it
        record["left"] = _WORDS + 1 - self.position
        record["next"] = 0 if self.fresh else self.position
        if self.normal is not None:
            record["normal"], record["has_normal"] = self.normal, 1
        if self.single_normal is not None:
            record["single_normal"], record["has_single_normal"] = self.single_normal, True
        return np.frombuffer(record.tobytes(), np.uint8).copy()


# where a generator has what is in a snapshot: the engine's memory, which is copied, and ends with
# the position; then the rest
SNAPSHOT_SLOTS = ("_memory", "_seed", "_fresh", "next_normal", "_single_normal")
_new_snapshot = tuple.__new__  # a NamedTuple's own constructor takes three times as long


class Generator:
    """A source of random numbers with torch's names: `Generator().manual_seed(0)`."""

    __slots__ = (
        "__weakref__",
        "_bits",
        "_fresh",
        "_legacy",
        "_memory",
        "_seed",
        "_single_normal",
        "device",
        "next_normal",
    )

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"

    def __init__(self, device: Any = CPU) -> None:
        require_generator_on(device)
        self.device = CPU
        self._begin(DEFAULT_SEED)

    def __getattr__(self, name: str) -> object:
        # numpy.random is a third of NumPy's import time: load it with the first draw
        if name not in ("_bits", "_legacy", "_memory"):
            raise AttributeError(f"'Generator' object has no attribute '{name}'")
        self._bits = np.random.MT19937(0)
        # Seeds as the reference mt19937 does, and fills uint32 arrays faster than random_raw.
        self._legacy = np.random.RandomState(self._bits)
        self._legacy.seed(self._seed & 0xFFFFFFFF)
        self._memory = _memory(self._bits) if _memory_is_known() else None
        return object.__getattribute__(self, name)

    def _begin(self, seed: int) -> None:
        self._seed = seed
        self._fresh = True
        self.next_normal: float | None = None
        self._single_normal: float | None = None

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of a seed in [-2^63, 2^64); the lower 32 bits decide the numbers."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            kind = type(seed).__name__
            raise RuntimeError(f"manual_seed expected a long, but got {kind}")
        seed = operator.index(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long; use a seed in [-2**63, 2**64)")
        notify("reseeded", self)
        self._begin(seed % 2**64)
        self._legacy.seed(self._seed & 0xFFFFFFFF)
        return self

    def seed(self) -> int:
        """Start from a seed taken from the operating system, and return it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed the stream began with."""
        return self._seed

    def words(self, count: int) -> Array:
        """The next `count` outputs of mt19937, as uint32."""
        if count == 0:
            return np.empty(0, np.uint32)
        self._fresh = False
        if count < 512:  # randint costs 10 us before it draws
            return self._bits.random_raw(count).astype(np.uint32)
        return self._legacy.randint(0, 2**32, size=count, dtype=np.uint32)

    def words64(self, count: int) -> Array:
        """The next `count` pairs of outputs as uint64; the first output is the high half."""
        pairs = self.words(2 * count).reshape(count, 2)
        return (pairs[:, 0].astype(np.uint64) << np.uint64(32)) | pairs[:, 1]

    def singles(self, count: int) -> Array:
        """Uniform float32 in [0, 1): 24 bits of one word each."""
        return (self.words(count) & np.uint32(0xFFFFFF)).astype(np.float32) * np.float32(2**-24)

    def doubles(self, count: int) -> Array:
        """Uniform float64 in [0, 1): 53 bits of two words each."""
        kept = self.words64(count) & np.uint64(2**53 - 1)
        return kept.astype(np.float64) * 2.0**-53

    def skip(self, count: int) -> None:
        """Pass over the next `count` words."""
        if count:
            self._fresh = False
            self._bits.random_raw(count, output=False)

    def state(self) -> Array:
        """The whole state as torch lays it out: 5056 bytes."""
        return self.snapshot().state()

    def snapshot(self) -> Snapshot:
        """What `state` would say now, for when it is asked."""
        memory = self._memory
        words = self._engine() if memory is None else memory.copy()
        return _new_snapshot(Snapshot, (words, int(words[_WORDS]), self._seed, self._fresh,
                                        self.next_normal, self._single_normal))  # fmt: skip

    @property
    def address(self) -> int:
        """Where the engine is: 624 words and the position among them; 0 where that is not known."""
        return 0 if self._memory is None else int(self._bits.ctypes.state_address)

    def begin_drawing(self) -> None:
        """Native code is about to draw in the engine's memory."""
        self._fresh = False

    def _engine(self) -> Array:
        """The words of mt19937 and the position of the next one, where memory is not known."""
        engine = self._bits.state["state"]
        return np.append(engine["key"], engine["pos"]).astype(np.uint32)

    def _set_engine(self, words: Array, position: int) -> None:
        if self._memory is not None:
            self._memory[:_WORDS], self._memory[_WORDS] = words, position
        else:
            engine = {"key": words, "pos": position}
            self._bits.state = {"bit_generator": "MT19937", "state": engine}

    def restore(self, state: Array) -> None:
        """Continue from a written state, here or by torch."""
        wanted = Snapshot.of(state)
        if state.tobytes() != self.state().tobytes():
            notify("reseeded", self)
        self.resume(wanted)

    def resume(self, snapshot: Snapshot) -> None:
        """Continue from where a generator was, as part of drawing: nobody is told."""
        self._set_engine(snapshot.key, snapshot.position)
        self._seed, self._fresh = snapshot.seed, snapshot.fresh
        self.next_normal, self._single_normal = snapshot.normal, snapshot.single_normal

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        """As an array, a generator is its state now."""
        return self.state()

    def clone_state(self) -> Generator:
        """A new generator in the same state; the two then run apart."""
        made = Generator(self.device)
        made.resume(self.snapshot())
        return made

    def get_offset(self) -> int:
        """Raises: only counter-based generators have an offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """Raises: only counter-based generators have an offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def __reduce__(self) -> tuple[object, ...]:
        return Generator, (self.device,), self.state()

    def __setstate__(self, state: Array) -> None:
        self.restore(state)

"""The classes and functions of eager's graph that native code reads and makes."""

from __future__ import annotations

from .ir.places import OUR_FILES, user_place
from .runtime.history import Eager
from .tracer.facts import LeafFacts, Unmade
from .tracer.history import history
from .tracer.readers import readers
from .tracer.storage import Storage, exposed
from .tracer.tape import ACCUMULATOR_SLOTS, AccumulateGrad, next_sequence
from .tracer.tensor import Tensor

EAGER = Eager(
    Tensor, Storage, LeafFacts, AccumulateGrad, ACCUMULATOR_SLOTS, Unmade, next_sequence, history,
    user_place, OUR_FILES, readers, readers.discard, exposed,
)  # fmt: skip

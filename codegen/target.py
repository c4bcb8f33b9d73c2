"""What the generated code may assume of the machine: vector width, registers, caches.

codegen must not import LLVM, so the features come as text from the runtime, which asks LLVM, and
the sizes of caches from the runtime, which asks the system.
"""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """`vector_bits` is the width of the vectors to use, `registers` how many of them there are;
    `l1` and `l2` are bytes of a core's caches."""

    name: str = "avx2"
    vector_bits: int = 256
    registers: int = 16
    l1: int = 1 << 15
    l2: int = 1 << 19

    @staticmethod
    def of(triple: str, features: str, caches: tuple[int, int] | None = None) -> Target:
        """The target for LLVM's triple and feature string ("+avx2,+fma,-avx512f ...").

        512-bit vectors are taken only with avx512vl and dq, which all but the first such CPUs have.
        """
        found = Target._by_features(triple, features)
        return found if caches is None else found._replace(l1=caches[0], l2=caches[1])

    @staticmethod
    def _by_features(triple: str, features: str) -> Target:
        have = {f[1:] for f in features.split(",") if f.startswith("+")}
        if triple.startswith(("aarch64", "arm64")):
            return Target("neon", 128, 32)
        if {"avx512f", "avx512vl", "avx512dq"} <= have:
            return Target("avx512", 512, 32)
        if {"avx2", "fma"} <= have:
            return Target()
        return Target("sse", 128, 16)

    @property
    def roomy(self) -> bool:
        """Is there room for a block of a product in L2, and of a few rows in L1?"""
        return self.vector_bits == 512 and self.l2 >= 1 << 20

    @property
    def chunk_flops(self) -> int:
        """Flops of a product's chunk: several microseconds, or telling a thread takes as long.

        So 64 x 64 x 64 is shared where it takes 5 us, not where it takes 2. On two cores of a Zen 5
        that answer each other in 0.5 us, a step with a gradient penalty through layers of 64 x 64
        took 77 to 110 us with 2**18 and kernels of any size shared, 56 since (one thread 47).
        """
        return 2**18 if self.vector_bits < 512 else 2**19

    def lanes(self, element: str) -> int:
        """Lanes of one vector of "float" or "double"."""
        return self.vector_bits // {"float": 32, "double": 64}[element]


DEFAULT = Target()

"""What the generated code may assume of the machine: vector width, registers, caches.

codegen must not import LLVM, so the features come as text from the runtime, which asks LLVM.
"""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """`vector_bits` is the width of the vectors to use, `registers` how many of them there are."""

    name: str = "avx2"
    vector_bits: int = 256
    registers: int = 16

    @staticmethod
    def of(triple: str, features: str) -> Target:
        """The target for LLVM's triple and feature string ("+avx2,+fma,-avx512f ...").

        512-bit vectors are taken only with avx512vl and dq, which all but the first such CPUs have.
        """
        have = {f[1:] for f in features.split(",") if f.startswith("+")}
        if triple.startswith(("aarch64", "arm64")):
            return Target("neon", 128, 32)
        if {"avx512f", "avx512vl", "avx512dq"} <= have:
            return Target("avx512", 512, 32)
        if {"avx2", "fma"} <= have:
            return Target()
        return Target("sse", 128, 16)

    def lanes(self, element: str) -> int:
        """Lanes of one vector of "float" or "double"."""
        return self.vector_bits // {"float": 32, "double": 64}[element]


DEFAULT = Target()

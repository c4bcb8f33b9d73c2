"""Samples that torch and wengert draw from the same seed, and the recording of torch's.

Run as a script where torch is installed, it rewrites `data/generator.json`. A case holds torch's
call, ours, and whether ours is exact everywhere: a sample that goes through the C library in
double precision may differ in the last digits on another library.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from wengert.tracer import discrete as D
from wengert.tracer import rejection as R
from wengert.tracer import sampling as S
from wengert.tracer.generator import Generator

RECORDS = Path(__file__).parent / "data" / "generator.json"
SEEDS = (0, -7, 2**63 + 12345)
SIZES = (1, 3, 15, 16, 17, 33, 700, 2500)
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")


@dataclass(frozen=True)
class Case:
    """The same samples by torch (given the module) and by wengert."""

    name: str
    torch: Callable[[Any, Any], Any]
    ours: Callable[[Generator], np.ndarray]
    exact: bool = True


def _empty(torch: Any, size: int, dtype: str) -> Any:
    return torch.empty(size, dtype=getattr(torch, dtype))


def _given(torch: Any, values: np.ndarray, dtype: str) -> Any:
    return torch.from_numpy(values.copy()).to(getattr(torch, dtype))


def _parameters(size: int, dtype: str) -> np.ndarray:
    """Values in (0, 1) that every dtype holds exactly."""
    return ((np.arange(size) * 37 % 101 + 1) % 63 + 1).astype(D.cast(np.zeros(1), dtype).dtype) / 64


def floating_cases(n: int, d: str) -> list[Case]:
    p, wide = _parameters(n, d), d != "float64"
    return [
        Case("rand", lambda t, g: _empty(t, n, d).uniform_(generator=g),
             lambda g: S.uniform(g, n, dtype=d)),
        Case("uniform_", lambda t, g: _empty(t, n, d).uniform_(-0.3, 0.7, generator=g),
             lambda g: S.uniform(g, n, -0.3, 0.7, d)),
        Case("randn", lambda t, g: _empty(t, n, d).normal_(generator=g),
             lambda g: S.normal(g, n, dtype=d), wide),
        Case("normal_", lambda t, g: _empty(t, n, d).normal_(0.3, 0.7, generator=g),
             lambda g: S.normal(g, n, 0.3, 0.7, d), wide),
        Case("normal", lambda t, g: t.normal(_given(t, -p, d), _given(t, p, d), generator=g),
             lambda g: S.normal_around(g, -p, p, d), wide),
        Case("normal mean", lambda t, g: t.normal(_given(t, p, d), 0.4, generator=g),
             lambda g: S.normal_around(g, p, 0.4, d), wide),
        Case("log_normal_", lambda t, g: _empty(t, n, d).log_normal_(0.1, 0.5, generator=g),
             lambda g: S.log_normal(g, n, 0.1, 0.5, d), wide),
        Case("exponential_", lambda t, g: _empty(t, n, d).exponential_(0.7, generator=g),
             lambda g: S.exponential(g, n, 0.7, d), wide),
        Case("cauchy_", lambda t, g: _empty(t, n, d).cauchy_(0.1, 0.5, generator=g),
             lambda g: S.cauchy(g, n, 0.1, 0.5, d), wide),
        Case("bernoulli", lambda t, g: t.bernoulli(_given(t, p, d), generator=g),
             lambda g: S.bernoulli(g, p, dtype=d)),
        Case("multinomial", lambda t, g: t.multinomial(_given(t, p, d), 3, True, generator=g),
             lambda g: D.multinomial(g, p, 3, True, d)),
        Case("poisson", lambda t, g: t.poisson(_given(t, p * 16, d), generator=g),
             lambda g: R.poisson(g, p * 16, d)),
    ]  # fmt: skip


def wide_cases(n: int, d: str) -> list[Case]:
    p, exact = _parameters(n, d), d == "float32"
    k = min(n, 4)
    return [
        Case("multinomial once", lambda t, g: t.multinomial(_given(t, p, d), k, generator=g),
             lambda g: D.multinomial(g, p, k)),
        Case("multinomial rows",
             lambda t, g: t.multinomial(_given(t, p, d).expand(3, n), k, generator=g),
             lambda g: D.multinomial(g, np.broadcast_to(p, (3, n)), k)),
        Case("_standard_gamma", lambda t, g: t._standard_gamma(_given(t, p * 4, d), generator=g),
             lambda g: R.standard_gamma(g, p * 4), exact),
        Case("_sample_dirichlet",
             lambda t, g: t._sample_dirichlet(_given(t, p * 4, d), generator=g),
             lambda g: R.sample_dirichlet(g, p * 4), exact),
        Case("binomial",
             lambda t, g: t.binomial(_given(t, np.floor(p * 64), d), _given(t, p, d), generator=g),
             lambda g: R.binomial(g, np.floor(p * 64), p)),
        Case("rrelu", lambda t, g: _rrelu(t, _given(t, p - 0.5, d), g),
             lambda g: S.rrelu_noise(g, p - 0.5, 1 / 8, 1 / 3)),
    ]  # fmt: skip


def _rrelu(torch: Any, x: Any, generator: Any) -> Any:
    noise = torch.empty_like(x)
    torch._C._nn.rrelu_with_noise(x, noise, 1 / 8, 1 / 3, True, generator)
    return noise


def integer_cases(n: int, d: str) -> list[Case]:
    cases = [
        Case("random_", lambda t, g: _empty(t, n, d).random_(generator=g),
             lambda g: D.random_integers(g, n, d)),
        Case("random_ 2", lambda t, g: _empty(t, n, d).random_(0, 2, generator=g),
             lambda g: D.randint(g, 0, 2, n, d)),
        Case("bernoulli_", lambda t, g: _empty(t, n, d).bernoulli_(0.3, generator=g),
             lambda g: S.bernoulli(g, 0.3, n, d)),
    ]  # fmt: skip
    if d != "bool":
        cases += [
            Case("random_ 100", lambda t, g: _empty(t, n, d).random_(27, 127, generator=g),
                 lambda g: D.randint(g, 27, 127, n, d)),
            Case("geometric_", lambda t, g: _empty(t, n, d).geometric_(0.4, generator=g),
                 lambda g: S.geometric(g, n, 0.4, d)),
        ]  # fmt: skip
    return cases


def other_cases(n: int) -> list[Case]:
    ranges = [(0, 2**28 - 1), (0, 2**28), (-5, 2**32), (-(2**62), 2**62), (-(2**63), 2**63 - 1)]
    cases = [
        Case(f"randint {low} {high}",
             lambda t, g, low=low, high=high: t.randint(low, high, (n,), generator=g),
             lambda g, low=low, high=high: D.randint(g, low, high, n))
        for low, high in ranges
    ]  # fmt: skip
    cases += [
        Case("random_ all", lambda t, g: _empty(t, n, "int64").random_(-(2**63), None, generator=g),
             lambda g: D.randint(g, -(2**63), None, n)),
        Case("randperm", lambda t, g: t.randperm(n, generator=g), lambda g: D.randperm(g, n)),
        Case("randn complex64", lambda t, g: t.randn(n, dtype=t.complex64, generator=g),
             lambda g: S.normal(g, n, dtype="complex64")),
        Case("rand complex128", lambda t, g: t.rand(n, dtype=t.complex128, generator=g),
             lambda g: S.uniform(g, n, dtype="complex128")),
    ]  # fmt: skip
    return cases


def all_cases() -> dict[str, Case]:
    table = {}
    for n in SIZES:
        for d in FLOATS:
            table |= {f"{c.name} {d} {n}": c for c in floating_cases(n, d)}
        for d in ("float32", "float64"):
            table |= {f"{c.name} {d} {n}": c for c in wide_cases(n, d)}
        for d in INTEGERS + FLOATS:
            table |= {f"{c.name} {d} {n}": c for c in integer_cases(n, d)}
        table |= {f"{c.name} {n}": c for c in other_cases(n)}
    return table


def seed_of(name: str) -> int:
    """The seed a case is recorded with."""
    return SEEDS[zlib.crc32(name.encode()) % len(SEEDS)]


def by_torch(torch: Any, case: Case, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Torch's samples, drawn after one normal so that a cached one is waiting, and its state."""
    generator = torch.Generator().manual_seed(seed)
    torch.randn(1, generator=generator)
    values = case.torch(torch, generator)
    values = values.float() if values.dtype == torch.bfloat16 else values
    return values.numpy(), generator.get_state().numpy()


def by_us(case: Case, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Our samples and state, likewise."""
    generator = Generator().manual_seed(seed)
    S.normal(generator, 1)
    return case.ours(generator), generator.state()


def digest(values: np.ndarray, state: np.ndarray) -> dict[str, Any]:
    """What is recorded: checksums of all samples and of the state, and a few samples."""
    flat = values.reshape(-1)
    few = flat[-3:].view(flat.real.dtype) if flat.dtype.kind == "c" else flat[-3:]
    # of the state, all but the cached normal, which comes from the C library
    bits = zlib.crc32(state[:5016].tobytes())
    return {"all": zlib.crc32(flat.tobytes()), "state": bits, "few": few.tolist()}


def main() -> None:
    import torch

    records = {
        name: digest(*by_torch(torch, case, seed_of(name))) for name, case in all_cases().items()
    }
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(r)}" for name, r in records.items())
    RECORDS.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()

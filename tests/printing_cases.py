"""Tensors to print, and the recording of how torch prints them.

Run as a script where torch is installed, it rewrites `data/printing.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from wengert.tracer import printing

RECORDS = Path(__file__).parent / "data" / "printing.json"
ALL = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32")
ALL += ("float64", "complex64", "complex128")


@dataclass(frozen=True)
class Case:
    """Values as float64 or complex128, cast to dtype, and the facts that show in print."""

    values: np.ndarray
    dtype: str = "float32"
    options: dict[str, Any] = field(default_factory=dict)
    history: str = ""  # "", "leaf", "node" or "parameter"
    default_dtype: str = "float32"


def by_torch(torch: Any, case: Case) -> str:
    """What torch prints for the case."""
    tensor = torch.from_numpy(np.array(case.values)).to(getattr(torch, case.dtype))
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, case.default_dtype))
    if case.history:
        tensor = tensor.requires_grad_()
    if case.history == "node":
        tensor = tensor.clone()
    if case.history == "parameter":
        tensor = torch.nn.Parameter(tensor.detach())
    try:
        with torch._tensor_str.printoptions(**case.options):
            return repr(tensor)
    finally:
        torch.set_default_dtype(before)


def by_us(case: Case) -> str:
    """What we print for the case."""
    facts = {"dtype": case.dtype, "default_dtype": case.default_dtype}
    array = _cast(case.values, case.dtype)
    with printing.printoptions(**case.options):
        if case.history == "parameter":
            return printing.format_parameter(array, **facts)
        node = "CloneBackward0" if case.history == "node" else None
        return printing.format_tensor(
            array, requires_grad=bool(case.history), grad_fn=node, **facts
        )


def _cast(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    from wengert.tracer.rounding import round_to_bfloat16

    return round_to_bfloat16(values)


def _shapes() -> Iterator[tuple[str, Case]]:
    for shape in [(), (1,), (3,), (2, 3), (1, 1, 1), (2, 2, 2), (2, 1, 3, 2), (40,), (3, 25)]:
        values = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 1.25 - 2
        yield f"shape {shape}", Case(values)
        yield f"int shape {shape}", Case(np.floor(values), "int64")
    for shape in [(1001,), (1000,), (50, 30), (10, 11, 12), (7, 1, 200), (2, 3, 4, 60)]:
        values = np.arange(np.prod(shape)).reshape(shape) / 8
        yield f"long {shape}", Case(values)
    for shape in [(0,), (0, 3), (2, 0), (1, 0, 2)]:
        for dtype in ("float32", "int64", "bool", "float64", "complex64"):
            yield f"empty {shape} {dtype}", Case(np.empty(shape), dtype)


def _values() -> Iterator[tuple[str, Case]]:
    inf, nan = np.inf, np.nan
    lists = [
        [0.0], [-0.0, 0.0], [1.0, 2.0], [-1.0, 10.0, 100.0], [1e7, 1.0], [1e8, 1e7], [1e9], [1e-3],
        [1e-4], [1e-5], [0.1, 100.0], [0.1, 100.1], [nan], [inf, -inf, nan], [nan, 1.0],
        [inf, 1.5], [nan, -inf, 1e10], [123456.789], [1.00005, 2.0], [0.00005, 0.0], [99999.5, 1.5],
        [1e-45], [3e38], [16777216.0, 0.5], [-1.0, nan, 1000.0], [2.5e-4, 0.3], [1001.0, 1.0],
        [1000.0, 1.0], [65504.0, 6e-5], [1.0] * 30, [12345678.0] * 9,
    ]  # fmt: skip
    for i, values in enumerate(lists):
        for dtype in ("float16", "bfloat16", "float32", "float64"):
            yield f"values {i} {dtype}", Case(np.array(values), dtype)
    parts = [0.0, -1.0, 1.5, 1000.5, 1e-6, nan, inf]
    for i, real in enumerate(parts):
        pair = np.array([complex(real, parts[i - 1]), complex(1.0, -real)])
        yield f"complex {i}", Case(pair, "complex64")
        yield f"complex scalar {i}", Case(pair[0], "complex128")
    for dtype in ALL:
        for shape in ((), (2, 3)):
            values = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 3.0
            yield f"dtype {dtype} {shape}", Case(values, dtype)
            yield f"double {dtype} {shape}", Case(values, dtype, default_dtype="float64")


def _facts() -> Iterator[tuple[str, Case]]:
    for history in ("leaf", "node", "parameter"):
        for n in (0, 1, 3, 7, 8, 30):
            yield f"{history} {n}", Case(np.arange(n) / 4, history=history)
            yield f"{history} {n} float64", Case(np.arange(n) / 4, "float64", history=history)
        yield f"{history} matrix", Case(np.arange(12).reshape(3, 4) / 4, history=history)
    rows = np.arange(60).reshape(3, 20) * 1.25
    for name in ("precision", "edgeitems", "linewidth", "threshold"):
        for value in {"linewidth": (10, 40, 200), "threshold": (0, 59, 60)}.get(name, (0, 1, 2, 6)):
            for other in ({}, {"threshold": 10}, {"sci_mode": True}):
                yield f"{name} {value} {other}", Case(rows, options={name: value} | other)
    for profile in ("default", "short", "full"):
        yield f"profile {profile}", Case(np.arange(1200) / 7, options={"profile": profile})
    yield "no exponents", Case(np.array([1e-9, 1e9]), options={"sci_mode": False})
    yield "no edges, vector", Case(rows[0], options={"edgeitems": 0, "threshold": 5})


def all_cases() -> dict[str, Case]:
    return dict([*_shapes(), *_values(), *_facts()])


def main() -> None:
    import torch

    records = {name: by_torch(torch, case) for name, case in all_cases().items()}
    RECORDS.write_text(json.dumps(records, indent=0) + "\n")


if __name__ == "__main__":
    main()

"""The printed form of a tensor, equal to torch's character by character.

`format_tensor` takes the values as an array and the facts about the tensor as keywords, so it
needs neither the tensor class nor the tape. `set_printoptions` and `printoptions` change
`OPTIONS`, the one set of options all printing reads.

Invariants:
* all numbers of a tensor share one style and one width, chosen from those that are shown;
* zeros, infinities and NaNs have no say in that choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass
class PrintOptions:
    """How tensors are printed; `sci_mode` None leaves the choice to the values."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
OPTIONS = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change the options given, after those of the profile; `sci_mode` is reset if not given."""
    chosen = replace(PROFILES.get(profile or "", OPTIONS))
    given = {"precision": precision, "threshold": threshold}
    given |= {"edgeitems": edgeitems, "linewidth": linewidth}
    changes = {name: value for name, value in given.items() if value is not None}
    for name, value in (asdict(chosen) | changes | {"sci_mode": sci_mode}).items():
        setattr(OPTIONS, name, value)


def get_printoptions() -> dict[str, Any]:
    """The options in force, as keywords for `set_printoptions`."""
    return asdict(OPTIONS)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Print with other options inside a `with` block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def format_tensor(
    array: Array,
    *,
    dtype: str | None = None,
    default_dtype: str = "float32",
    requires_grad: bool = False,
    grad_fn: str | None = None,
    class_name: str = "tensor",
    device: str = "cpu",
    tangent: str | None = None,
) -> str:
    """What torch's `repr` gives for a tensor of these values and facts.

    `dtype` is a name without a module and defaults to the array's; a bfloat16 tensor comes as
    float32 values. `grad_fn` is the name of the node. On device "meta" no values are shown.

    >>> format_tensor(np.array([1.5, 2.0]), grad_fn="MulBackward0")
    'tensor([1.5000, 2.0000], dtype=torch.float64, grad_fn=<MulBackward0>)'
    """
    dtype = dtype or array.dtype.name
    opening = class_name + "("
    if device == "meta":
        text = "..."
    elif array.size == 0:
        text = "[]"
    else:
        text = _format_values(array, len(opening))
    suffixes = _type_suffixes(array.shape, dtype, default_dtype, device)
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return _append(opening + text, suffixes, len(opening))


def format_parameter(
    array: Array,
    *,
    dtype: str | None = None,
    default_dtype: str = "float32",
    requires_grad: bool = True,
) -> str:
    """What torch's `repr` gives for an `nn.Parameter`."""
    return "Parameter containing:\n" + format_tensor(
        array, dtype=dtype, default_dtype=default_dtype, requires_grad=requires_grad
    )


def _type_suffixes(
    shape: tuple[int, ...], dtype: str, default_dtype: str, device: str
) -> list[str]:
    meta, empty = device == "meta", math.prod(shape) == 0
    default_complex = "complex128" if default_dtype == "float64" else "complex64"
    # without values to look at, int64 and bool would be guesses
    evident = {default_dtype}
    if not (meta or empty):
        evident |= {default_complex, "int64", "bool"}
    suffixes = [] if device == "cpu" else [f"device='{device}'"]
    if meta or (len(shape) != 1 if empty else OPTIONS.edgeitems == 0):
        suffixes.append(f"size={tuple(int(n) for n in shape)}")
    if dtype not in evident:
        suffixes.append(f"dtype=torch.{dtype}")
    return suffixes


def _append(text: str, suffixes: list[str], indent: int) -> str:
    """Adds the suffixes and the closing bracket; one that would pass the margin starts a line."""
    # two columns more than the last line has: torch keeps them free
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > OPTIONS.linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def _format_values(array: Array, indent: int) -> str:
    summarize = array.size > OPTIONS.threshold
    shown = _edges(array) if summarize else array
    if array.dtype.kind == "c":
        style: _Style | _ComplexStyle = _ComplexStyle(_Style(shown.real), _Style(shown.imag))
    else:
        style = _Style(shown)
    return _nested(array, indent, summarize, style)


class _Style:
    """The common style and width of real numbers, integers or booleans."""

    def __init__(self, shown: Array) -> None:
        self.floating = shown.dtype.kind == "f"
        self.whole, self.scientific, self.width = True, False, 1
        if not self.floating:
            self.width = max((len(str(v)) for v in shown.reshape(-1).tolist()), default=1)
            return
        values = shown.reshape(-1).astype(np.float64)
        values = values[np.isfinite(values) & (values != 0)]
        if values.size == 0:
            return
        self.whole = bool((values == np.ceil(values)).all())
        self.scientific = _wants_exponents(np.abs(values))
        self.width = max(1, *(len(self.text(v)) for v in values.tolist()))

    def text(self, value: float) -> str:
        """The number in the common style, not yet padded."""
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{OPTIONS.precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{OPTIONS.precision}f}"

    def __call__(self, value: float) -> str:
        return self.text(value).rjust(self.width)


@dataclass
class _ComplexStyle:
    """A style for each part; the imaginary part has its sign between them."""

    real: _Style
    imag: _Style

    @property
    def width(self) -> int:
        return self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip() + "j"
        return self.real(value.real) + ("" if imag[0] in "+-" else "+") + imag


def _wants_exponents(magnitudes: Array) -> bool:
    if OPTIONS.sci_mode is not None:
        return OPTIONS.sci_mode
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    with np.errstate(over="ignore"):
        spread = np.float64(largest) / np.float64(smallest)
    return bool(spread > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4)


def _edges(array: Array) -> Array:
    """The values a summary shows."""
    count = OPTIONS.edgeitems
    if count == 0:
        # torch's slice of the last 0 elements is the whole vector
        return array if array.ndim < 2 else array[:0]
    for axis, size in enumerate(array.shape):
        if size > 2 * count:
            ends = np.r_[0:count, size - count : size]
            array = array.take(ends, axis)
    return array


def _nested(array: Array, indent: int, summarize: bool, style: _Style | _ComplexStyle) -> str:
    if array.ndim == 0:
        return style(array.item())
    count = OPTIONS.edgeitems
    if array.ndim == 1:
        return _vector(array, indent, summarize, style)
    rows: list[Array | None] = list(array)
    if summarize and len(rows) > 2 * count:
        rows = [*rows[:count], None, *rows[len(rows) - count :]]
    parts = ["..." if row is None else _nested(row, indent + 1, summarize, style) for row in rows]
    separator = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + separator.join(parts) + "]"


def _vector(array: Array, indent: int, summarize: bool, style: _Style | _ComplexStyle) -> str:
    count = OPTIONS.edgeitems
    if summarize and count == 0:
        items = ["..."]
    elif summarize and array.size > 2 * count:
        first, last = array[:count].tolist(), array[-count:].tolist()
        items = [*map(style, first), " ...", *map(style, last)]
    else:
        items = [style(value) for value in array.tolist()]
    per_line = max(1, math.floor((OPTIONS.linewidth - indent) / (style.width + 2)))
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

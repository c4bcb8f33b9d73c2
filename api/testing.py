"""`torch.testing`: assert_close with torch's messages, and make_tensor."""

import cmath
import collections.abc
import math
import warnings

import numpy as np

from .ir.arguments import as_dtype
from .ir.types import FLOAT, promote_types
from .tracer.creation import as_tensor, empty
from .tracer.modes import no_grad
from .tracer.random import randint
from .tracer.tensor import Tensor

# dtype: (rtol, atol); all others are compared exactly
_PRECISIONS = {
    "float16": (0.001, 1e-5), "bfloat16": (0.016, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
_NUMBER_DTYPES = {int: "int64", float: "float64", complex: "complex128"}


class _Mismatch(Exception):
    """A failed comparison: what to raise, and for which item of nested containers."""

    def __init__(self, kind, text, item=()):
        super().__init__(text)
        self.kind, self.text, self.item = kind, text, item

    def error(self, message):
        text = self.text
        if self.item:
            text += f"\n\nThe failure occurred for item {''.join(str([i]) for i in self.item)}"
        if callable(message):
            text = message(text)
        return self.kind(message if isinstance(message, str) else text)


class _Options:
    """How values are compared."""

    def __init__(self, rtol, atol, equal_nan, subclasses, check):
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.subclasses, self.check = subclasses, check

    def tolerances(self, names, item):
        """The given ones, or the loosest of the dtypes' defaults."""
        if (self.rtol is None) != (self.atol is None):
            raise _Mismatch(
                ValueError,
                "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                f"{'rtol' if self.rtol is None else 'atol'}.",
                item,
            )
        if self.rtol is not None:
            return self.rtol, self.atol
        rtols, atols = zip(*(_PRECISIONS.get(name, (0.0, 0.0)) for name in names))
        return max(rtols), max(atols)


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raises unless `actual` and `expected` (tensors, numbers, containers of them) are close.

    Close means |actual - expected| <= atol + rtol * |expected|, with tolerances by dtype.
    """
    __tracebackhide__ = True
    check = {"dtype": check_dtype, "stride": check_stride}
    options = _Options(rtol, atol, equal_nan, allow_subclasses, check)
    try:
        pairs = []
        _collect(actual, expected, (), options, pairs)
        for compare, one, other, item in pairs:
            compare(one, other, item, options)
    except _Mismatch as mismatch:
        error = mismatch.error(msg)
    else:
        return
    raise error


def _collect(actual, expected, item, options, pairs):
    """Pairs of values with the function that compares them; containers are walked."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise _Mismatch(
                AssertionError,
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                item,
            )
        for k in range(len(actual)):
            _collect(actual[k], expected[k], (*item, k), options, pairs)
        return
    mapping = collections.abc.Mapping
    if isinstance(actual, mapping) and isinstance(expected, mapping):
        for key in _common_keys(actual, expected, item):
            _collect(actual[key], expected[key], (*item, key), options, pairs)
        return
    pairs.append(_pair(actual, expected, item, options))


def _is_sequence(value):
    return isinstance(value, collections.abc.Sequence) and not isinstance(value, str)


def _common_keys(actual, expected, item):
    have, wanted = set(actual), set(expected)
    if have != wanted:
        raise _Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(wanted - have)}\n"
            f"Additional keys in the actual mapping: {sorted(have - wanted)}",
            item,
        )
    try:
        return sorted(have)
    except TypeError:
        return list(have)


def _pair(actual, expected, item, options):
    values = (actual, expected)
    if actual is None or expected is None:
        return _compare_none, actual, expected, item
    if all(isinstance(v, bool | np.bool_) for v in values):
        return _compare_bool, bool(actual), bool(expected), item
    if all(isinstance(v, int | float | complex | np.number) for v in values):
        one, other = (v.item() if isinstance(v, np.number) else v for v in values)
        options.tolerances([_NUMBER_DTYPES.get(type(v), "int64") for v in (one, other)], item)
        return _compare_numbers, one, other, item
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if related and (options.subclasses or type(actual) is type(expected)):
        try:
            one, other = (v if isinstance(v, Tensor) else as_tensor(v) for v in values)
        except Exception:
            one = None
        if one is not None:
            options.tolerances([one.dtype.name, other.dtype.name], item)
            return _compare_tensors, one, other, item
    raise _Mismatch(
        TypeError,
        "No comparison pair was able to handle inputs of type "
        f"{type(actual)} and {type(expected)}. Use tensors, numbers, or containers of them.",
        item,
    )


def _compare_none(actual, expected, item, options):
    if not (actual is None and expected is None):
        raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", item)


def _compare_bool(actual, expected, item, options):
    if actual is not expected:
        raise _Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}", item)


def _compare_numbers(actual, expected, item, options):
    if options.check["dtype"] and type(actual) is not type(expected):
        raise _Mismatch(
            AssertionError,
            f"The (d)types do not match: {type(actual)} != {type(expected)}.",
            item,
        )
    if actual == expected:
        return
    if options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    names = [_NUMBER_DTYPES.get(type(v), "int64") for v in (actual, expected)]
    rtol, atol = options.tolerances(names, item)
    difference = abs(actual - expected)
    if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        raise _Mismatch(AssertionError, _scalar_text(actual, expected, rtol, atol), item)


def _compare_tensors(actual, expected, item, options):
    for name, one, other in (
        ("shape", actual.shape, expected.shape),
        ("stride()", actual.stride(), expected.stride()),
        ("dtype", actual.dtype, expected.dtype),
    ):
        wanted = options.check.get(name.removesuffix("()"), True)
        if wanted and one != other:
            raise _Mismatch(
                AssertionError,
                f"The values for attribute '{name}' do not match: {one} != {other}.",
                item,
            )
    rtol, atol = options.tolerances([actual.dtype.name, expected.dtype.name], item)
    with no_grad():
        if actual.dtype is not expected.dtype:
            common = promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(common), expected.to(common)
        matches = actual.isclose(expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
        if bool(matches.all()):
            return
        if not actual.ndim:
            text = _scalar_text(actual.item(), expected.item(), rtol, atol)
        else:
            text = _tensor_text(actual, expected, matches, rtol, atol)
    raise _Mismatch(AssertionError, text, item)


def _scalar_text(actual, expected, rtol, atol):
    difference = abs(actual - expected)
    relative = math.inf if expected == 0 else difference / abs(expected)
    return _text("Scalars", f"Expected {expected} but got {actual}.",
                 (difference, None), (relative, None), rtol, atol)  # fmt: skip


def _tensor_text(actual, expected, matches, rtol, atol):
    count = matches.numel()
    wrong = count - int(matches.sum())
    extra = f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})"
    close = matches._array.ravel()
    one, other = (t._values_array().ravel() for t in (actual, expected))
    if actual.dtype.category < FLOAT:
        one, other = one.astype(np.int64), other.astype(np.int64)
    with np.errstate(all="ignore"):
        absolute = np.abs(one - other)
        absolute[close] = 0
        if actual.dtype.category < FLOAT:
            relative = (absolute / np.abs(other)).astype(np.float32)
        else:
            relative = absolute / np.abs(other)
        relative[close] = 0
    return _text("Tensor-likes", extra, _greatest(absolute, actual.shape),
                 _greatest(relative, actual.shape), rtol, atol)  # fmt: skip


def _greatest(values, shape):
    """The largest value and its index; NaN counts as largest."""
    place = int(np.argmax(values))
    return values[place].item(), tuple(int(k) for k in np.unravel_index(place, tuple(shape)))


def _text(what, extra, absolute, relative, rtol, atol):
    equality = rtol == 0 and atol == 0
    lines = [f"{what} are not {'equal' if equality else 'close'}!", "", extra]
    for kind, (value, index), allowed in (
        ("absolute", absolute, atol),
        ("relative", relative, rtol),
    ):
        line = (f"{kind.title()} difference: {value}" if index is None
                else f"Greatest {kind} difference: {value} at index {index}")  # fmt: skip
        lines.append(line if equality else f"{line} (up to {allowed} allowed)")
    return "\n".join(lines)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The old name of assert_close, which checks neither dtype nor device."""
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed "
                  "in a future release. Please use `torch.testing.assert_close()` instead.",
                  FutureWarning, stacklevel=2)  # fmt: skip
    if not isinstance(actual, Tensor):
        actual = as_tensor(actual)
    if not isinstance(expected, Tensor):
        expected = as_tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        names = [actual.dtype.name, expected.dtype.name]
        rtol, atol = _Options(None, None, False, True, {}).tolerances(names, ())
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False,
                 msg=msg or None)  # fmt: skip


# --- make_tensor ---------------------------------------------------------------------------------

_WHOLE = {"uint8": (0, 10), "int8": (-9, 10), "int16": (-9, 10), "int32": (-9, 10),
          "int64": (-9, 10), "bool": (0, 2), "uint16": (0, 10), "uint32": (0, 10),
          "uint64": (0, 10)}  # fmt: skip


def make_tensor(
    *shape,
    dtype,
    device="cpu",
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor of random values in [low, high): by default [-9, 9) or the dtype's small range."""
    dtype = as_dtype(dtype)
    if len(shape) == 1 and isinstance(shape[0], collections.abc.Sequence):
        shape = tuple(shape[0])
    low, high = _bounds(dtype, low, high)
    if requires_grad and dtype.category < FLOAT:
        raise ValueError("`requires_grad=True` is not supported for boolean and integral dtypes, "
                         f"but got {dtype=}")  # fmt: skip
    spread = noncontiguous and math.prod(shape) > 1
    size = (*shape[:-1], 2 * shape[-1]) if spread else shape
    with no_grad():
        result = _drawn(size, dtype, low, high)
        if spread:
            result = result[..., 1::2]
        if exclude_zero:
            result[result == 0] = 1 if dtype.category < FLOAT else float(np.finfo(
                dtype.compute if dtype.name != "bfloat16" else np.float32).tiny)  # fmt: skip
    return result.requires_grad_() if requires_grad else result


def _bounds(dtype, low, high):
    lowest, highest = _WHOLE.get(dtype.name, (-9, 9))
    low = lowest if low is None else low
    high = highest if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or (low == high and dtype.category < FLOAT):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    return low, high


def _drawn(size, dtype, low, high):
    if dtype.category < FLOAT:
        return randint(math.ceil(low), math.ceil(high), size).to(dtype)
    result = empty(size, dtype=dtype)
    if dtype.is_complex:
        real, imaginary = (empty(size, dtype=dtype.to_real()).uniform_(low, high)
                           for _ in range(2))  # fmt: skip
        result._array[...] = real._array + 1j * imaginary._array
        return result
    return result.uniform_(low, high)


__all__ = ["assert_allclose", "assert_close", "make_tensor"]

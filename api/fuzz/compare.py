"""What must agree between routes, and how closely.

How far rounding can move a result is measured, not guessed: the float64 run is repeated with every
value on the way off by as much as the narrowest dtype of the program rounds (`routes.reference`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .program import Program
from .routes import ROUTES, Observer, Outcome, Rounding, reference, run

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "complex64": 2.0**-23}
LARGEST = {"float16": 6e4}
RUNS = 8
# A route may differ by several times what was seen in a few runs, and by some roundings at least.
SPREADS, ROUNDINGS = 5.0, 64.0
SMALL_RESULT, SMALL_GRADIENT = 0.25, 4.0  # inside an op, too, values cancel; noise is not there


@dataclass(frozen=True)
class Difference:
    """Where two routes part: in which call, which value, how (`kind`), and what was seen."""

    route: str
    kind: str
    name: str
    call: int
    detail: str

    def alike(self, other: Difference | None) -> bool:
        """Is this the same fault, as far as one can tell?"""
        return other is not None and (self.route, self.kind) == (other.route, other.kind)

    def __str__(self) -> str:
        return f"{self.route}, call {self.call}, {self.name}: {self.kind}: {self.detail}"


@dataclass
class Bound:
    """The float64 value and how far each element may be from it."""

    value: np.ndarray
    margin: np.ndarray


def difference(program: Program) -> Difference | None:
    """The first disagreement between routes, or None."""
    outcomes = {route: run(program, route) for route in ROUTES}
    for route in ROUTES[1:]:
        for call, (expected, seen) in enumerate(zip(outcomes["eager"], outcomes[route])):
            worst = plain_difference(expected, seen, route, call)
            if worst is not None:
                return worst
    bounds, judges = measured(program)
    for route in ROUTES:
        for call, (expected, seen) in enumerate(zip(outcomes["eager"], outcomes[route])):
            worst = value_difference(expected, seen, bounds[call], route, call, judges)
            if worst is not None:
                return worst
    return None


def plain_difference(expected: Outcome, seen: Outcome, route: str, call: int) -> Difference | None:
    """Disagreement in errors, names, dtypes, shapes, strides and history."""
    if expected.error != seen.error and not only_eager(expected):
        detail = (f"{expected.error or 'no error'} {expected.message[:200]!r} eagerly, "
                  f"{seen.error or 'no error'} {seen.message[:300]!r} here")  # fmt: skip
        return Difference(route, "error " + seen.error, "the call", call, detail)
    if expected.error or seen.error:
        return None
    for name in sorted(expected.values.keys() | seen.values.keys()):
        if name not in expected.values or name not in seen.values:
            where = "only here" if name in seen.values else "only eagerly"
            return Difference(route, "presence", name, call, where)
        a, b = expected.values[name], seen.values[name]
        for kind, left, right in (
            ("dtype", a.dtype, b.dtype), ("shape", a.array.shape, b.array.shape),
            ("strides", a.strides, b.strides), ("history", a.history, b.history),
        ):  # fmt: skip
            if left != right:
                return Difference(route, kind, name, call, f"{left} eagerly, {right} here")
    return None


def only_eager(eager: Outcome) -> bool:
    """Is it an error that compiled code need not raise, as torch's compiler does not? Those of
    bookkeeping of writes in place (a graph has all its values), of values nobody uses, and of
    derivatives that torch writes with `-self`, of a bool beside floats (atan2(x > 0, x))."""
    known = ("modified by an inplace operation", "is a view and its base", "ZeroDivisionError",
             "Negation, the `-` operator, on a bool tensor")  # fmt: skip
    return any(words in eager.message for words in known)


def measured(program: Program) -> tuple[list[dict[str, Bound]], bool]:
    """Bounds for every float value of every call; can float64 judge eager?

    Not where a value did not fit its dtype, nor where halves gave other truths or integers: two
    that were rounded are often equal.
    """
    survey = Observer()
    reference(program, survey, wide=False)
    narrow, survey.discrete = survey.discrete, []
    dtypes = survey.dtypes | {i.dtype for i in program.inputs}
    if any(not d.startswith(("float", "bfloat", "complex")) for d in dtypes):
        dtypes.add("float32")  # what functions of integers give
    epsilon = max((EPSILON[d] for d in dtypes if d in EPSILON), default=2.0**-52)
    wide = not program.keeps_dtypes
    exact = reference(program, survey, wide)
    fresh = frozenset(survey.targets - survey.shared)
    observers = [Observer(4 * epsilon, seed, fresh) for seed in range(RUNS)]
    observers.append(Rounding(epsilon, fresh=fresh))
    noisy = [reference(program, observer, wide) for observer in observers]
    limit = min((LARGEST[d] for d in dtypes if d in LARGEST), default=1e37)
    bounds = []
    for call, outcome in enumerate(exact):
        others = [run_[call] for run_ in noisy]
        bounds.append(bounds_of(outcome, others, epsilon, survey.steepest))
    rounded_away = epsilon > EPSILON["float32"] and narrow != survey.discrete
    return bounds, survey.largest < limit and not rounded_away


def bounds_of(
    exact: Outcome, noisy: list[Outcome], epsilon: float, steepest: float
) -> dict[str, Bound]:
    """What sums of gradients lose beside the `steepest` one, noise need not show: at a singular
    point, steep paths that cancel are nowhere else."""
    found = {}
    for name, value in exact.values.items():
        others = [o.values[name].array for o in noisy if name in o.values]
        # a path or a shape that noise changes cannot be checked
        if len(others) < len(noisy) or any(o.shape != value.array.shape for o in others):
            continue
        gradient = name.startswith("gradient")
        least = max(SMALL_GRADIENT, steepest) if gradient else SMALL_RESULT
        found[name] = bound(value.array, others, epsilon, least)
    return found


def bound(value: np.ndarray, others: list[np.ndarray], epsilon: float, least: float) -> Bound:
    with np.errstate(all="ignore"):
        wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        spread = np.zeros(value.shape)
        for other in others:
            distance = np.abs(other.astype(wide.dtype) - wide)
            same = (other == value) | (np.isnan(other) & np.isnan(wide))
            spread = np.maximum(spread, np.where(same, 0.0, distance))
        spread = np.where(np.isnan(spread), np.inf, spread)
        scale = np.max(np.abs(wide[np.isfinite(wide)]), initial=least)
    floor = ROUNDINGS * epsilon * scale if value.dtype.kind in "fc" else 0.0
    return Bound(wide, SPREADS * spread + floor)


def value_difference(eager: Outcome, seen: Outcome, bounds: dict[str, Bound], route: str, call: int,
                     judges: bool) -> Difference | None:  # fmt: skip
    """Disagreement of elements: with eager, and of eager itself with float64."""
    if route == "eager" and not judges:
        return None
    for name, found in seen.values.items():
        limits = bounds.get(name)
        if limits is None or limits.value.shape != found.array.shape or name not in eager.values:
            continue
        expected = limits.value if route == "eager" else eager.values[name].array
        wrong = apart(found.array, expected, limits.margin, strict=route != "eager")
        if wrong.any():
            k = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
            detail = (f"element {list(k)} is {found.array[k]!r}, expected {expected[k]!r} within "
                      f"{limits.margin[k]:.3g}; {wrong.sum()} of {wrong.size} wrong")  # fmt: skip
            return Difference(route, "value", name, call, detail)
    return None


def apart(found: np.ndarray, expected: np.ndarray, margin: np.ndarray, strict: bool) -> np.ndarray:
    """Which elements differ by more than the margin? Where eager is not finite, float64 is no
    judge of it (`strict` False), but other routes must not be finite either."""
    wide = np.complex128 if "c" in (found.dtype.kind, expected.dtype.kind) else np.float64
    a, b = found.astype(wide), expected.astype(wide)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | ~np.isfinite(margin)
        close = np.abs(a - b) <= margin
    if wide is np.complex128:  # which part of an infinite product is NaN, nobody promises
        same |= ~np.isfinite(a) & ~np.isfinite(b)
    if not strict:
        same |= ~np.isfinite(a)
    return ~(same | close)

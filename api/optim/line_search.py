"""The strong Wolfe line search of LBFGS: bracket a step length, then zoom in."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

DECREASE, CURVATURE = 1e-4, 0.9


class Point(NamedTuple):
    """A step length with the loss, the gradient and the slope there."""

    t: float
    loss: float
    grad: Any
    slope: float


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """The minimum of the cubic through two points, within bounds."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t) if a.t != b.t else math.nan
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    first, last = (a, b) if a.t <= b.t else (b, a)
    below = last.slope - first.slope + 2 * d2
    if below == 0:
        return (low + high) / 2.0
    place = last.t - (last.t - first.t) * ((last.slope + d2 - d1) / below)
    return min(max(place, low), high)


class Search:
    """One line search: `evaluate(t)` gives loss and gradient at a step length."""

    def __init__(self, evaluate: Callable[[float], Any], direction: Any, start: Point, limit: int):
        self.evaluate, self.direction, self.start, self.limit = evaluate, direction, start, limit
        self.evaluations = 0

    def at(self, t: float) -> Point:
        loss, grad = self.evaluate(t)
        self.evaluations += 1
        return Point(t, loss, grad, float(grad.dot(self.direction)))

    def too_high(self, point: Point) -> bool:
        return point.loss > self.start.loss + DECREASE * point.t * self.start.slope

    def flat_enough(self, point: Point) -> bool:
        return abs(point.slope) <= -CURVATURE * self.start.slope

    def run(self, t: float, tolerance_change: float = 1e-9) -> Point:
        """The point the search settles on."""
        done, rounds, bracket = self.bracket(t)
        if done:
            return bracket[0]
        return self.zoom(bracket, rounds, tolerance_change)

    def bracket(self, t: float) -> tuple[bool, int, list[Point]]:
        """Lengthens the step until a minimum lies behind it."""
        before, here = self.start, self.at(t)
        rounds = 0
        while rounds < self.limit:
            if self.too_high(here) or (rounds > 1 and here.loss >= before.loss):
                return False, rounds, [before, here]
            if self.flat_enough(here):
                return True, rounds, [here]
            if here.slope >= 0:
                return False, rounds, [before, here]
            bounds = (here.t + 0.01 * (here.t - before.t), here.t * 10)
            t = cubic_minimum(before, here, bounds)
            before, here = here, self.at(t)
            rounds += 1
        return False, rounds, [self.start, here]

    def zoom(self, bracket: list[Point], rounds: int, tolerance_change: float) -> Point:
        """Shrinks the bracket around a point that satisfies both conditions."""
        size = float(self.direction.abs().max())
        low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
        stuck = False
        while rounds < self.limit:
            if abs(bracket[1].t - bracket[0].t) * size < tolerance_change:
                break
            t, stuck = self.inside(bracket, stuck)
            here = self.at(t)
            rounds += 1
            if self.too_high(here) or here.loss >= bracket[low].loss:
                bracket[high] = here
                low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
                continue
            done = self.flat_enough(here)
            if not done and here.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = here
            if done:
                break
        return bracket[low]

    def inside(self, bracket: list[Point], stuck: bool) -> tuple[float, bool]:
        """The next length to try: the cubic's minimum, kept off the ends if it clings to them."""
        t = cubic_minimum(*bracket)
        first, last = sorted(point.t for point in bracket)
        margin = 0.1 * (last - first)
        if min(last - t, t - first) >= margin:
            return t, False
        if stuck or t >= last or t <= first:
            return (last - margin if abs(t - last) < abs(t - first) else first + margin), False
        return t, True

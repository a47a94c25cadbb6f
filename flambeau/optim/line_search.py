"""A step length along a direction that meets the strong Wolfe conditions.

    f(t) <= f(0) + c1 t f'(0)        |f'(t)| <= c2 |f'(0)|

First steps grow until an interval surely holds such a point, then cubic interpolation shrinks the
interval (Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6).
"""

from collections.abc import Callable
from typing import NamedTuple

from flambeau.tensor import Tensor

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9
MOST_EVALUATIONS = 25
SHORTEST_MOVE = 1e-9


class Point(NamedTuple):
    """The objective at step length `t`: its value, gradient, and slope along the direction."""

    t: float
    value: float
    grad: Tensor
    slope: float


class LineSearch:
    """One search from `start` along `direction`; `evaluate(t)` gives value and gradient there."""

    def __init__(
        self, evaluate: Callable[[float], tuple[float, Tensor]], start: Point, direction: Tensor
    ) -> None:
        self.evaluate = evaluate
        self.start = start
        self.direction = direction
        self.evaluations = 0
        self.rounds = 0
        self.found = False

    def point(self, t: float) -> Point:
        """The objective at `t`, counted."""
        value, grad = self.evaluate(t)
        self.evaluations += 1
        return Point(t, value, grad, grad.dot(self.direction).item())

    def too_high(self, point: Point) -> bool:
        """Whether the decrease is too small for the length of the step."""
        start = self.start
        return point.value > start.value + SUFFICIENT_DECREASE * point.t * start.slope

    def flat_enough(self, point: Point) -> bool:
        """Whether the slope has fallen enough."""
        return abs(point.slope) <= -CURVATURE * self.start.slope

    def best(self, t: float) -> Point:
        """The accepted point, starting the search at length `t`."""
        bracket = self.bracket(t)
        return bracket[0] if len(bracket) == 1 else self.narrowed(*bracket)

    def bracket(self, t: float) -> list[Point]:
        """One point that is good already, or two with a good one between them."""
        previous, point = self.start, self.point(t)
        while self.rounds < MOST_EVALUATIONS:
            if self.too_high(point) or (self.rounds > 1 and point.value >= previous.value):
                return [previous, point]
            if self.flat_enough(point):
                return [point]
            if point.slope >= 0:
                return [previous, point]
            bounds = (point.t + 0.01 * (point.t - previous.t), point.t * 10)
            previous, point = point, self.point(cubic_minimum(previous, point, bounds))
            self.rounds += 1
        return [self.start, point]

    def narrowed(self, a: Point, b: Point) -> Point:
        """The best point found while the interval between `a` and `b` shrinks."""
        reach = self.direction.abs().max().item()
        low, high = (a, b) if a.value <= b.value else (b, a)
        stalled = False
        while not self.found and self.rounds < MOST_EVALUATIONS:
            if abs(high.t - low.t) * reach < SHORTEST_MOVE:
                break
            t, stalled = kept_inside(cubic_minimum(low, high), low.t, high.t, stalled)
            point = self.point(t)
            self.rounds += 1
            low, high = self.shrunk(low, high, point)
        return low

    def shrunk(self, low: Point, high: Point, point: Point) -> tuple[Point, Point]:
        """The new (low, high) after seeing `point` between them."""
        if self.too_high(point) or point.value >= low.value:
            return (low, point) if low.value <= point.value else (point, low)
        if self.flat_enough(point):
            self.found = True
        elif point.slope * (high.t - low.t) >= 0:
            high = low
        return point, high


def kept_inside(t: float, a: float, b: float, stalled: bool) -> tuple[float, bool]:
    """`t`, moved a tenth of the interval away from its end when it stays there twice."""
    left, right = min(a, b), max(a, b)
    margin = 0.1 * (right - left)
    if min(right - t, t - left) >= margin:
        return t, False
    if not (stalled or t >= right or t <= left):
        return t, True
    return (right - margin if abs(t - right) < abs(t - left) else left + margin), False


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """The minimum of the cubic with the values and slopes at `a` and `b`, clipped to `bounds`."""
    left, right = bounds or (min(a.t, b.t), max(a.t, b.t))
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return (left + right) / 2
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    discriminant = d1 * d1 - a.slope * b.slope
    if discriminant < 0:
        return (left + right) / 2
    d2 = discriminant**0.5
    bottom = b.slope - a.slope + 2 * d2
    if bottom == 0:
        return (left + right) / 2
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / bottom), left), right)

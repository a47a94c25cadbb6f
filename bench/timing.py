"""Times of two calls in alternation: short turns, the minimum of each.

A pause stands before each turn, so that spinning threads of the other side have gone to sleep.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

Call = Callable[[], object]
TURN_SECONDS, PAUSE_SECONDS = 0.04, 0.004


def turn(call: Call, clock: Callable[[], float], seconds: float = TURN_SECONDS) -> float:
    """The shortest time of a call in one turn."""
    time.sleep(PAUSE_SECONDS)
    call()
    best, end = math.inf, time.perf_counter() + seconds
    while True:
        start = clock()
        call()
        best = min(best, clock() - start)
        if time.perf_counter() > end:
            return best


def minima(
    calls: list[Call],
    rounds: int,
    seconds: float = TURN_SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """The shortest time of each call over `rounds` rounds of turns."""
    times = [[turn(call, clock, seconds) for call in calls] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))

"""A captured program at its site, in the form that its callers make worth while.

The general program tests every guard in every call. While it does, the objects it is called with
are observed; once they are found as they were left, the settled program takes over, which compares
words of memory instead. Places that change from call to call are left out of the next observation;
a change after many calls (the mode of a module, once an epoch) is only observed anew.
"""

from __future__ import annotations

import types
from typing import Any

from flambeau.capture import words
from flambeau.capture.capture import Captured
from flambeau.capture.observation import Observation
from flambeau.capture.programs import MISS, Settled

ROUNDS = 6
"""Observations in a row, with too few calls in between to be worth their price."""
MANY_CALLS = 16


class Entry:
    """A program and the way on from its break."""

    __slots__ = (
        "__weakref__",
        "bridge",
        "captured",
        "program",
        "rounds",
        "seen",
        "settled",
        "volatile",
    )

    def __init__(self, captured: Captured, bridge: types.CodeType | None):
        self.captured, self.bridge = captured, bridge
        self.seen: Observation | None = None
        self.settled: Settled | None = None
        self.volatile: frozenset = frozenset()
        self.rounds = 0
        self.program = captured.program if words.hold() is None else self.observing

    def observing(self, function: types.FunctionType, *values: Any) -> Any:
        """The general program, and a look at its objects before and after."""
        before, settled = self.seen, self.settled
        changed = self._changes(before, function, values) if before is not None else None
        result = self.captured.program(function, *values)
        if result is MISS:
            return result
        if changed is not None and not changed and before is not None:
            self._settle(before)
            return result
        if settled is not None and settled.calls >= MANY_CALLS:
            self.rounds = 0
        elif changed:
            self.volatile |= changed
        self._observe(function, values)
        return result

    def _changes(
        self, before: Observation, function: types.FunctionType, values: tuple
    ) -> frozenset:
        """Keys of the places that are not as they were."""
        now = self.captured.recipe.observed(self.volatile, function, values).facts()
        return frozenset(k for k, fact in before.facts().items() if now.get(k) != fact)

    def _observe(self, function: types.FunctionType, values: tuple) -> None:
        self.rounds += 1
        self.settled = None
        if self.rounds > ROUNDS:
            self.seen, self.program = None, self.captured.program
            return
        seen = self.seen = self.captured.recipe.observed(self.volatile, function, values)
        seen.forget_call(self._forget)
        self.program = self.observing

    def _settle(self, seen: Observation) -> None:
        """The objects are as they were after the last call, and the guards have held."""
        self.settled = Settled(self.captured.recipe, seen, self.observing)
        self.program = self.settled.program

    def _forget(self, _: Any) -> None:
        """An argument that the settled program was made for is gone."""
        self.seen = self.settled = None
        self.program = self.observing

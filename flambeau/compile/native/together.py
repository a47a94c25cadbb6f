"""Kernels of one program made by two threads: while LLVM works for one, the other writes text.

The second thread starts when the first kernel has to be generated; a program whose kernels all come
from the cache needs none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from flambeau.codegen.templates.tuning import is_wanted
from flambeau.compile.background import worker
from flambeau.core import logs
from flambeau.runtime import jit, pool

T = TypeVar("T")
R = TypeVar("R")


class Together(Generic[T, R]):
    """`make` applied to each part; results are in the order of the parts."""

    def __init__(self, make: Callable[[T], R], parts: list[T]):
        self.make, self.parts = make, parts
        self.results: list[Any] = [None] * len(parts)
        self.failed: dict[int, Exception] = {}
        self.places = iter(range(len(parts)))
        self.owner = threading.current_thread()
        self.helper: threading.Thread | None = None

    def run(self) -> list[R]:
        """Raises what the first part that fails raises."""
        alone = bool(logs.on) or is_wanted()  # logs are in order, and nobody disturbs the clock
        alone = alone or pool.available_cpus() < 2 or self.owner is worker().thread
        if not alone:
            jit.watchers.append(self.help)
        try:
            self.work()
        finally:
            if not alone:
                jit.watchers.remove(self.help)
            for _ in self.places:  # an interrupt has left some: nobody wants them now
                pass
            if self.helper is not None:
                self.helper.join()
        if self.failed:
            raise self.failed[min(self.failed)]
        return self.results

    def work(self) -> None:
        """Take parts until there are none; after a failure later parts do not matter."""
        for at in self.places:
            worker().rest()
            try:
                self.results[at] = self.make(self.parts[at])
            except Exception as error:
                self.failed[at] = error
            if self.failed:
                return

    def help(self) -> None:
        """Code has to be generated: start the second thread."""
        if self.helper is None and threading.current_thread() is self.owner:
            self.helper = threading.Thread(
                target=self.work, name="flambeau compile too", daemon=True
            )
            self.helper.start()

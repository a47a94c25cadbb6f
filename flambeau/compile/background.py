"""The background thread that makes programs, while calls go on with eager operations.

Whatever was called last is made first: a graph that only the first step of a training run needs
waits behind the graph of all other steps. The thread ends when nothing is wanted; it is a daemon,
so an interpreter that exits does not wait for it. A forked child has no such thread and starts its
own when a call asks for a program again.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from flambeau.runtime import jit

SWITCH_SECONDS = 0.5e-3
"""How long the thread may keep the interpreter from others that want it; Python's own 5 ms would
make an eager step of a hundred operations wait half a second."""

CACHED_SECONDS = 2.0
"""The longest that a call waits for code from the cache."""


class Wanted(Protocol):
    """Something that is made in the background."""

    def make(self) -> None:
        """Make it; does not raise, and keeps what went wrong."""


class Worker:
    """One thread, and the wanted that wait for it, the most wanted last."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.making = threading.RLock()
        self.waiting: dict[weakref.ref[Wanted], None] = {}
        self.busy: Wanted | None = None
        self.thread: threading.Thread | None = None
        self.closed = self.slow = False
        self.rests: dict[int, int] = {}

    def ask(self, wanted: Wanted) -> None:
        """Make `wanted` soon, before all that others have asked for."""
        with self.changed:
            if self.busy is wanted or self.closed:
                return
            key = weakref.ref(wanted)
            self.waiting.pop(key, None)
            self.waiting[key] = None
            if self.thread is None:
                self.thread = threading.Thread(
                    target=self.run, name="flambeau compile", daemon=True
                )
                self.thread.start()

    def run(self) -> None:
        with switching():
            while self.next():
                assert self.busy is not None
                self.busy.make()

    @contextmanager
    def resting(self, wanted: Wanted) -> Iterator[None]:
        """While others compute what `wanted` is to compute, the thread stays where it is with it:
        the first call has the machine for itself."""
        with self.changed:
            self.rests[id(wanted)] = self.rests.get(id(wanted), 0) + 1
        try:
            yield
        finally:
            with self.changed:
                self.rests[id(wanted)] -= 1
                if not self.rests[id(wanted)]:
                    del self.rests[id(wanted)]
                self.changed.notify_all()

    def rest(self) -> None:
        """Where the thread is between two kernels."""
        if self.rests and threading.current_thread() is self.thread:
            with self.changed:
                self.changed.wait_for(lambda: id(self.busy) not in self.rests)

    def next(self) -> bool:
        """Take what is wanted most; the thread is over where there is nothing."""
        with self.changed:
            self.busy, self.slow = None, False
            while self.waiting and self.busy is None:
                self.busy = self.waiting.popitem()[0]()
            if self.busy is None:
                self.thread = None
            self.changed.notify_all()
            return self.busy is not None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is wanted; False where the timeout, in seconds, came first."""
        with self.changed:
            return self.changed.wait_for(lambda: self.thread is None, timeout)

    def wait_for(self, wanted: Wanted, patience: float) -> None:
        """Wait until `wanted` is made: as long as its code comes from the cache, or `patience`
        seconds where code has to be generated."""
        start, key = time.monotonic(), weakref.ref(wanted)

        def is_made() -> bool:
            return self.busy is not wanted and key not in self.waiting

        def is_slow() -> bool:
            return self.slow or (self.busy is not None and self.busy is not wanted)

        with self.changed:
            self.changed.wait_for(lambda: is_made() or is_slow(), CACHED_SECONDS)
            self.changed.wait_for(is_made, start + patience - time.monotonic())

    def is_generating(self) -> None:
        """The thread is about to generate code."""
        if threading.current_thread() is self.thread:
            with self.changed:
                self.slow = True
                self.changed.notify_all()

    def forget(self) -> None:
        """Nothing is wanted any more, but for what is being made."""
        with self.changed:
            self.waiting.clear()

    def close(self) -> None:
        """At exit: LLVM must not be at work while the process takes its libraries down."""
        self.closed = True
        self.forget()
        jit.stop()


@contextmanager
def switching() -> Iterator[None]:
    """Threads take turns quickly."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    mine = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == mine:  # else the program has set its own meanwhile
            sys.setswitchinterval(before)


_worker: list[Worker] = [Worker()]


def worker() -> Worker:
    """The worker of this process."""
    return _worker[0]


def _renew() -> None:
    _worker[0] = Worker()


os.register_at_fork(after_in_child=_renew)
jit.watchers.append(lambda: worker().is_generating())
atexit.register(lambda: worker().close())

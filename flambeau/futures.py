"""`torch.futures`: results that may come later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from flambeau.core.errors import OpError, complaint
from flambeau.core.nearest import missing_name

T = TypeVar("T")


class Future(Generic[T]):
    """A result that one thread sets and others wait for."""

    def __init__(self, *, devices: Any = None):
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Is there a result or an error?"""
        return self._done.is_set()

    def wait(self) -> T:
        """The result, when it is there; an error is raised here."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def value(self) -> T:
        """The result, which must be there."""
        if not self.done():
            raise OpError(complaint("Future.value", "the future must be done", {}, "Call wait()."))
        return self.wait()

    def set_result(self, result: T) -> None:
        """Give it its result, once."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give it an error, which `wait` raises."""
        self._finish(None, result)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise OpError(complaint("Future.set_result", "the future must not be done yet"))
            self._result, self._error = result, error
            self._done.set()
        for callback in self._callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Call `callback(self)` when it is done."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], Any]) -> Future:
        """The future of what `callback(self)` returns."""
        following: Future = Future()

        def call(finished: Future) -> None:
            try:
                following.set_result(callback(finished))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(call)
        return following


def collect_all(futures: Iterable[Future]) -> Future[list[Future]]:
    """The future of the list of futures, done when all are."""
    waiting = list(futures)
    collected: Future[list[Future]] = Future()
    lock, left = threading.Lock(), [len(waiting)]

    def one(finished: Future) -> None:
        with lock:
            left[0] -= 1
        if not left[0]:
            collected.set_result(waiting)

    for future in waiting:
        future.add_done_callback(one)
    if not waiting:
        collected.set_result(waiting)
    return collected


def wait_all(futures: Iterable[Future]) -> list:
    """The results of all."""
    return [future.wait() for future in collect_all(futures).wait()]


__getattr__ = missing_name(__name__)

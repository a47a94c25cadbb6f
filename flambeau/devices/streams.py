"""Streams and events on the CPU, where work is done when a call returns: they order nothing."""

from __future__ import annotations

import time
from typing import Any

from flambeau.core.device import CPU
from flambeau.core.device import device as Device


class Stream:
    """A queue of work. On the CPU there is one, and it is always empty."""

    def __init__(self, device: Any = None, *, priority: int = 0, **kwargs: Any):
        self.device = CPU if device is None else Device(device)
        self.priority = priority

    def wait_stream(self, stream: Stream) -> None:
        """Wait for another stream's work: it is done."""

    def wait_event(self, event: Event) -> None:
        """Wait for an event: it has happened."""

    def synchronize(self) -> None:
        """Wait for the work: it is done."""

    def query(self) -> bool:
        """Is the work done? Yes."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """An event that has happened."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


class Event:
    """A moment; `elapsed_time` is in milliseconds between two of them."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False, **kwargs: Any):
        self.device = CPU if device is None else Device(device)
        self.enable_timing = enable_timing
        self.moment: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """It happens now."""
        self.moment = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Wait for it: it has happened."""

    def synchronize(self) -> None:
        """Wait for it: it has happened."""

    def query(self) -> bool:
        """Has it happened? Yes."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to the other."""
        if self.moment is None or end_event.moment is None:
            raise ValueError("elapsed_time: both events must be recorded. Call record() first.")
        return (end_event.moment - self.moment) * 1e3

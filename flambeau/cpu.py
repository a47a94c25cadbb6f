"""`torch.cpu`: the CPU, spoken to as if it were an accelerator."""

from __future__ import annotations

import importlib
from typing import Any

from flambeau.core.nearest import missing_name
from flambeau.devices.streams import Event, Stream

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]

_stream = Stream()


class StreamContext:
    """`with cpu.stream(s)`: nothing changes, work on the CPU is done when a call returns."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def stream(stream: Stream) -> StreamContext:
    """The context in which `stream` is current."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The CPU's one stream."""
    return _stream


def current_device() -> str:
    """The name of the CPU: "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Make a CPU the current one: there is one."""


def device_count() -> int:
    """How many CPUs there are, seen as one device: 1."""
    return 1


def is_available() -> bool:
    """Is there a CPU? Yes."""
    return True


is_initialized = is_available


def synchronize(device: Any = None) -> None:
    """Wait for the CPU's work: it is done."""


_missing = missing_name(__name__)


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module("flambeau.amp.cpu")
    return _missing(name)

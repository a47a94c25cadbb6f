"""Which public functions a block calls, how often, and how long they take on the CPU."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flambeau.core.nearest import missing_name
from flambeau.tensor.overrides import TorchFunctionMode
from flambeau.tensor.tensor import from_array

_COLUMNS = ("self_cpu_time_total", "cpu_time_total", "count", "key")


class FunctionEvent:
    """The calls of one function or kernel, or the blocks of one name; times in microseconds.

    Kernels of compiled programs have `flops`, floating-point operations, and `nbytes`, what they
    read and write at least once; both in total.
    """

    def __init__(self, key: str):
        self.key = self.name = key
        self.count, self.cpu_time_total, self.self_cpu_time_total = 0, 0.0, 0.0
        self.flops = self.nbytes = 0

    def add(self, spent: float, alone: float, flops: int = 0, nbytes: int = 0) -> None:
        """One call more, of `spent` microseconds, `alone` of them outside of calls below."""
        self.count += 1
        self.cpu_time_total += spent
        self.self_cpu_time_total += alone
        self.flops += flops
        self.nbytes += nbytes

    @property
    def cpu_time(self) -> float:
        """Microseconds a call."""
        return self.cpu_time_total / max(self.count, 1)

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.key}: {self.count} calls, {self.cpu_time_total:.0f} us>"


class EventList(list):
    """Events, printable as a table."""

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, **options: Any
    ) -> str:
        """One line an event, the largest in `sort_by` first."""
        key = sort_by if sort_by in _COLUMNS else "self_cpu_time_total"
        rows = sorted(self, key=lambda event: getattr(event, key), reverse=True)[:row_limit]
        width = max([len(row.key) for row in rows], default=4)
        rated = any(row.nbytes for row in rows)
        head = f"{'Name':<{width}}  {'Calls':>8}  {'Self CPU':>12}  {'CPU total':>12}"
        lines = [head + (f"  {'GFLOP/s':>8}  {'GB/s':>7}  {'of peak':>7}" if rated else "")]
        for row in rows:
            mine, total = _time(row.self_cpu_time_total), _time(row.cpu_time_total)
            line = f"{row.key:<{width}}  {row.count:>8}  {mine:>12}  {total:>12}"
            lines.append(line + (_rates(row) if row.nbytes else ""))
        return "\n".join(lines)

    def total_average(self) -> FunctionEvent:
        """All of them as one."""
        total = FunctionEvent("Total")
        for event in self:
            total.count += event.count
            total.self_cpu_time_total += event.self_cpu_time_total
        total.cpu_time_total = total.self_cpu_time_total
        return total

    __str__ = table


def _rates(event: FunctionEvent) -> str:
    """Speed, and the larger of its shares in what products and copies reach on this machine."""
    nanoseconds = max(event.self_cpu_time_total, 1e-3) * 1e3
    flops, traffic = event.flops / nanoseconds, event.nbytes / nanoseconds
    share = max(flops / peaks()[0], traffic / peaks()[1])
    return f"  {flops:8.1f}  {traffic:7.1f}  {share:7.0%}"


@functools.cache
def peaks() -> tuple[float, float]:
    """(GFLOP/s of a product of 1024 x 1024 matrices, GB/s of a copy of 64 MiB), measured once."""
    a, b, source, target = (
        from_array(np.ones(shape, np.float32)) for shape in [(1024, 1024)] * 2 + [1 << 24] * 2
    )
    product, copy = (min(_seconds(run) for _ in range(4)) for run in (
        lambda: a @ b, lambda: target.copy_(source)))
    return 2e-9 * 1024**3 / product, 8e-9 * (1 << 24) / copy


def _seconds(run: Callable) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _time(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


class Recorder(TorchFunctionMode):
    """Times every public call made inside, and the named blocks."""

    def __init__(self) -> None:
        self.events: dict[str, FunctionEvent] = {}
        self.inner = [0.0]  # time spent in calls below each open one
        self.spans: list[tuple[str, float, float, int, dict[str, int]]] = []  # in order of ends

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with self.timed(getattr(func, "__name__", str(func))):
            return func(*args, **(kwargs or {}))

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count a call of `name` and its time."""
        self.inner.append(0.0)
        start = time.perf_counter()
        try:
            yield
        finally:
            end = time.perf_counter()
            below = self.inner.pop()
            self.inner[-1] += (end - start) * 1e6
            self.add(name, start, end, below)

    def add(self, name: str, start: float, end: float, below: float = 0.0, **work: int) -> None:
        """A call of `name` from `start` to `end`, `below` microseconds of it in calls below."""
        spent = (end - start) * 1e6
        self.events.setdefault(name, FunctionEvent(name)).add(spent, spent - below, **work)
        self.spans.append((name, start, spent, threading.get_ident(), work))


recording: list[Recorder] = []


def kernel(name: str, flops: int, nbytes: int) -> Callable[[float, float], None]:
    """A function that tells every open profile of one run of a kernel: (start, end) in seconds."""

    def report(start: float, end: float) -> None:
        for recorder in recording:
            recorder.inner[-1] += (end - start) * 1e6
            recorder.add(name, start, end, flops=flops, nbytes=nbytes)

    return report


class profile:
    """`with profile() as prof:` ... `print(prof.key_averages().table())`."""

    def __init__(self, enabled: bool = True, **options: Any):
        self.enabled = enabled
        self.recorder = Recorder()
        self.start_time = self.total = 0.0

    def __enter__(self) -> profile:
        if self.enabled:
            recording.append(self.recorder)
            self.recorder.__enter__()
        self.start_time = time.perf_counter()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.total = (time.perf_counter() - self.start_time) * 1e6
        if self.enabled:
            self.recorder.__exit__(*exc)
            recording.remove(self.recorder)

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """One event a function or named block."""
        return EventList(self.recorder.events.values())

    function_events = property(key_averages)
    events = key_averages

    def table(self, sort_by: str | None = None, **options: Any) -> str:
        """The events as text."""
        return self.key_averages().table(sort_by, **options)

    def total_average(self) -> FunctionEvent:
        """All events as one."""
        return self.key_averages().total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Write every call as JSON that trace viewers open."""
        import json

        spans = self.recorder.spans
        first = min((start for _, start, *_ in spans), default=0.0)
        rows = [
            {"name": name, "ph": "X", "pid": 0, "tid": thread, "ts": (start - first) * 1e6,
             "dur": spent, "args": work}
            for name, start, spent, thread, work in spans
        ]
        with open(path, "w") as file:
            json.dump({"traceEvents": rows}, file)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all functions."""
        return self.total_average().self_cpu_time_total


class record_function:
    """A named block (or, as a decorator, function) in the profile around it."""

    def __init__(self, name: str, args: str | None = None):
        self.name = name
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        timed = [recorder.timed(self.name) for recorder in recording]
        for block in timed:
            block.__enter__()
        self._open.append(timed)
        return self

    def __exit__(self, *exc: Any) -> None:
        for block in reversed(self._open.pop()):
            block.__exit__(*exc)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return call


class emit_nvtx:
    """Marks for NVIDIA's profiler, which there is none of: nothing happens."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled = enabled

    def __enter__(self) -> emit_nvtx:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


emit_itt = emit_nvtx


def kineto_available() -> bool:
    """Is PyTorch's profiling library there? No."""
    return False


__getattr__ = missing_name(__name__)

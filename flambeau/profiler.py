"""`torch.profiler`: times of functions and named blocks over the steps of a loop."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from flambeau.autograd import profiler as _profiler
from flambeau.autograd.profiler import kineto_available as kineto_available
from flambeau.autograd.profiler import record_function as record_function
from flambeau.core.absence import refused_function
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.core.nearest import missing_name


class ProfilerActivity(IntEnum):
    """What is looked at. flambeau's work is on the CPU."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class ProfilerAction(IntEnum):
    """What a schedule says about a step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities() -> set[ProfilerActivity]:
    """The CPU."""
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Skip, wait, warm up, record `active` steps and hand over; again and again, or `repeat`
    times."""
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        must = "steps must not be negative, and active must be positive"
        raise ValueRangeError(complaint("profiler.schedule", must, {"active": active}))
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        at = step - skip_first + (wait if skip_first_wait else 0)
        if step < skip_first or (repeat and at >= repeat * cycle):
            return ProfilerAction.NONE
        at %= cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        last = at == cycle - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class profile(_profiler.profile):
    """A profile of the steps that `schedule` chooses; `on_trace_ready(self)` after each cycle."""

    def __init__(
        self,
        *,
        activities: Any = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        **options: Any,
    ):
        super().__init__()
        self.schedule, self.on_trace_ready = schedule or _always, on_trace_ready
        self.step_num = 0
        self._running = False

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with step 0."""
        self._follow(self.schedule(self.step_num))

    def stop(self) -> None:
        """End, and hand over what was recorded."""
        recorded = self._running
        self._follow(ProfilerAction.NONE)
        if recorded and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """The next step of the loop begins."""
        saving = self.schedule(self.step_num) is ProfilerAction.RECORD_AND_SAVE
        if saving:
            self.stop()
            self.recorder = _profiler.Recorder()
        self.step_num += 1
        self._follow(self.schedule(self.step_num))

    def _follow(self, action: ProfilerAction) -> None:
        recording = action >= ProfilerAction.RECORD
        if recording and not self._running:
            super().__enter__()
        elif self._running and not recording:
            super().__exit__(None, None, None)
        self._running = recording


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An `on_trace_ready` that writes a JSON file for every cycle into a folder."""
    from pathlib import Path

    def write(finished: profile) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{worker_name or 'worker'}.{finished.step_num}.trace.json"
        finished.export_chrome_trace(str(folder / name))

    return write


ExecutionTraceObserver = refused_function(
    "profiler.ExecutionTraceObserver", "execution traces are not written", "Use profile."
)

__getattr__ = missing_name(__name__)

"""`torch.multiprocessing`: Python's multiprocessing, with `spawn`.

Tensors sent to another process are copied; `share_memory_()` shares with processes that are forked.
"""

from __future__ import annotations

import multiprocessing as _processes
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing import connection as _connection
from typing import Any

from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.core.nearest import missing_name

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = ["file_descriptor"]


class ProcessException(OpError):
    """A spawned process ended with an error; `error_index` is its number."""

    def __init__(self, text: str, error_index: int = 0, pid: int | None = None):
        super().__init__(text)
        self.error_index, self.pid = error_index, pid


class ProcessRaisedException(ProcessException):
    """A spawned process raised; the text holds its traceback."""


class ProcessExitedException(ProcessException):
    """A spawned process was killed, or left with an exit code."""


def _run(fn: Callable, index: int, args: tuple, errors: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback

        errors.put(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """The processes that `start_processes` started."""

    def __init__(self, processes: list[Any], errors: list[Any]):
        self.processes, self._errors = processes, errors

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(p.pid) for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one ends; True if all have ended. An error in one ends the others, and is
        raised here."""
        waiting = [p.sentinel for p in self.processes if p.exitcode is None]
        if waiting:  # else all have ended since they were last looked at
            _connection.wait(waiting, timeout)
        failed = next((i for i, p in enumerate(self.processes) if p.exitcode), None)
        if failed is None:
            return all(p.exitcode == 0 for p in self.processes)
        for p in self.processes:
            if p.is_alive():
                p.terminate()
            p.join(grace_period)
        raise self._failure(failed)

    def _failure(self, index: int) -> ProcessException:
        process, errors = self.processes[index], self._errors[index]
        if not errors.empty():
            text = f"-- Process {index} terminated with the following error:\n{errors.get()}"
            return ProcessRaisedException(text, index, process.pid)
        text = f"process {index} terminated with exit code {process.exitcode}"
        return ProcessExitedException(text, index, process.pid)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run fn(i, *args) in `nprocs` processes; the first error ends them all and is raised."""
    context: Any = _processes.get_context(start_method)
    processes, queues = [], []
    for index in range(nprocs):
        errors = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, index, args, errors), daemon=daemon)
        process.start()
        processes.append(process)
        queues.append(errors)
    started = ProcessContext(processes, queues)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` by spawning."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


def get_all_sharing_strategies() -> set[str]:
    """How PyTorch can share memory."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """What was set."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Kept, and without effect."""
    if new_strategy not in _STRATEGIES:
        must = f"the strategy must be one of {sorted(_STRATEGIES)}"
        raise ValueRangeError(complaint("set_sharing_strategy", must, {"got": new_strategy}))
    _strategy[0] = new_strategy


__getattr__ = missing_name(__name__)

"""The worker's side of a DataLoader: answers tasks with batches, in a process or in a thread.

A task is `(epoch, number, indices)`; its reply `(epoch, number, outcome)`, where the outcome is
`(BATCH, batch)`, `(END, None)` or `(ERROR, Failure)`. Every task gets exactly one reply.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau.core.errors import OpError, complaint
from flambeau.data.failure import Failure
from flambeau.data.fetch import MapReader, StreamReader
from flambeau.data.seeds import Streams, seed_process

BATCH, END, ERROR = range(3)

Outcome = tuple[int, Any]


class WorkerInfo:
    """What `get_worker_info()` gives inside a worker.

    `id`, `num_workers`, `seed`, `dataset` (this worker's copy, or the shared one in a thread),
    `rng` (a thread's own generators `rng.random`, `rng.numpy`, `rng.torch`; None in a process,
    which has the global ones to itself) and `worker_method`.
    """

    def __init__(self, **facts: Any):
        self.__dict__.update(facts)

    def __setattr__(self, name: str, value: Any) -> None:
        raise OpError(complaint("WorkerInfo", "Cannot assign attributes to WorkerInfo objects",
                                dict(attribute=name)))

    def __repr__(self) -> str:
        return f"WorkerInfo({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"


_thread = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """Facts about the DataLoader worker that runs this code; None in the program itself."""
    return getattr(_thread, "info", None)


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a worker must know, the same for all workers of a loader."""

    dataset: Any
    iterable: bool
    batched: bool
    collate_fn: Callable
    drop_last: bool
    init_fn: Callable[[int], Any] | None
    base_seed: int
    num_workers: int

    def reader(self) -> MapReader | StreamReader:
        kind = StreamReader if self.iterable else MapReader
        return kind(self.dataset, self.batched, self.collate_fn, self.drop_last)


class Worker:
    """Answers tasks. Nothing that the user's code raises gets past `outcome`."""

    def __init__(self, job: Job, number: int, method: str):
        self.job = job
        self.number = number
        self.method = method
        self.epoch = -1
        self.reader: Any = None
        self.ended = False
        self.unready = self._attempt(self._prepare)  # a failed start is told with the first reply

    def _prepare(self) -> Outcome | None:
        in_thread = self.method == "thread"
        if not in_thread:
            seed_process(self.job.base_seed, self.number)
        _thread.info = WorkerInfo(
            id=self.number,
            num_workers=self.job.num_workers,
            seed=self.job.base_seed + self.number,
            dataset=self.job.dataset,
            rng=Streams(self.job.base_seed, self.number) if in_thread else None,
            worker_method="thread" if in_thread else "multiprocessing",
        )
        if self.job.init_fn is not None:
            self.job.init_fn(self.number)
        return None

    def outcome(self, epoch: int, indices: Any) -> Outcome:
        if self.unready is not None:
            failed, self.unready = self.unready, None
            return failed
        if epoch != self.epoch:
            self.epoch, self.reader, self.ended = epoch, None, False
        if self.ended:
            return END, None
        return self._attempt(lambda: self._read(indices))  # type: ignore[return-value]

    def _read(self, indices: Any) -> Outcome:
        if self.reader is None:
            self.reader = self.job.reader()
        try:
            return BATCH, self.reader(indices)
        except StopIteration:
            if not self.job.iterable:
                raise
            self.ended = True
            return END, None

    def _attempt(self, action: Callable[[], Outcome | None]) -> Outcome | None:
        try:
            return action()
        except Exception as error:
            return ERROR, Failure(error, self.where)

    @property
    def where(self) -> str:
        kind = "thread" if self.method == "thread" else "process"
        return f"DataLoader worker {kind} {self.number}"

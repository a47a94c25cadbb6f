"""Iterators of a DataLoader: one reads in place, one keeps workers busy ahead of the program.

Both draw the epoch's base seed first, before the sampler draws anything: PyTorch's order.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Self

from flambeau.data.seeds import drawn_seed
from flambeau.data.worker import BATCH, END, ERROR, Job

_DONE = object()


class LoaderIterator:
    """What the two kinds share: counting, pinning, and the sampler's iterator."""

    def __init__(self, loader: Any):
        self.loader = loader
        self.base_seed = drawn_seed(loader.generator)
        self._restart()

    def _restart(self) -> None:
        self.indices = iter(self.loader._index_sampler)
        self.yielded = 0

    def __iter__(self) -> Self:
        return self

    def __len__(self) -> int:
        return len(self.loader._index_sampler)

    def _job(self) -> Job:
        loader = self.loader
        return Job(loader.dataset, loader._iterable, loader._batched, loader.collate_fn,
                   loader.drop_last, loader.worker_init_fn, self.base_seed, loader.num_workers)

    def _delivered(self, batch: Any) -> Any:
        self.yielded += 1
        self.loader._check_length(self.yielded)
        return self.loader._pin(batch)


class SerialIterator(LoaderIterator):
    """Reads each batch when it is asked for."""

    def __init__(self, loader: Any):
        super().__init__(loader)
        self.reader = self._job().reader()

    def __next__(self) -> Any:
        return self._delivered(self.reader(next(self.indices)))


class PrefetchIterator(LoaderIterator):
    """Hands tasks to workers ahead of time and puts their replies in order.

    Task k goes to the next worker in turn, so which worker reads what depends on nothing but k.
    A worker whose stream has ended gets no more tasks; its open tasks come back as END.
    """

    def __init__(self, loader: Any):
        super().__init__(loader)
        self.workers = _workers(loader, self._job())
        # Not a __del__: a finalizer also runs at the interpreter's exit.
        self._finalizer = weakref.finalize(self, self.workers.close)
        self.epoch = 0
        self._start_epoch()

    def restart(self) -> None:
        """Begin the next epoch with the same workers; what is still under way will be ignored."""
        self._restart()
        self.epoch += 1
        self._start_epoch()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def close(self) -> None:
        self._finalizer()

    def _start_epoch(self) -> None:
        workers = range(self.loader.num_workers)
        self.turns = itertools.cycle(workers)
        self.open_tasks: dict[int, int] = {}  # task -> worker, those not answered yet
        self.replies: dict[int, Any] = {}  # task -> outcome, those not delivered yet
        self.active = set(workers)
        self.sent = 0
        self.next_task = 0
        for _ in range(max(1, self.loader.prefetch_factor * len(workers))):
            self._send_task()

    def _send_task(self) -> None:
        worker = self._next_worker()
        if worker is None:
            return
        indices = next(self.indices, _DONE)
        if indices is _DONE:
            return
        number, self.sent = self.sent, self.sent + 1
        self.open_tasks[number] = worker
        self.workers.send(worker, self.epoch, number, indices)

    def _next_worker(self) -> int | None:
        if not self.active:
            return None
        if self.loader.in_order:
            return next(w for w in self.turns if w in self.active)
        load = list(self.open_tasks.values())
        return min(self.active, key=load.count)

    def __next__(self) -> Any:
        if self.closed:
            raise StopIteration
        while self._outstanding():
            number = self._deliverable()
            if number is None:
                self._wait()
                continue
            kind, value = self.replies.pop(number)
            if self.loader.in_order:
                self.next_task += 1
            self._send_task()
            if kind == ERROR:
                value.reraise()
            if kind == BATCH:
                return self._delivered(value)
        if not self.loader.persistent_workers:
            self.close()
        raise StopIteration

    def _outstanding(self) -> bool:
        return bool(self.open_tasks or self.replies)

    def _deliverable(self) -> int | None:
        """The task whose reply is due, if that is here."""
        if self.loader.in_order:
            return self.next_task if self.next_task in self.replies else None
        return next(iter(self.replies), None)

    def _wait(self) -> None:
        try:
            for epoch, number, outcome in self.workers.receive(self.loader.timeout):
                if epoch != self.epoch:
                    continue
                worker = self.open_tasks.pop(number)
                self.replies[number] = outcome
                if outcome[0] == END:
                    self.active.discard(worker)
        except BaseException:  # a dead worker, a timeout, Ctrl-C: replies may be lost
            self.close()
            raise


def _workers(loader: Any, job: Job) -> Any:
    if loader.worker_type == "thread":
        from flambeau.data.threads import ThreadWorkers

        return ThreadWorkers(job)
    from flambeau.data.processes import ProcessWorkers

    return ProcessWorkers(job, loader._start_context(), loader.prefetch_factor)

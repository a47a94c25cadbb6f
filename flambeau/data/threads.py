"""Worker threads: no processes to start and nothing to pickle; the dataset is shared.

They overlap what releases the interpreter lock: files, decoding, NumPy. Faces `iterate.py` exactly
as `processes.py` does.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from typing import Any

from flambeau.data.processes import Reply, timed_out
from flambeau.data.worker import Job, Worker

_GRACE = 2.0  # seconds that a thread may take to finish its sample; it cannot be ended by force


class ThreadWorkers:
    """The program's side of all worker threads of one iterator."""

    def __init__(self, job: Job):
        self.owner = os.getpid()
        self.outbox: queue.SimpleQueue = queue.SimpleQueue()
        self.inboxes: list[queue.SimpleQueue] = []
        self.threads: list[threading.Thread] = []
        for number in range(job.num_workers):
            inbox: queue.SimpleQueue = queue.SimpleQueue()
            thread = threading.Thread(target=_serve, args=(job, number, inbox, self.outbox),
                                      daemon=True, name=f"DataLoader worker {number}")
            thread.start()
            self.inboxes.append(inbox)
            self.threads.append(thread)

    def send(self, worker: int, epoch: int, number: int, indices: Any) -> None:
        self.inboxes[worker].put((epoch, number, indices))

    def receive(self, timeout: float) -> Iterator[Reply]:
        """The next reply. `timeout` in seconds, 0 for no limit."""
        try:
            yield self.outbox.get(timeout=timeout or None)
        except queue.Empty:
            raise timed_out(timeout) from None

    def close(self) -> None:
        """End all threads. Calling it again, or in a forked child, does nothing."""
        if os.getpid() != self.owner:
            return
        for inbox in self.inboxes:
            inbox.put(None)
        for thread in self.threads:
            if thread is not threading.current_thread():  # the collector may run in a worker
                thread.join(_GRACE)
        self.inboxes, self.threads = [], []


def _serve(job: Job, number: int, inbox: queue.SimpleQueue, outbox: queue.SimpleQueue) -> None:
    worker = Worker(job, number, "thread")
    while (task := inbox.get()) is not None:
        epoch, index, indices = task
        outbox.put((epoch, index, worker.outcome(epoch, indices)))

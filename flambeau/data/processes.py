"""Worker processes: starting, feeding, hearing from, and ending them.

Each worker has one connection of its own, so a worker that dies harms no other and is noticed at
once: its end closes. Nothing here can outlive the program: a worker whose parent is gone exits.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from multiprocessing import connection as links
from typing import Any

from flambeau.core.errors import OpError, complaint
from flambeau.data.failure import Failure
from flambeau.data.transport import Receiver, Sender
from flambeau.data.worker import ERROR, Job, Worker
from flambeau.runtime import pool

_GRACE = 2.0  # seconds that a worker may take to finish its sample when it is told to stop
_ORPHAN_CHECK = 5.0  # seconds between two looks at whether the parent is still there

# A forked worker inherits the program's ends of earlier workers' connections. It must close them,
# or those workers would not notice the end of the program.
_program_ends: weakref.WeakSet = weakref.WeakSet()

Reply = tuple[int, int, Any]


class ProcessWorkers:
    """The program's side of all worker processes of one iterator."""

    def __init__(self, job: Job, context: Any, prefetch: int):
        self.owner = os.getpid()
        self.processes: list[Any] = []
        self.receivers: list[Receiver] = []
        try:
            for number in range(job.num_workers):
                self._start(job, context, number, prefetch)
        except BaseException as error:
            self.close()
            error.add_note("DataLoader: worker processes must start. What they are given (dataset, "
                           "collate_fn, worker_init_fn) must be picklable unless they are forked: "
                           "define it at the top level of a module, or use worker_type='thread'.")
            raise

    def _start(self, job: Job, context: Any, number: int, prefetch: int) -> None:
        ours, theirs = context.Pipe(duplex=True)
        _program_ends.add(ours)
        self.receivers.append(Receiver(ours, most_free=4 * (prefetch + 1)))
        process = context.Process(target=serve, args=(theirs, job, number), daemon=True,
                                  name=f"DataLoader worker {number}")
        try:
            with warnings.catch_warnings(), _without_ctrl_c():
                # Python warns of forking while threads run; those of NumPy and flambeau are made
                # for it.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
        finally:
            theirs.close()
        self.processes.append(process)

    def send(self, worker: int, epoch: int, number: int, indices: Any) -> None:
        receiver = self.receivers[worker]
        task = (epoch, number, indices, *receiver.segments.give_back())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # receive() tells of it
            receiver.connection.send(task)

    def receive(self, timeout: float) -> Iterator[Reply]:
        """The replies that have arrived, waiting for one. `timeout` in seconds, 0 for no limit."""
        sources = {r.connection: i for i, r in enumerate(self.receivers)}
        sentinels = {p.sentinel: i for i, p in enumerate(self.processes)}
        ready = links.wait([*sources, *sentinels], timeout or None)
        if not ready:
            raise timed_out(timeout)
        speaking = [sources[r] for r in ready if r in sources]
        for worker in speaking:
            yield self._hear(worker)
        for worker in [sentinels[r] for r in ready if r in sentinels]:
            if worker not in speaking and not self.receivers[worker].connection.poll():
                raise self._death(worker)

    def _hear(self, worker: int) -> Reply:
        try:
            return self.receivers[worker].receive()
        except (EOFError, ConnectionResetError):
            raise self._death(worker) from None

    def _death(self, worker: int) -> OpError:
        process = self.processes[worker]
        process.join(_GRACE)
        code = process.exitcode
        how = f"exit code {code}"
        if code is not None and code < 0:
            how = f"killed by {signal.Signals(-code).name}"
        hint = ("The system may be out of memory: use fewer workers or smaller batches."
                if code == -signal.SIGKILL else "Its own output may tell why; "
                "num_workers=0 shows the error in this process.")
        return OpError(complaint(
            "DataLoader", "workers must live until the loader is done with them",
            dict(worker=worker, exit=repr(how)),
            f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly. {hint}"))

    def close(self) -> None:
        """End all workers and wait for them. Calling it again, or in a forked child, is nothing."""
        if os.getpid() != self.owner or not self.receivers:
            return
        for receiver in self.receivers:
            with contextlib.suppress(OSError):
                receiver.connection.send(None)
            receiver.connection.close()  # wakes a worker that is stuck in sending
        self.receivers = []
        deadline = time.monotonic() + _GRACE
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
        for process in self.processes:
            _end(process)
        self.processes = []


@contextlib.contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Ctrl-C waits; a process started meanwhile does not see it before it is ready for it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(process: Any) -> None:
    """Make sure that a process is gone, and reap it."""
    for stop in (process.terminate, process.kill):
        if process.exitcode is None:
            stop()
            process.join(1.0)
    process.join()
    process.close()


def timed_out(seconds: float) -> OpError:
    return OpError(complaint(
        "DataLoader", "a batch must arrive within the timeout", dict(timeout=seconds),
        f"DataLoader timed out after {seconds} seconds: raise timeout, or look for what blocks in "
        "the dataset."))


def serve(connection: links.Connection, job: Job, number: int) -> None:
    """The main function of a worker process."""
    for inherited in list(_program_ends):
        inherited.close()
    # Ctrl-C reaches every process of the terminal. The program decides; a handler, unlike SIG_IGN,
    # is not passed on to what the dataset may start.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    pool.set_num_threads(1)  # the workers themselves are the parallelism
    inbox: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, inbox), daemon=True).start()
    worker = Worker(job, number, "process")
    sender = Sender(connection)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the program has moved on
        while (task := inbox.get()) is not None:
            epoch, index, indices, reuse, drop = task
            sender.take_back(reuse, drop)
            _reply(sender, worker, epoch, index, indices)


def _reply(sender: Sender, worker: Worker, epoch: int, index: int, indices: Any) -> None:
    try:
        sender.send((epoch, index, worker.outcome(epoch, indices)))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:  # the batch cannot be pickled
        sender.send((epoch, index, (ERROR, Failure(error, worker.where))))


def _listen(connection: links.Connection, inbox: queue.SimpleQueue) -> None:
    """Move tasks into the inbox, so that the program never blocks in sending; watch the parent."""
    parent = os.getppid()
    with contextlib.suppress(EOFError, OSError):
        while True:
            if connection.poll(_ORPHAN_CHECK):
                task = connection.recv()
                inbox.put(task)
                if task is None:
                    break
            elif os.getppid() != parent:
                break
    inbox.put(None)
    while os.getppid() == parent:
        time.sleep(_ORPHAN_CHECK)
    os._exit(1)  # the program died while a sample was being read

"""Transport: objects full of tensors and arrays between two processes over one connection.

An object is pickled with its large buffers taken out (pickle protocol 5). Small buffers travel in
the message, large ones in shared segments, whose descriptors follow the message when they are new.
"""

from __future__ import annotations

import io
import pickle
import socket
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from flambeau.core.errors import OpError, complaint
from flambeau.data import segments
from flambeau.tensor import Tensor

_IN_MESSAGE = 1 << 15  # bytes; copying fewer through the socket beats a segment of their own
_DESCRIPTORS_A_MESSAGE = 200  # the kernel takes at most 253


class _Pickler(pickle.Pickler):
    """Refuses tensors that carry a graph: it would be lost on the way."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Tensor) and value.requires_grad and not value.is_leaf:
            raise OpError(complaint(
                "DataLoader", "tensors from workers must not carry a graph",
                dict(shape=tuple(value.shape)),
                "Autograd does not cross process boundaries: call detach() in the dataset."))
        return NotImplemented


class Sender:
    """The worker's end."""

    def __init__(self, connection: Connection):
        self.connection = connection
        self.segments = segments.Writer()

    def take_back(self, reuse: list[int], drop: list[int]) -> None:
        self.segments.take_back(reuse, drop)

    def send(self, value: Any) -> None:
        """Send a value. What cannot be pickled raises before anything is sent."""
        buffers: list[pickle.PickleBuffer] = []
        body = io.BytesIO()
        _Pickler(body, 5, buffer_callback=buffers.append).dump(value)
        news = segments.News()
        try:
            places = [self._place(buffer.raw(), news) for buffer in buffers]
            message = (body.getvalue(), places, news.made, news.gone)
            self.connection.send_bytes(pickle.dumps(message, 5))
            _send_descriptors(self.connection, news.descriptors)
        finally:
            news.close()

    def _place(self, raw: memoryview, news: segments.News) -> bytearray | tuple[int, int]:
        if raw.nbytes <= _IN_MESSAGE or not segments.AVAILABLE:
            return bytearray(raw)
        return self.segments.write(np.frombuffer(raw, np.uint8), news), raw.nbytes


class Receiver:
    """The program's end. `most_free` segments wait for the worker to fill them again."""

    def __init__(self, connection: Connection, most_free: int):
        self.connection = connection
        self.segments = segments.Reader(most_free)

    def receive(self) -> Any:
        """The next value. Raises EOFError when the worker has gone."""
        body, places, made, gone = pickle.loads(self.connection.recv_bytes())
        descriptors = _receive_descriptors(self.connection, len(made))
        try:
            self.segments.learn(made, gone, descriptors)
        finally:
            segments.close(descriptors)
        buffers = [self.segments.lease(*place) if isinstance(place, tuple) else place
                   for place in places]
        return pickle.loads(body, buffers=buffers)


def _send_descriptors(connection: Connection, descriptors: list[int]) -> None:
    if not descriptors:
        return
    with _socket(connection) as link:
        for start in range(0, len(descriptors), _DESCRIPTORS_A_MESSAGE):
            socket.send_fds(link, [b"d"], descriptors[start:start + _DESCRIPTORS_A_MESSAGE])


def _receive_descriptors(connection: Connection, count: int) -> list[int]:
    received: list[int] = []
    if not count:
        return received
    with _socket(connection) as link:
        while len(received) < count:
            expected = min(count - len(received), _DESCRIPTORS_A_MESSAGE)
            marker, descriptors, _, _ = socket.recv_fds(link, 1, expected)
            received += descriptors
            if not marker:
                segments.close(received)
                raise EOFError
            if len(descriptors) != expected:
                segments.close(received)
                raise OpError(complaint(
                    "DataLoader", "the program must be able to open a worker's memory",
                    dict(descriptors=len(descriptors), expected=expected),
                    "The limit on open files (ulimit -n) is reached: raise it, or close files."))
    return received


def _socket(connection: Connection) -> socket.socket:
    return socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)

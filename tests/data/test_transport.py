"""Tensors and arrays between two ends of a connection: values, layout, memory."""

import gc
import pickle
import threading
from multiprocessing import Pipe

import numpy as np
import pytest

import flambeau as torch
from flambeau.data.transport import Receiver, Sender


@pytest.fixture
def ends():
    ours, theirs = Pipe(duplex=True)
    with ours, theirs:
        yield Sender(theirs), Receiver(ours, most_free=4)


def through(ends, value):
    sender, receiver = ends
    sender.send(value)
    return receiver.receive()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int8", "int64",
                                   "uint8", "bool", "complex64"])
@pytest.mark.parametrize("n", [0, 1, 3, 100_000])
def test_every_dtype_and_size(ends, dtype, n):
    sent = (torch.arange(n) % 2).to(getattr(torch, dtype))
    got = through(ends, sent)
    assert got.dtype == sent.dtype
    assert got.tolist() == sent.tolist()


@pytest.mark.parametrize("make", [
    lambda x: x,
    lambda x: x.permute(2, 0, 1),
    lambda x: x.transpose(0, 1),
    lambda x: x[:, ::2],
    lambda x: x[0, 0, 0],
    lambda x: x[0:1, :, 3:4].expand(5, -1, 7),
])
@pytest.mark.parametrize("size", [(2, 6, 5), (40, 30, 20)])
def test_layouts(ends, make, size):
    sent = make(torch.rand(*size))
    got = through(ends, sent)
    assert got.shape == sent.shape
    assert got.tolist() == sent.tolist()
    got.add_(1)  # memory of its own, every element in its own place
    assert got.tolist() == (sent + 1).tolist()


def test_dense_layouts_keep_their_strides(ends):
    sent = torch.rand(2, 3, 4, 5).permute(0, 3, 1, 2)
    assert through(ends, sent).stride() == sent.stride()


def test_one_tensor_twice_stays_one(ends):
    x = torch.rand(100, 200)
    a, b = through(ends, [x, x])
    assert a is b


def test_arrays_of_numpy(ends):
    sent = [np.arange(50_000), np.float32(3), np.arange(12).reshape(3, 4)[:, ::2]]
    for a, b in zip(through(ends, sent), sent, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)


def test_a_segment_is_filled_again_only_when_nothing_points_to_it(ends):
    sender, receiver = ends

    def exchange(value):
        sender.take_back(*receiver.segments.give_back())
        return through(ends, torch.full((100, 100), value))

    first = exchange(1.0)
    corner = first[0]
    del first
    second = exchange(2.0)
    assert corner.tolist() == [1.0] * 100
    assert second[0, 0].item() == 2.0
    assert sender.segments.free == {}
    del corner
    gc.collect()
    exchange(3.0)
    assert len(sender.segments.lent) + len(sender.segments.free) == 2


def test_segments_too_small_give_way_to_larger_ones(ends):
    sender, receiver = ends
    for size in range(100, 1000, 100):
        through(ends, torch.ones(size, 100))
        sender.take_back(*receiver.segments.give_back())
    assert len(receiver.segments.mappings) == 1


def test_many_returned_segments_are_let_go(ends):
    sender, receiver = ends
    kept = [through(ends, torch.ones(100, 100)) for _ in range(20)]
    assert len(receiver.segments.mappings) == 20
    kept.clear()
    gc.collect()
    sender.take_back(*receiver.segments.give_back())
    assert len(receiver.segments.mappings) == 4
    assert len(sender.segments.free) == 4
    assert sender.segments.lent == {}


def test_a_value_that_cannot_be_pickled_sends_nothing(ends):
    sender, _ = ends
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        sender.send([torch.ones(100, 100), lambda: 0])
    assert through(ends, "next") == "next"


def test_more_segments_than_one_message_may_carry(ends):
    sent = [torch.full((9_000,), float(i)) for i in range(450)]
    sender, receiver = ends
    writing = threading.Thread(target=sender.send, args=(sent,))
    writing.start()
    got = receiver.receive()
    writing.join()
    assert [t[0].item() for t in got] == [float(i) for i in range(450)]

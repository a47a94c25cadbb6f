"""Indices of every kind, and what writes refuse."""

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("key", [[[0, 1]], [[0, 1], [1, 0]], [[0, 1], 1], [slice(1), 2], [None, 1]])
def test_a_list_of_lists_is_a_tuple(key):
    x = torch.arange(6).reshape(2, 3)
    y = np.arange(6).reshape(2, 3)
    assert x[key].tolist() == y[tuple(key)].tolist()
    x[key] = -1
    y[tuple(key)] = -1
    assert x.tolist() == y.tolist()


@pytest.mark.parametrize(
    "index",
    [
        (torch.tensor([0, 1]), torch.tensor([0, 1, 0])),
        (torch.tensor([0, 1]), torch.tensor([], dtype=torch.int64)),
    ],
)
def test_index_tensors_that_do_not_broadcast(index):
    x = torch.zeros(2, 3)
    with pytest.raises(IndexError, match="could not be broadcast together"):
        x[index]
    with pytest.raises(IndexError, match="could not be broadcast together"):
        x[index] = 1


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.copy_(torch.ones(3)),
        lambda t: t.masked_fill_(torch.ones(3) > 0, 1),
        lambda t: t.add_(torch.ones(3)),
        lambda t: t.copy_(torch.ones(2, 2, 1)),
    ],
)
@pytest.mark.parametrize("shape", [(), (2, 1)])
def test_writes_do_not_broadcast_the_target(write, shape):
    with pytest.raises(RuntimeError, match="must have the shape of the result"):
        write(torch.zeros(shape))


def test_copied_numbers_wrap():
    assert torch.zeros(2, dtype=torch.uint8).copy_(300).tolist() == [44, 44]

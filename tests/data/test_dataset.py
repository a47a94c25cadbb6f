"""Datasets and how they are put together."""

import pytest

import flambeau as torch
from flambeau.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Numbers(Dataset):
    def __init__(self, *values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index]


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def test_a_dataset_without_getitem_says_what_to_define():
    with pytest.raises(NotImplementedError, match="must define __getitem__"):
        Dataset()[0]


def test_an_iterable_dataset_must_define_iter():
    with pytest.raises(TypeError, match="abstract"):
        IterableDataset()


def test_tensor_dataset_gives_tuples():
    data = TensorDataset(torch.arange(6).reshape(3, 2), torch.tensor([7, 8, 9]))
    assert len(data) == 3
    x, y = data[1]
    assert x.tolist() == [2, 3]
    assert y.item() == 8


def test_tensor_dataset_refuses_different_sizes():
    with pytest.raises(AssertionError, match=r"Size mismatch between tensors.*"):
        TensorDataset(torch.ones(2), torch.ones(3))


def test_concatenation_finds_the_right_part():
    data = Numbers(1, 2) + Numbers(3) + Numbers(4, 5, 6)
    assert [data[i] for i in range(len(data))] == [1, 2, 3, 4, 5, 6]
    assert [data[i] for i in range(-6, 0)] == [1, 2, 3, 4, 5, 6]
    assert ConcatDataset([Numbers(1), Numbers(2, 3)]).cumulative_sizes == [1, 3]


def test_concatenation_refuses_what_it_cannot_index():
    data = ConcatDataset([Numbers(1, 2)])
    with pytest.raises(IndexError):
        data[2]
    with pytest.raises(ValueError, match="absolute value of index should not exceed"):
        data[-3]
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="ChainDataset"):
        ConcatDataset([Stream(2)])


def test_chain_reads_streams_one_after_the_other():
    chained = Stream(2) + Stream(3)
    assert isinstance(chained, ChainDataset)
    assert list(chained) == [0, 1, 0, 1, 2]
    assert len(chained) == 5
    with pytest.raises(AssertionError, match="must be iterable"):
        list(ChainDataset([Numbers(1)]))


def test_stack_pairs_samples_by_position_or_by_name():
    assert StackDataset(Numbers(1, 2), Numbers(3, 4))[1] == (2, 4)
    named = StackDataset(a=Numbers(1, 2), b=Numbers(3, 4))
    assert named[0] == dict(a=1, b=3)
    assert named.__getitems__([1, 0]) == [dict(a=2, b=4), dict(a=1, b=3)]


@pytest.mark.parametrize("make", [
    StackDataset,
    lambda: StackDataset(Numbers(1), Numbers(1, 2)),
    lambda: StackDataset(Numbers(1), a=Numbers(1)),
])
def test_stack_refuses_what_does_not_pair(make):
    with pytest.raises(ValueError, match="StackDataset"):
        make()


def test_subset_maps_indices_and_nests():
    subset = Subset(Subset(Numbers(10, 11, 12, 13), [3, 1, 0]), [2, 1])
    assert len(subset) == 2
    assert [subset[0], subset[1]] == [10, 11]
    assert subset.__getitems__([1, 0]) == [11, 10]


def test_getitems_is_used_where_a_dataset_has_it():
    class Together(Numbers):
        def __getitems__(self, indices):
            return [f"{i} of {len(indices)}" for i in indices]

    assert Subset(Together(1, 2, 3), [2, 1]).__getitems__([0, 1]) == ["2 of 2", "1 of 2"]


def test_random_split_covers_the_dataset_once():
    parts = random_split(range(10), [3, 7], torch.Generator().manual_seed(1))
    assert [len(p) for p in parts] == [3, 7]
    assert sorted([*parts[0], *parts[1]]) == list(range(10))


def test_random_split_by_fractions_gives_what_is_left_to_the_first():
    assert [len(p) for p in random_split(range(10), [0.33, 0.33, 0.34])] == [4, 3, 3]
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(3), [0.9, 0.1])


@pytest.mark.parametrize("lengths", [[1, 1], [0.5, 0.1], [0.5, 0.6], [1.5, -0.5]])
def test_random_split_refuses_lengths_that_do_not_fit(lengths):
    with pytest.raises(ValueError, match="random_split"):
        random_split(range(4), lengths)

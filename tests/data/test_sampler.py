"""Orders in which a dataset is read, and what is refused. The drawn numbers: tests/oracle."""

import pytest

import flambeau as torch
from flambeau.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_sequential():
    assert list(SequentialSampler("abc")) == [0, 1, 2]


@pytest.mark.parametrize("count", [1, 4, 5, 6, 10, 11])
def test_random_without_replacement_goes_through_whole_permutations(count):
    sampler = RandomSampler(range(5), num_samples=count, generator=seeded())
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == count
    for start in range(0, count - 4, 5):
        assert sorted(drawn[start:start + 5]) == [0, 1, 2, 3, 4]


def test_random_with_replacement_stays_in_range():
    drawn = list(RandomSampler(range(3), replacement=True, num_samples=100, generator=seeded()))
    assert len(drawn) == 100
    assert set(drawn) == {0, 1, 2}


def test_random_takes_its_seed_when_iteration_starts():
    torch.manual_seed(4)
    sampler = RandomSampler(range(20))
    first = list(sampler)
    second = iter(sampler)
    head = next(second)
    torch.rand(7)  # changes the default generator, not the order under way
    torch.manual_seed(4)
    assert first == list(sampler)
    assert first != [head, *second]


def test_subset_random_gives_each_index_once():
    assert sorted(SubsetRandomSampler([5, 9, 2], generator=seeded())) == [2, 5, 9]


def test_weighted_never_draws_weight_zero():
    drawn = list(WeightedRandomSampler([0.0, 1.0, 0.0, 2.0], 200, generator=seeded()))
    assert set(drawn) == {1, 3}


@pytest.mark.parametrize(("drop_last", "batches"), [
    (False, [[0, 1, 2], [3, 4, 5], [6]]),
    (True, [[0, 1, 2], [3, 4, 5]]),
])
def test_batches(drop_last, batches):
    sampler = BatchSampler(SequentialSampler(range(7)), 3, drop_last)
    assert list(sampler) == batches
    assert len(sampler) == len(batches)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9])
def test_distributed_parts_have_equal_length_and_cover(n, drop_last):
    parts = [list(DistributedSampler(range(n), 4, rank, drop_last=drop_last)) for rank in range(4)]
    assert {len(p) for p in parts} == {n // 4 if drop_last else -(-n // 4)}
    drawn = [i for part in parts for i in part]
    if drop_last:
        assert len(set(drawn)) == len(drawn)
    else:
        assert set(drawn) == set(range(n))


def test_distributed_order_changes_with_the_epoch():
    sampler = DistributedSampler(range(30), 2, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first


def test_distributed_needs_a_group_or_numbers():
    with pytest.raises(ValueError, match="init_process_group"):
        DistributedSampler([1, 2])
    with pytest.raises(ValueError, match="interval"):
        DistributedSampler([1, 2], 2, 2)


@pytest.mark.parametrize(("make", "error"), [
    (lambda: RandomSampler([]), ValueError),
    (lambda: RandomSampler([1], num_samples=0), ValueError),
    (lambda: RandomSampler([1], num_samples=1.5), ValueError),
    (lambda: RandomSampler([1], replacement=3), TypeError),
    (lambda: WeightedRandomSampler([1, 2], 0), ValueError),
    (lambda: WeightedRandomSampler([[1, 2]], 2), ValueError),
    (lambda: WeightedRandomSampler([1, 2], 2, replacement=3), ValueError),
    (lambda: BatchSampler([1], 0, False), ValueError),
    (lambda: BatchSampler([1], True, False), ValueError),
    (lambda: BatchSampler([1], 1, 3), ValueError),
    (lambda: iter(Sampler()), NotImplementedError),
])
def test_wrong_arguments_are_refused(make, error):
    with pytest.raises(error):
        make()

"""The DataLoader in one process: order, sizes, what may not be combined."""

import pytest

import flambeau as torch
from flambeau.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    get_worker_info,
)


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return index, torch.tensor(index * index)


class Stream(IterableDataset):
    def __init__(self, n, promised=None):
        self.n = n
        self.promised = promised

    def __iter__(self):
        assert get_worker_info() is None
        return iter(range(self.n))

    def __len__(self):
        return self.promised


def test_batches_in_order():
    batches = list(DataLoader(Squares(), batch_size=4))
    assert [b[0].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches[1][1].tolist() == [16, 25, 36, 49]


def test_shuffling_draws_a_new_order_each_epoch_and_the_same_for_a_seed():
    torch.manual_seed(0)
    loader = DataLoader(range(50), batch_size=50, shuffle=True)
    first, second = (next(iter(loader)).tolist() for _ in range(2))
    assert sorted(first) == list(range(50))
    assert first != second
    torch.manual_seed(0)
    assert next(iter(loader)).tolist() == first


def test_a_tensor_dataset_is_read_a_batch_at_a_time_with_the_same_result():
    data = TensorDataset(torch.arange(24.0).reshape(8, 3), torch.arange(8))

    class Sampled(TensorDataset):
        """Read sample by sample."""

    for dataset in (data, Subset(Subset(data, [7, 3, 1, 0]), [2, 0, 1])):
        slow = dataset if dataset is data else dataset.dataset.dataset
        plain = list(DataLoader(dataset, batch_size=3))
        inner = Sampled(*slow.tensors)
        other = inner if dataset is data else Subset(Subset(inner, [7, 3, 1, 0]), [2, 0, 1])
        for a, b in zip(plain, DataLoader(other, batch_size=3), strict=True):
            assert type(a) is type(b) is list
            assert [t.tolist() for t in a] == [t.tolist() for t in b]


def test_drop_last_and_lengths():
    assert len(DataLoader(Squares(), batch_size=4)) == 3
    assert len(DataLoader(Squares(), batch_size=4, drop_last=True)) == 2
    assert len(list(DataLoader(Squares(), batch_size=4, drop_last=True))) == 2
    assert len(DataLoader(Squares(), batch_size=None)) == 10
    assert len(iter(DataLoader(Squares(), batch_size=4))) == 3


def test_no_batching_gives_samples():
    samples = list(DataLoader(Squares(), batch_size=None))
    assert samples[3][0] == 3
    assert samples[3][1].item() == 9


def test_batch_sampler_and_sampler():
    loader = DataLoader(range(9), batch_sampler=[[8, 1], [0]])
    assert [b.tolist() for b in loader] == [[8, 1], [0]]
    assert loader.batch_size is None
    loader = DataLoader(range(9), batch_size=2, sampler=[5, 3, 4])
    assert [b.tolist() for b in loader] == [[5, 3], [4]]


def test_streams():
    assert [b.tolist() for b in DataLoader(Stream(5), batch_size=2)] == [[0, 1], [2, 3], [4]]
    dropped = DataLoader(Stream(5), batch_size=2, drop_last=True)
    assert [b.tolist() for b in dropped] == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert len(DataLoader(Stream(5, promised=5), batch_size=2)) == 3


def test_a_stream_longer_than_promised_warns():
    loader = DataLoader(Stream(5, promised=2), batch_size=None)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="reported to be 2"):
        assert len(list(loader)) == 5


def test_an_error_in_the_dataset_comes_out_as_it_is():
    class Broken(Squares):
        def __getitem__(self, index):
            raise KeyError("no such sample")

    with pytest.raises(KeyError, match="no such sample"):
        next(iter(DataLoader(Broken())))


def test_an_empty_dataset_gives_nothing():
    assert list(DataLoader([])) == []
    with pytest.raises(ValueError, match="num_samples"):
        DataLoader([], shuffle=True)


@pytest.mark.parametrize("arguments", [
    dict(num_workers=-1),
    dict(timeout=-1),
    dict(prefetch_factor=2),
    dict(num_workers=1, prefetch_factor=-1),
    dict(persistent_workers=True),
    dict(shuffle=True, sampler=[1]),
    dict(batch_sampler=[[1]], batch_size=3),
    dict(batch_sampler=[[1]], drop_last=True),
    dict(batch_size=None, drop_last=True),
    dict(batch_size=0),
    dict(batch_size=-3),
    dict(batch_size=True),
    dict(batch_size=2.5),
    dict(multiprocessing_context="spawn"),
    dict(num_workers=1, multiprocessing_context="no such method"),
    dict(num_workers=1, worker_type="fibre"),
])
def test_arguments_that_make_no_sense(arguments):
    with pytest.raises(ValueError, match=r"DataLoader|BatchSampler"):
        DataLoader(Squares(), **arguments)


def test_a_context_must_be_one():
    with pytest.raises(TypeError, match="valid context object"):
        DataLoader(Squares(), num_workers=1, multiprocessing_context=3)


@pytest.mark.parametrize("arguments", [
    dict(shuffle=True), dict(sampler=[1]), dict(batch_sampler=[[1]])])
def test_a_stream_decides_its_own_order(arguments):
    with pytest.raises(ValueError, match="IterableDataset"):
        DataLoader(Stream(3), **arguments)


def test_what_defines_a_loader_cannot_change():
    loader = DataLoader(Squares())
    with pytest.raises(ValueError, match="should not be set after"):
        loader.batch_size = 3
    loader.timeout = 0


def test_too_many_workers_are_warned_of():
    with pytest.warns(UserWarning, match="suggested max number of worker"):
        DataLoader(Squares(), num_workers=100_000)

"""Datasets, samplers and loaders against PyTorch: the same draws, the same batches."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.utils.data as theirs  # noqa: E402

import flambeau  # noqa: E402
import flambeau.utils.data as ours  # noqa: E402

SIDES = [(flambeau, ours), (torch, theirs)]


def on_both(action):
    """The results of `action(framework, data module)` and the default generator's next number."""
    results = []
    for framework, data in SIDES:
        framework.manual_seed(11)
        random.seed(12)
        np.random.seed(13)
        results.append((action(framework, data), framework.rand(1).item()))
    return results


def plain(value):
    """Batches as nested Python values with their dtypes, to compare across frameworks."""
    if isinstance(value, flambeau.Tensor | torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [plain(v) for v in value]
    return value


def agree(action):
    mine, reference = on_both(lambda framework, data: plain(action(framework, data)))
    assert mine == reference


@pytest.mark.parametrize("arguments", [
    dict(), dict(num_samples=3), dict(num_samples=10), dict(num_samples=20), dict(num_samples=25),
    dict(replacement=True), dict(replacement=True, num_samples=32),
    dict(replacement=True, num_samples=70)], ids=str)
@pytest.mark.parametrize("own", [False, True])
def test_random_sampler(arguments, own):
    def draw(framework, data):
        generator = framework.Generator().manual_seed(5) if own else None
        sampler = data.RandomSampler(range(10), generator=generator, **arguments)
        return [list(sampler), list(sampler)]

    agree(draw)


@pytest.mark.parametrize("replacement", [True, False])
def test_weighted_sampler(replacement):
    weights = [0.1, 3.0, 0.0, 2.5, 1.0]
    agree(lambda f, d: list(d.WeightedRandomSampler(weights, 4, replacement)))


def test_subset_and_split():
    agree(lambda f, d: list(d.SubsetRandomSampler([4, 7, 1, 3])))
    agree(lambda f, d: [list(s) for s in d.random_split(range(10), [3, 7])])
    agree(lambda f, d: [list(s) for s in d.random_split(range(11), [0.3, 0.3, 0.4])])


@pytest.mark.parametrize("arguments", [dict(), dict(shuffle=False), dict(drop_last=True),
                                       dict(seed=3)], ids=str)
@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_distributed_sampler(arguments, n):
    def draw(framework, data):
        parts = [data.DistributedSampler(range(n), 3, rank, **arguments) for rank in range(3)]
        for part in parts:
            part.set_epoch(2)
        return [list(part) for part in parts]

    agree(draw)


def dataset(framework, data, stream):
    class Samples(data.IterableDataset if stream else data.Dataset):
        def __len__(self):
            return 13

        def __getitem__(self, i):
            return dict(
                i=i, half=i / 2, yes=i % 2 == 0, name=f"sample {i}",
                x=framework.full((2, 3), float(i)), array=np.full(3, i, np.int16),
                pair=(i, framework.rand(2)), scalar=np.float32(i), noise=np.random.rand(),
                luck=random.random())

        def __iter__(self):
            info = data.get_worker_info()
            start, step = (info.id, info.num_workers) if info else (0, 1)
            return (self.__getitem__(i) for i in range(start, 13, step))

    return Samples()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("arguments", [
    dict(batch_size=4), dict(batch_size=4, drop_last=True), dict(batch_size=None),
    dict(batch_size=3, num_workers=2, multiprocessing_context="fork"),
    dict(batch_size=3, num_workers=2, multiprocessing_context="fork", persistent_workers=True),
    dict(batch_size=3, num_workers=1, multiprocessing_context="fork", prefetch_factor=3),
    dict(batch_size=None, num_workers=2, multiprocessing_context="fork"),
], ids=str)
def test_loaders_give_the_same_batches_epoch_after_epoch(stream, arguments):
    def read(framework, data):
        loader = data.DataLoader(dataset(framework, data, stream), **arguments)
        return [list(loader), list(loader)]

    agree(read)


@pytest.mark.parametrize("arguments", [
    dict(batch_size=4), dict(batch_size=None), dict(batch_size=5, drop_last=True),
    dict(batch_size=4, num_workers=2, multiprocessing_context="fork")], ids=str)
@pytest.mark.parametrize("own", [False, True])
def test_shuffled_loaders_draw_the_same_order(arguments, own):
    def read(framework, data):
        generator = framework.Generator().manual_seed(5) if own else None
        loader = data.DataLoader(range(17), shuffle=True, generator=generator, **arguments)
        return [list(loader), framework.rand(1).item(), list(loader)]

    agree(read)


def test_a_shuffled_tensor_dataset():
    def read(framework, data):
        x = framework.arange(30.0).reshape(10, 3)
        return list(data.DataLoader(data.TensorDataset(x, x[:, 0]), batch_size=4, shuffle=True))

    agree(read)


@pytest.mark.parametrize("batch", [
    [1, 2], [1.5, 2], [True, False], ["a", "b"], [b"a", b"b"], [(1, "a"), (2, "b")],
    [[1, 2.5], [3, 4.5]], [{"a": 1}, {"a": 2, "b": 1}], [range(2), range(2)],
    [np.float32(1), np.float32(2)], [np.ones(2), np.zeros(2)], [np.array(3), np.array(4)],
], ids=repr)
def test_collate(batch):
    agree(lambda f, d: d.default_collate(batch))
    agree(lambda f, d: d.default_convert(batch))


@pytest.mark.parametrize("call", [
    lambda f, d: d.default_collate([]),
    lambda f, d: d.default_collate([None]),
    lambda f, d: d.default_collate([1j]),
    lambda f, d: d.default_collate([[1], [1, 2]]),
    lambda f, d: d.default_collate([f.ones(2), f.ones(3)]),
    lambda f, d: d.default_collate([np.array(["a"])]),
    lambda f, d: d.default_collate([{"a": 1}, {"b": 1}]),
    lambda f, d: d.TensorDataset(f.ones(2), f.ones(3)),
    lambda f, d: d.ConcatDataset([]),
    lambda f, d: d.ConcatDataset([[1], [2]])[-3],
    lambda f, d: d.StackDataset(),
    lambda f, d: d.random_split(range(3), [1, 1]),
    lambda f, d: d.RandomSampler([]),
    lambda f, d: d.RandomSampler([1], replacement=3),
    lambda f, d: d.WeightedRandomSampler([[1.0]], 1),
    lambda f, d: d.BatchSampler([1], 0, False),
    lambda f, d: d.DistributedSampler([1]),
    lambda f, d: d.DistributedSampler([1], 2, 5),
    lambda f, d: d.DataLoader([1], batch_size=0),
    lambda f, d: d.DataLoader([1], num_workers=-1),
    lambda f, d: d.DataLoader([1], prefetch_factor=2),
    lambda f, d: d.DataLoader([1], persistent_workers=True),
    lambda f, d: d.DataLoader([1], shuffle=True, sampler=[0]),
    lambda f, d: d.DataLoader([1], batch_size=None, drop_last=True),
    lambda f, d: d.DataLoader([1], num_workers=1, multiprocessing_context="x"),
    lambda f, d: d.DataLoader([1], num_workers=1, multiprocessing_context=3),
    lambda f, d: d.DataLoader([], shuffle=True),
    lambda f, d: setattr(d.DataLoader([1]), "batch_size", 3),
    lambda f, d: d.Dataset()[0],
    lambda f, d: d.IterableDataset(),
])
def test_errors_are_of_the_same_class(call):
    kinds = []
    for framework, data in SIDES:
        with pytest.raises(Exception) as caught:
            call(framework, data)
        kinds.append(type(caught.value))
    mine, reference = kinds
    assert issubclass(mine, reference)

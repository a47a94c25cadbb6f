"""Workers: the same batches in the same order as without them, whatever kind they are."""

import os
import random
import signal
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

FORKED = dict(num_workers=2, multiprocessing_context="fork")
KINDS = [
    pytest.param(FORKED, id="fork"),
    pytest.param(dict(num_workers=2, multiprocessing_context="spawn"), id="spawn"),
    pytest.param(dict(num_workers=2, worker_type="thread"), id="thread"),
]
QUICK = [KINDS[0], KINDS[2]]


@pytest.fixture(autouse=True)
def two_workers_on_any_machine(monkeypatch):
    monkeypatch.setattr(DataLoader, "check_worker_number_rationality", lambda self: None)


class Everything(Dataset):
    """Samples with small and large tensors and arrays, of several dtypes and layouts."""

    def __len__(self):
        return 11

    def __getitem__(self, i):
        return dict(
            index=i,
            large=torch.full((64, 64, 3), float(i)).permute(2, 0, 1),
            small=torch.tensor([i], dtype=torch.bfloat16),
            array=np.full(20_000, i, np.int32),
            text=str(i),
            empty=torch.zeros(0, 3),
        )


class Drawing(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        info = get_worker_info()
        return info.id, torch.rand(1).item(), random.random(), np.random.rand()


class Parts(IterableDataset):
    """Worker w gives 10 w, 10 w + 1, ...: worker 1 more than worker 0."""

    def __iter__(self):
        worker = get_worker_info().id
        return iter(range(10 * worker, 10 * worker + 3 + 4 * worker))


class Failing(Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 3:
            raise self.error
        return i


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def as_lists(batch):
    return {k: v.tolist() if hasattr(v, "tolist") else v for k, v in batch.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_those_of_one_process(kind):
    expected = [as_lists(b) for b in DataLoader(Everything(), batch_size=3)]
    assert [as_lists(b) for b in DataLoader(Everything(), batch_size=3, **kind)] == expected


@pytest.mark.parametrize("kind", QUICK)
def test_shuffled_order_is_that_of_one_process(kind):
    def order(**arguments):
        torch.manual_seed(3)
        loader = DataLoader(range(20), batch_size=3, shuffle=True, **arguments)
        return [[b.tolist() for b in loader] for _ in range(2)]

    assert order(**kind) == order()


@pytest.mark.parametrize("kind", QUICK)
def test_persistent_workers_read_epoch_after_epoch_even_after_a_break(kind):
    loader = DataLoader(range(20), batch_size=2, persistent_workers=True, **kind)
    for _ in range(2):
        assert [b.tolist()[0] for b in loader] == list(range(0, 20, 2))
        assert next(iter(loader)).tolist() == [0, 1]
    loader._iterator.close()


@pytest.mark.parametrize("kind", QUICK)
def test_streams_alternate_between_workers_until_each_ends(kind):
    for _ in range(2):
        batches = [b.tolist() for b in DataLoader(Parts(), batch_size=2, **kind)]
        assert batches == [[0, 1], [10, 11], [2], [12, 13], [14, 15], [16]]


@pytest.mark.parametrize("kind", QUICK)
def test_out_of_order_gives_every_batch_once(kind):
    loader = DataLoader(range(31), batch_size=2, in_order=False, **kind)
    assert sorted(i for b in loader for i in b.tolist()) == list(range(31))


def test_processes_draw_from_seeds_of_their_own():
    def drawn():
        torch.manual_seed(5)
        return list(DataLoader(Drawing(), batch_size=None, **FORKED))

    first = drawn()
    assert first == drawn()
    assert len({tuple(sample[1:]) for sample in first}) == 8


def test_threads_have_generators_of_their_own():
    class Threaded(Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            rng = get_worker_info().rng
            return torch.rand(1, generator=rng.torch).item(), rng.random.random(), rng.numpy.rand()

    def drawn():
        torch.manual_seed(5)
        return list(DataLoader(Threaded(), batch_size=None, num_workers=2, worker_type="thread"))

    state = torch.get_rng_state()
    assert drawn() == drawn()
    torch.set_rng_state(state)


def test_threads_share_the_dataset():
    dataset = Everything()
    seen = []

    def collate(batch):
        seen.append((get_worker_info().dataset is dataset, threading.current_thread().name))
        return batch

    list(DataLoader(dataset, num_workers=2, worker_type="thread", collate_fn=collate))
    assert {shared for shared, _ in seen} == {True}
    assert {name for _, name in seen} == {"DataLoader worker 0", "DataLoader worker 1"}


def test_worker_info_cannot_be_changed():
    class Changing(Drawing):
        def __getitem__(self, i):
            get_worker_info().id = 4

    with pytest.raises(RuntimeError, match="Cannot assign attributes"):
        next(iter(DataLoader(Changing(), num_workers=1, worker_type="thread")))


@pytest.mark.parametrize("kind", QUICK)
@pytest.mark.parametrize(("error", "raised"), [
    (KeyError("lost\nsample"), KeyError),
    (ValueError("lost sample"), ValueError),
    (TwoArguments(1, 2), RuntimeError),
    (StopIteration(), RuntimeError),
])
def test_errors_come_back_in_their_place_with_the_workers_traceback(kind, error, raised):
    batches = iter(DataLoader(Failing(error), batch_size=2, **kind))
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(raised) as caught:
        next(batches)
    text = str(caught.value)
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker")
    assert "Original Traceback" in text
    assert "raise self.error" in text
    assert "fetch.py" not in text
    assert next(batches).tolist() == [4, 5]
    assert list(batches) == []


@pytest.mark.parametrize("kind", QUICK)
def test_a_failing_worker_init_is_told(kind):
    def init(worker):
        raise OSError(f"no data for {worker}")

    with pytest.raises(OSError, match="no data for 0"):
        next(iter(DataLoader(range(4), worker_init_fn=init, **kind)))


def test_a_batch_that_cannot_be_pickled_is_told():
    class Lambdas(Everything):
        def __getitem__(self, i):
            return lambda: i

    with pytest.raises((AttributeError, TypeError, RuntimeError), match="worker process"):
        next(iter(DataLoader(Lambdas(), batch_size=None, **FORKED)))


def test_a_dataset_that_cannot_be_pickled_is_told_when_it_must_be():
    class Local(Everything):
        pass

    with pytest.raises((AttributeError, TypeError, RuntimeError)) as caught:
        iter(DataLoader(Local(), num_workers=2, multiprocessing_context="spawn"))
    assert "top level of a module" in caught.value.__notes__[0]


def test_a_graph_cannot_come_out_of_a_process():
    class Graphs(Everything):
        def __getitem__(self, i):
            return torch.ones(2, requires_grad=True) * 2

    with pytest.raises(RuntimeError, match=r"detach\(\)"):
        next(iter(DataLoader(Graphs(), batch_size=None, **FORKED)))


def test_a_leaf_that_requires_grad_stays_one():
    class Leaves(Everything):
        def __getitem__(self, i):
            return torch.ones(3, requires_grad=True)

    got = next(iter(DataLoader(Leaves(), batch_size=None, **FORKED)))
    assert got.requires_grad
    assert got.is_leaf


def test_a_killed_worker_is_noticed_and_named():
    batches = iter(DataLoader(range(1000), **FORKED))
    next(batches)
    killed = batches.workers.processes[1]
    os.kill(killed.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"{killed.pid}.*exited unexpectedly") as caught:
        list(batches)
    assert "SIGKILL" in str(caught.value)
    assert "worker=1" in str(caught.value)
    assert list(batches) == []


def test_a_worker_that_exits_is_noticed():
    class Exiting(Everything):
        def __getitem__(self, i):
            os._exit(7)

    with pytest.raises(RuntimeError, match="exit code 7"):
        next(iter(DataLoader(Exiting(), **FORKED)))


def test_persistent_workers_start_again_after_one_was_killed():
    loader = DataLoader(range(40), persistent_workers=True, **FORKED)
    batches = iter(loader)
    next(batches)
    os.kill(batches.workers.processes[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(batches)
    assert len(list(loader)) == 40
    loader._iterator.close()


@pytest.mark.parametrize("kind", QUICK)
def test_a_batch_that_takes_too_long_is_an_error(kind, monkeypatch):
    monkeypatch.setattr("flambeau.data.processes._GRACE", 0.05)
    monkeypatch.setattr("flambeau.data.threads._GRACE", 0.05)
    blocked = threading.Event()

    class Blocking(Everything):
        def __getitem__(self, i):
            blocked.wait(20)

    with pytest.raises(RuntimeError, match=r"timed out after 0\.2 seconds"):
        next(iter(DataLoader(Blocking(), timeout=0.2, **kind)))
    blocked.set()

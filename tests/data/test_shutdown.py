"""Nothing is left behind: no process, no descriptor, no memory, however the loader ends."""

import gc
import multiprocessing
import os
import select
import signal
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau.utils.data import DataLoader, Dataset

linux = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="reads /proc")

SCRIPT = """
import sys
import flambeau as torch
from flambeau.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 1_000_000
    def __getitem__(self, i):
        return torch.zeros(100, 100)

if __name__ == "__main__":
    batches = iter(DataLoader(Slow(), batch_size=4, num_workers=2, multiprocessing_context="fork"))
    print(*(p.pid for p in batches.workers.processes), flush=True)
    for batch in batches:
        pass
"""


class Images(Dataset):
    def __len__(self):
        return 300

    def __getitem__(self, i):
        return torch.full((50, 50), float(i)), i


def loader(**arguments):
    return DataLoader(Images(), batch_size=10, num_workers=2, multiprocessing_context="fork",
                      **arguments)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def segments():
    with open("/proc/self/maps") as maps:
        return maps.read().count("memfd:flambeau-batch")


@pytest.fixture
def warm():
    """What the first use of multiprocessing opens for good is not counted."""
    next(iter(loader()))
    gc.collect()


@linux
def test_an_epoch_leaves_nothing(warm):
    before = descriptors()
    for x, i in loader():
        assert x[:, 0, 0].tolist() == i.tolist()
    del x, i
    assert multiprocessing.active_children() == []
    assert (descriptors(), segments()) == (before, 0)


@linux
def test_dropping_an_iterator_midway_ends_its_workers_at_once(warm):
    before = descriptors()
    batches = iter(loader())
    next(batches)
    assert len(multiprocessing.active_children()) == 2
    del batches
    assert multiprocessing.active_children() == []
    assert (descriptors(), segments()) == (before, 0)


@linux
def test_kept_batches_stay_valid_and_cost_no_descriptors(warm):
    before = descriptors()
    kept = list(loader())
    assert descriptors() == before
    assert all(x[:, 9, 9].tolist() == i.tolist() for x, i in kept)
    kept.clear()
    gc.collect()
    assert segments() == 0


@linux
def test_segments_are_filled_again_instead_of_made_anew(warm):
    most = 0
    for _ in loader():
        most = max(most, segments())
    assert most <= 2 * 4  # workers x (batches ahead + the one held + one on its way)


@linux
def test_labels_do_not_keep_images_alive(warm):
    labels = [i for _, i in loader()]
    gc.collect()
    assert segments() == 0
    assert len(labels) == 30


@linux
def test_a_persistent_loader_ends_with_itself(warm):
    before = descriptors()
    kept = loader(persistent_workers=True)
    assert len(list(kept)) == 30
    assert len(multiprocessing.active_children()) == 2
    del kept
    gc.collect()
    assert multiprocessing.active_children() == []
    assert descriptors() == before


def started():
    program = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    return program, [int(pid) for pid in program.stdout.readline().split()]


def gone(pid, seconds=30):
    """Wait until a process that is not our child has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


@linux
def test_ctrl_c_ends_the_program_and_its_workers_with_one_traceback():
    program, workers = started()
    os.killpg(program.pid, signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert len(workers) == 2
    assert all(gone(pid) for pid in workers)


@linux
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_do_not_outlive_a_killed_program(how):
    program, workers = started()
    program.send_signal(how)
    program.communicate(timeout=60)
    assert len(workers) == 2
    assert all(gone(pid) for pid in workers)

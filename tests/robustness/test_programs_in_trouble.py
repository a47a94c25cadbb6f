"""Compiled programs in processes that fork, are interrupted, run out of memory or disk, or exit."""

import os
import subprocess
import sys
import textwrap

import pytest

STEP = """
import os, sys
import flambeau as torch
from flambeau import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.LayerNorm(96), nn.Linear(96, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x, y = torch.randn(128, 64), torch.randint(0, 10, (128,))

@torch.compile(mode="sync")
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

@torch.compile(mode="sync")
def waves(a):
    for _ in range(8):
        a = torch.sin(a) @ a / 100
    return a
"""
LOSSES = "print([round(step(x, y).item(), 4) for _ in range(4)])\n"


@pytest.fixture(scope="module")
def warm(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("warm") / "cache")


def started(program: str, cache: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", STEP + textwrap.dedent(program)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "FLAMBEAU_CACHE": cache, **environment},
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> str:
    said, complaints = process.communicate(timeout=120)
    assert process.returncode == 0 and not complaints, complaints[-3000:]
    return said.strip()


@pytest.fixture(scope="module")
def losses(warm) -> str:
    return ended(started(LOSSES, warm))


def test_fork_goes_on_in_both(warm, losses):
    program = """
    import warnings
    first = step(x, y).item()
    pid = os.fork()
    rest = [first] + [step(x, y).item() for _ in range(3)]
    os.write(1, f"{[round(loss, 4) for loss in rest]}\\n".encode())  # at once: two write
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    """
    assert ended(started(program, warm)).splitlines() == [losses, losses]


def test_threads_share_a_program(warm):
    program = """
    import threading
    a = torch.randn(200, 200)
    want, got = waves(a), []
    def work():
        got.extend(torch.equal(waves(a), want) for _ in range(10))
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    print(len(got), all(got))
    """
    assert ended(started(program, warm)) == "40 True"


def test_an_interrupt_ends_a_loop_of_programs_and_leaves_them_whole(warm):
    program = """
    import signal, threading
    a = torch.randn(500, 500)
    want = waves(a)
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            waves(a)
    except KeyboardInterrupt:
        print(torch.equal(waves(a), want))
    """
    assert ended(started(program, warm)) == "True"


def test_the_interpreter_exits_while_a_program_runs(warm):
    program = """
    import threading
    a, running = torch.randn(500, 500), threading.Event()
    def forever():
        while True:
            waves(a)
            running.set()
    threading.Thread(target=forever, daemon=True).start()
    running.wait()
    print("bye")
    """
    assert ended(started(program, warm)) == "bye"


def test_a_full_disk(tmp_path, losses):
    limit = """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    """
    assert ended(started(textwrap.dedent(limit) + LOSSES, str(tmp_path / "cache"))) == losses
    assert not list(tmp_path.rglob("*.part"))


def test_a_cache_that_cannot_be_made_or_written(tmp_path, losses):
    assert ended(started(LOSSES, "/proc/none/such")) == losses
    (tmp_path / "file").touch()
    assert ended(started(LOSSES, str(tmp_path / "file"))) == losses


def test_damaged_files_in_the_cache(tmp_path, losses):
    cache = tmp_path / "cache"
    assert ended(started(LOSSES, str(cache))) == losses
    files = sorted(cache.glob("*.o"))
    assert files
    for at, file in enumerate(files):
        content = bytearray(file.read_bytes())
        content[at * 7 % len(content)] ^= 0xFF
        file.write_bytes(content[: len(content) - at % 3])
    assert ended(started(LOSSES, str(cache))) == losses


def test_processes_share_a_cold_cache(tmp_path, losses):
    running = [started(LOSSES, str(tmp_path / "cache")) for _ in range(3)]
    assert [ended(process) for process in running] == [losses] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")
def test_memory_that_does_not_suffice_is_an_error(warm):
    program = """
    import resource
    step(x, y)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
    def outer(a):
        return a[:, None] * a[None] + 1, torch.softmax(a[:, None] + a[None], -1)
    for f in (outer, torch.compile(outer, mode="sync"), lambda a: torch.empty(10**10)):
        try:
            f(torch.ones(20_000))
        except MemoryError as error:
            assert isinstance(error, RuntimeError)
            print("refused")
    print(step(x, y).item() > 0)
    """
    assert ended(started(program, warm)).split() == ["refused"] * 3 + ["True"]


@pytest.mark.parametrize("level", ["avx2", "baseline"])
def test_processors_that_offer_less(warm, losses, level):
    assert ended(started(LOSSES, warm, FLAMBEAU_CPU=level)) == losses


def test_one_thread_gives_the_same_bits(warm):
    program = "print([step(x, y).item().hex() for _ in range(4)], waves(x @ x.T).sum().item())\n"
    one, two = (ended(started(program, warm, FLAMBEAU_NUM_THREADS=n)) for n in "12")
    assert one == two

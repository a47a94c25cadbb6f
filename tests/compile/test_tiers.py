"""Calls go on while their program is made in the background, and nobody sees a difference."""

import os
import subprocess
import sys
import threading
import warnings

import pytest

import flambeau as torch
from flambeau.codegen import kernel, templates
from flambeau.compile import background, config
from flambeau.compile.native import runner
from flambeau.compile.records import CompileWarning
from flambeau.runtime import jit

F = torch.nn.functional


@pytest.fixture(autouse=True)
def tier(monkeypatch):
    monkeypatch.setenv("FLAMBEAU_TIER", "background")
    monkeypatch.setattr(runner, "PATIENCE", 0)
    yield
    assert torch.compiler.wait(600)


@pytest.fixture
def gate(monkeypatch):
    """No program is made before it is set."""
    opened, real = threading.Event(), runner.NativePlan.written

    def written(plan, kind):
        if threading.current_thread().name == "flambeau compile":
            assert opened.wait(600)
        return real(plan, kind)

    monkeypatch.setattr(runner.NativePlan, "written", written)
    yield opened
    opened.set()


@pytest.fixture
def plans(monkeypatch):
    """The plans that captures make."""
    made, real = [], runner.NativePlan.__init__

    def init(plan, *args):
        real(plan, *args)
        made.append(plan)

    monkeypatch.setattr(runner.NativePlan, "__init__", init)
    return made


def training(mode=None):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, seen = torch.randn(32, 8), []

    def step():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        seen.append("step")
        return loss

    return torch.compile(step, mode=mode), seen


def test_calls_go_on_and_the_program_takes_over(gate, plans):
    step, seen = training()
    losses = [step().item() for _ in range(3)]
    assert all(plan.program is None for plan in plans)
    gate.set()
    assert torch.compiler.wait(600)
    losses += [step().item() for _ in range(3)]
    assert any(plan.program is not None for plan in plans)
    assert seen == ["step"] * 6
    waiting, _ = training("sync")
    assert losses == pytest.approx([waiting().item() for _ in range(6)], rel=1e-5)


def test_random_numbers_are_the_same_in_both_tiers(gate):
    f = torch.compile(lambda x: F.dropout(x, 0.5) + torch.rand(100))
    torch.manual_seed(1)
    first, state = f(torch.ones(100)), torch.get_rng_state()
    gate.set()
    torch.compiler.wait(600)
    torch.manual_seed(1)
    assert torch.equal(f(torch.ones(100)), first)
    assert torch.equal(torch.get_rng_state(), state)


def test_errors_are_the_same_in_both_tiers(gate):
    f = torch.compile(lambda table, i: table[i] * 2)
    table, good, bad = torch.ones(4, 2), torch.tensor([1]), torch.tensor([9])
    f(table, good)
    with pytest.raises(IndexError) as before:
        f(table, bad)
    gate.set()
    torch.compiler.wait(600)
    with pytest.raises(IndexError) as after:
        f(table, bad)
    assert type(before.value) is type(after.value)


def test_no_kernel_is_made_on_the_thread_that_calls(gate, monkeypatch):
    def load(*args, **options):
        raise AssertionError("a call has waited for LLVM")

    x = torch.randn(300, 301)
    torch.compile(lambda x: x + 1, mode="sync")(x)  # what every program needs
    f = torch.compile(lambda x: (x.sinh() @ x.t()).softmax(1).erf())
    with monkeypatch.context() as patched:
        patched.setattr(jit, "load", load)
        f(x)


def test_a_program_that_cannot_be_made_is_told_once(monkeypatch, plans):
    def broken(plan, kind):
        raise ArithmeticError("no registers left")

    monkeypatch.setattr(runner.NativePlan, "written", broken)
    monkeypatch.setattr(config, "raise_internal_errors", False)
    f, x = torch.compile(lambda x: x * 2 + 1), torch.ones(3)
    with pytest.warns(CompileWarning, match="ArithmeticError: no registers left"):
        f(x)
        torch.compiler.wait(600)
        assert f(x).tolist() == [3, 3, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(x).tolist() == [3, 3, 3]
    assert plans[-1].program is None


def test_what_was_called_last_is_made_first(gate, monkeypatch):
    order, started, real = [], threading.Event(), runner.NativePlan.make

    def make(plan):
        order.append(plan.graph)
        started.set()
        real(plan)

    monkeypatch.setattr(runner.NativePlan, "make", make)
    x = torch.ones(4)
    first, second, third = (torch.compile(lambda x, k=k: x * k + 1) for k in (2, 3, 4))
    first(x)
    assert started.wait(600)
    for f in (second, third, second):
        f(x)
    gate.set()
    torch.compiler.wait(600)
    assert [e.inputs[1] for g in order for e in g.equations if e.name == "mul"] == [2, 3, 4]


def test_a_call_waits_for_code_from_the_cache_only(monkeypatch, tmp_path, plans):
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "cache"))
    x = torch.randn(30, 7)

    def f(x):
        return ((x * 3).tanh() @ x.t()).sum(1)

    torch.compile(f, mode="sync")(x)
    for cached in (kernel.compiled, templates._gemm):
        cached.cache_clear()
    torch.compile(f)(x)
    assert plans[-1].program is not None


def test_reset_while_a_program_is_made(gate):
    f, x = torch.compile(lambda x: x.exp() - 1), torch.zeros(5)
    f(x)
    torch.compiler.reset()
    assert f(x).tolist() == [0] * 5
    gate.set()
    assert torch.compiler.wait(600)
    assert f(x).tolist() == [0] * 5


def test_threads_call_while_a_program_is_made(gate):
    f, results = torch.compile(lambda x: (x * 3).sum()), []
    x = torch.ones(50)
    f(x)

    def calls():
        results.extend(f(x).item() for _ in range(200))

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert results == [150.0] * 800


@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_does_not_wait_for_a_thread_that_it_has_not(gate):
    f, x = torch.compile(lambda x: x.cos() * 2), torch.zeros(40)
    f(x)
    pid = os.fork()
    if pid == 0:
        gate.set()
        good = f(x).tolist() == [2] * 40 and torch.compiler.wait(600) and f(x).sum().item() == 80
        os._exit(0 if good else 1)
    gate.set()
    assert os.waitpid(pid, 0)[1] == 0
    assert f(x).tolist() == [2] * 40


EXIT = """
import flambeau as torch
net = torch.nn.Sequential(*[torch.nn.Conv2d(c, c + 1, 3, padding=1) for c in range(3, 9)])
f = torch.compile(lambda x: net(x).softmax(1))
print(tuple(f(torch.ones(2, 3, 20, 20)).shape))
"""


def test_an_interpreter_exits_while_a_program_is_made(tmp_path):
    env = dict(os.environ, FLAMBEAU_CACHE=str(tmp_path), FLAMBEAU_TIER="background")
    done = subprocess.run(
        [sys.executable, "-c", EXIT], env=env, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "(2, 9, 20, 20)\n", "")


def test_modes_and_options_wait(plans):
    x = torch.ones(3)
    torch.compile(lambda x: x + 1, mode="sync")(x)
    torch.compile(lambda x: x + 2, options={"tier": "sync"})(x)
    torch.compile(lambda x: x + 3, verify=True)(x)
    torch.use_deterministic_algorithms(True)
    try:
        torch.compile(lambda x: x + 4)(x)
    finally:
        torch.use_deterministic_algorithms(False)
    assert len(plans) == 4
    assert all(plan.program is not None for plan in plans)
    with pytest.raises(ValueError, match="tier"):
        torch.compile(lambda x: x, options={"tier": "later"})


def test_threads_take_turns_as_before_when_nothing_is_made(gate):
    before = sys.getswitchinterval()
    f = torch.compile(lambda x: x.sin() + 3)
    f(torch.ones(2))
    gate.set()
    torch.compiler.wait(600)
    assert sys.getswitchinterval() == pytest.approx(before)
    assert background.worker().thread is None

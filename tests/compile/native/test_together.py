"""Two threads make the kernels of a program: in order, once each, errors as with one."""

import threading

import pytest

from flambeau.compile.native.together import Together
from flambeau.core import logs
from flambeau.runtime import jit, pool


@pytest.fixture(autouse=True)
def processors(monkeypatch):
    monkeypatch.setattr(pool, "available_cpus", lambda: 2)


def test_results_are_in_order_and_both_threads_work():
    met, seen = threading.Barrier(2, timeout=600), set()

    def make(part):
        jit.tell_watchers()
        if part < 2:
            met.wait()  # only another thread can make the second part meanwhile
        seen.add(threading.get_ident())
        return part * 10

    assert Together(make, list(range(30))).run() == [10 * k for k in range(30)]
    assert len(seen) == 2


def test_nothing_to_generate_needs_no_second_thread():
    seen = set()
    together = Together(lambda part: seen.add(threading.get_ident()), [1, 2, 3])
    together.run()
    assert seen == {threading.get_ident()} and together.helper is None


def test_the_first_failure_is_raised_and_the_rest_is_left():
    made = []

    def make(part):
        jit.tell_watchers()
        made.append(part)
        if part >= 3:
            raise LookupError(part)

    with pytest.raises(LookupError) as error:
        Together(make, list(range(1000))).run()
    assert error.value.args == (3,) and len(made) < 10


def test_an_interrupt_leaves_no_thread_behind():
    def make(part):
        jit.tell_watchers()
        raise KeyboardInterrupt

    together, before = Together(make, [0]), list(jit.watchers)
    with pytest.raises(KeyboardInterrupt):
        together.run()
    assert jit.watchers == before
    assert together.helper is not None and not together.helper.is_alive()


def test_what_is_logged_is_in_order(monkeypatch):
    monkeypatch.setattr(logs, "on", {"llvm"})
    together = Together(lambda part: jit.tell_watchers(), [1, 2, 3])
    together.run()
    assert together.helper is None

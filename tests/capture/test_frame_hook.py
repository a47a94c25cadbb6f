"""Swapping code objects at frame entry: all kinds of calls, exceptions, threads, tracing, leaks."""

import gc
import resource
import sys
import threading
import traceback
import weakref

import pytest

from flambeau.capture import frame_hook as hook

pytestmark = pytest.mark.skipif(not hook.available(), reason="no frame hook on this interpreter")


class Swaps:
    """A callback that replaces the code objects it was told about by equal, larger ones."""

    def __init__(self):
        self.targets = {}

    def add(self, function, replacement=None):
        code = function.__code__
        self.targets[code] = replacement or code.replace(co_stacksize=code.co_stacksize + 40)
        return function

    def __call__(self, function, code, arguments):
        target = self.targets.get(code)
        if target is not None:
            hook.reserve(code, target)
        return target


@pytest.fixture
def swaps():
    return Swaps()


class Thing:
    pass


def test_every_kind_of_argument_and_no_reference_lost(swaps):
    @swaps.add
    def f(p, /, q, *r, s=4, **t):
        z = [p, q, r, s, t]
        del p
        return z

    thing = Thing()
    before = sys.getrefcount(thing)
    with hook.enabled(swaps):
        for _ in range(1000):
            result = f(thing, thing, thing, thing, s=thing, w=thing)
    assert result == [thing, thing, (thing, thing), thing, {"w": thing}]
    del result
    assert sys.getrefcount(thing) == before


def test_an_exception_in_a_swapped_frame_unwinds_it(swaps):
    @swaps.add
    def raising(x):
        y = [x]
        raise ValueError(y)

    thing, text = Thing(), ""
    before = sys.getrefcount(thing)
    with hook.enabled(swaps):
        for _ in range(1000):
            try:
                raising(thing)
            except ValueError:
                text = traceback.format_exc()
    assert "in raising" in text and "raise ValueError(y)" in text
    gc.collect()
    assert sys.getrefcount(thing) == before


def test_an_exception_in_the_callback_reaches_the_caller():
    def f(x):
        return x

    def callback(function, code, arguments):
        if code is f.__code__:
            raise RuntimeError("from the callback")

    thing, caught = Thing(), 0
    before = sys.getrefcount(thing)
    with hook.enabled(callback):
        for _ in range(1000):
            try:
                f(thing)
            except RuntimeError:
                caught += 1
    assert caught == 1000
    gc.collect()
    assert sys.getrefcount(thing) == before


def test_closures_and_cells(swaps):
    def make():
        count = 1

        def inner(v):
            nonlocal count
            w = [v]
            look = lambda: (w, v, count)
            count += 1
            v = v
            return look()

        return inner

    f, thing = swaps.add(make()), Thing()
    before = sys.getrefcount(thing)
    with hook.enabled(swaps):
        results = [f(thing) for _ in range(100)]
    assert results[99][2] == 101 and results[0][1] is thing
    del results
    gc.collect()
    assert sys.getrefcount(thing) == before


def test_recursion(swaps):
    @swaps.add
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    @swaps.add
    def deep(n):
        return 0 if n == 0 else 1 + deep(n - 1)

    @swaps.add
    def endless(n):
        return endless(n + 1)

    with hook.enabled(swaps):
        assert fib(16) == 987
        assert deep(800) == 800
        with pytest.raises(RecursionError):
            endless(0)


def test_generators_run_as_they_are(swaps):
    @swaps.add
    def numbers(n):
        for i in range(n):
            yield (yield i) or i

    @swaps.add
    def use(n):
        return list(numbers(n)), sum(x for x in numbers(n)), [*map(lambda q: q + 1, numbers(n))]

    want = use(7)
    with hook.enabled(swaps):
        assert use(7) == want


def test_locals_and_kept_frames(swaps):
    kept = []

    @swaps.add
    def f(x):
        y = x
        kept.append(sys._getframe())
        return dict(locals(), y=y)

    thing = Thing()
    before = sys.getrefcount(thing)
    with hook.enabled(swaps):
        found = f(thing)
    assert found["x"] is found["y"] is kept[0].f_locals["y"] is thing
    kept.clear()
    del found
    gc.collect()
    assert sys.getrefcount(thing) == before


@pytest.mark.parametrize("install", [sys.settrace, sys.setprofile])
def test_tracers_and_profilers_see_the_same_events(swaps, install):
    events = []

    @swaps.add
    def outer(x):
        y = x
        return inner(y)

    @swaps.add
    def inner(y):
        return y

    def tracer(frame, event, argument):
        if frame.f_code.co_name in ("outer", "inner"):
            events.append(event)
        return tracer

    def run():
        previous = sys.gettrace() if install is sys.settrace else sys.getprofile()
        events.clear()
        install(tracer)
        try:
            outer(1)
        finally:
            install(previous)
        return list(events)

    want = run()
    with hook.enabled(swaps):
        got = run()
    assert got == want


def test_activation_is_per_thread(swaps):
    def f(x):
        return x

    def negative(x):
        return -x

    swaps.add(f, negative.__code__)
    results = [None] * 6

    def work(k):
        if k % 2 == 0:
            with hook.enabled(swaps):
                results[k] = {f(i + 1) < 0 for i in range(2000)}
        else:
            results[k] = {f(i + 1) < 0 for i in range(2000)}

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert results == [{k % 2 == 0} for k in range(6)]


def test_frames_that_grow_across_data_stack_chunks():
    def deep(n, *pad):
        return n if n == 0 else deep(n - 1, *pad)

    larger = deep.__code__.replace(co_stacksize=300)

    def grow(function, code, arguments):
        return larger if code is deep.__code__ else None

    for pad in range(12):
        with hook.enabled(grow):
            assert deep(120, *range(pad)) == 0
    hook.reserve(deep.__code__, larger)
    misfits = hook.hook().misfits.value
    for pad in range(12):
        with hook.enabled(grow):
            assert deep(120, *range(pad)) == 0
    assert hook.hook().misfits.value == misfits


def test_a_lookup_dies_with_its_code_object():
    class Lookup:
        def __call__(self, function, *arguments):
            return None

    namespace = {}
    exec("def q(): return 1", namespace)
    lookup = Lookup()
    alive = weakref.ref(lookup)
    hook.set_lookup(namespace["q"].__code__, lookup)
    del lookup
    with hook.enabled(lambda *a: None):
        namespace["q"]()
    assert alive() is not None
    namespace.clear()
    gc.collect()
    assert alive() is None


def test_a_lookup_answers_before_the_callback():
    def f(x):
        return x

    def other(x):
        return x + 100

    def plain(x):
        return x

    hook.set_lookup(f.__code__, lambda function, x: other.__code__ if x == 1 else None)
    hook.skip(plain.__code__)
    asked = []
    with hook.enabled(lambda function, code, arguments: asked.append(code)):
        assert (f(1), f(2), plain(3)) == (101, 2, 3)
    assert asked.count(f.__code__) == 1 and plain.__code__ not in asked


def test_a_replacement_with_other_locals_constants_and_cells(swaps):
    def small(x, y):
        return x

    def large(x, y):
        a = b = c = d = 7

        def h():
            return x, a

        try:
            raise KeyError
        except KeyError:
            b = 9
        return h(), b, y, c, d

    swaps.add(small, large.__code__)
    thing = Thing()
    before = sys.getrefcount(thing)
    with hook.enabled(swaps):
        assert small(thing, 2) == ((thing, 7), 9, 2, 7, 7)
    gc.collect()
    assert sys.getrefcount(thing) == before


def test_no_memory_is_lost(swaps):
    @swaps.add
    def f(p, *q, **r):
        return [p, q, r]

    def work():
        for _ in range(20000):
            f(1, 2, a=3)

    with hook.enabled(swaps):
        work()
        start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(4):
            work()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start < 2000


def test_inside_an_except_block_with_collection_in_the_callback(swaps):
    @swaps.add
    def f(x):
        return [x]

    def collecting(function, code, arguments):
        gc.collect(0)
        return swaps(function, code, arguments)

    with hook.enabled(collecting):
        try:
            raise KeyError("outer")
        except KeyError:
            assert f(1) == [1]
            assert sys.exc_info()[0] is KeyError


def test_exec_and_class_bodies(swaps):
    source = (
        "class A:\n"
        "  x = [i for i in range(3)]\n"
        "  def m(self, k=lambda: 3): return super().__repr__(), k()\n"
        "r = A().m()[1]"
    )
    namespace = {}
    with hook.enabled(swaps):
        exec(source, namespace)
    assert namespace["r"] == 3


def test_functions_that_only_c_code_calls(swaps):
    class P:
        def __init__(self, v):
            self.v = v

        @property
        def w(self):
            return self.v

        def __lt__(self, other):
            return self.v < other.v

    for function in (P.__init__, P.w.fget, P.__lt__):
        swaps.add(function)
    with hook.enabled(swaps):
        assert [p.w for p in sorted(P(i * 7 % 11) for i in range(11))] == list(range(11))

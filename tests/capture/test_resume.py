"""Leaving a function before every one of its instructions and coming back gives the same answer."""

import pytest

from flambeau.capture.capture import Options
from flambeau.capture.outputs import eager_runner
from flambeau.compile import config, records
from flambeau.compile.compiled import Compiled

log = []


class Manager:
    def __enter__(self):
        log.append("in")
        return 10

    def __exit__(self, *error):
        log.append(("out", error[0] and error[0].__name__))
        return error[0] is KeyError


def effect(v):
    log.append(v)
    return v * 2


def boom(v):
    if v == 3:
        raise KeyError(v)
    return v


def with_in_loop(x, xs):
    total = 0
    with Manager() as c:
        for v in xs:
            total = total + (x * effect(v) + c)
            if total > 100:
                break
    return total


def handlers(x, xs):
    out = []
    try:
        for i, v in enumerate(xs):
            with Manager():
                out.append(max(x, effect(boom(v) + len([w * x for w in range(i)]))))
    except ValueError:
        out.append("ve")
    finally:
        log.append("fin")
    return out, x


def closures(x, xs, *a, k=3, **kw):
    acc = 0

    def inner(z):
        nonlocal acc
        acc += z
        return acc + x

    r = [inner(v) for v in xs]
    x = x + 1
    d = {"a": inner(1), **kw}
    return r, acc, x, a, k, d, inner(2), f"{x}:{k!r:>5}"


offset = 5


def make():
    q = 7

    def unbound(x, xs):
        if x > 2:
            w = q
        else:
            z = q
        s = "".join(sorted(str(v) for v in xs))
        while x < 12 and not (x == 9):
            x += q - offset
        try:
            return w, s, x
        except UnboundLocalError:
            return z, s, x

    return unbound


class K:
    def __init__(self, n):
        self.n = n

    def m(self, xs):
        return sum(t.n if isinstance(t, K) else t for t in xs) + self.n


def objects(x, xs):
    k = K(x)
    a, *b = xs
    assert k.m(xs) > 0, "no"
    del a
    return k.m([k, *b]) if len(b) else k.m([k]), (lambda t, u=x: t + u)(3)


class Base:
    def greet(self, n):
        return n + 1


class Derived(Base):
    def greet(self, n):
        values = [super().greet(n)]
        values.append(self.__class__.__name__)
        return values, super().greet(n * 2)


def matching(x, xs):
    found = []
    for v in [*xs, {"a": x}, (x, *xs)]:
        match v:
            case int() if v > 1:
                found.append(("int", v))
            case {"a": y}:
                found.append(("map", y))
            case [first, *rest]:
                found.append((first, rest))
            case _:
                found.append("other")
    return found


def many_locals(a, b):
    c = a
    d = b
    e = c
    f = d
    g = e + f
    h = g
    i = h
    j = i
    k = j
    m = k
    n = m
    o = n
    p = o
    q = p
    r = q
    s = r
    t = s + a
    return [c, d, e, f], (g, h), (i, j), k, m, n, o, p, q, (r, s, t)


CASES = {
    "with_in_loop": (with_in_loop, (3, [1, 2, 3])),
    "break_of_loop": (with_in_loop, (30, [1, 2, 3])),
    "handlers": (handlers, (3, [1, 2, 3, 4])),
    "closures": (closures, (3, [1, 2, 3], 9, 8)),
    "unbound_then": (make(), (3, [1, 2])),
    "unbound_else": (make(), (1, [1, 2])),
    "objects": (objects, (4, [1, 2, 3])),
    "objects_short": (objects, (4, [1])),
    "super": (Derived.greet, (Derived(), 3)),
    "matching": (matching, (4, [1, 2, 3])),
    "many_locals": (many_locals, (1, 2)),
}


def outcome(function, arguments):
    log.clear()
    try:
        result = ("ok", function(*arguments))
    except Exception as error:
        result = ("raised", type(error).__name__, str(error))
    return result, list(log)


@pytest.mark.parametrize("name", CASES)
def test_every_instruction(name, monkeypatch):
    monkeypatch.setattr(config, "raise_internal_errors", True)
    function, arguments = CASES[name]
    want = outcome(function, arguments)
    broken = 0
    for stop in range(1, 400):
        records.collected.append([])
        compiled = Compiled(function, Options(eager_runner, stop=stop))
        assert outcome(compiled, arguments) == want, stop
        assert outcome(compiled, arguments) == want, stop
        seen = records.collected.pop()
        captures = [what for kind, _, what in seen if kind == "capture"]
        if captures and captures[0].broken is not None:
            broken += 1
        elif captures:
            break
    assert broken > 5

"""Every program of the corpus gives compiled what it gives eager: results, effects, output."""

import copy
import re
import warnings

import pytest

import flambeau as torch
from flambeau.compile import config, records
from tests.compile import library_programs  # noqa: F401  its programs join the corpus
from tests.compile.programs import PROGRAMS
from tests.compile.training_programs import SETTLED


def plain(value):
    """A value that can be compared: tensors as (dtype, shape, numbers, needs grad)."""
    if isinstance(value, torch.Tensor):
        numbers = value.detach().tolist()
        return ("tensor", str(value.dtype), tuple(value.shape), repr(numbers), value.requires_grad)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (type(value).__name__, *map(plain, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def outcomes(make, transform, capsys):
    import random

    from tests.compile import programs

    programs.COUNTER = 0
    torch.manual_seed(0)
    random.seed(0)
    function, calls, observe = make()
    function = transform(function)
    results = []
    for args in calls:
        torch.manual_seed(1)
        try:
            results.append(("ok", plain(function(*args))))
        except Exception as error:
            results.append(("raised", type(error).__name__, str(error)))
        results.append(plain(args))
        results.append(plain(observe()) if observe else None)
    return results, capsys.readouterr().out


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, capsys, monkeypatch):
    monkeypatch.setattr(config, "raise_internal_errors", True)
    want = outcomes(PROGRAMS[name], lambda f: f, capsys)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", records.CompileWarning)
        got = outcomes(PROGRAMS[name], lambda f: torch.compile(f, backend="eager"), capsys)
    assert got == want


NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_in_native_kernels(name, capsys, monkeypatch):
    """Fused kernels round differently: everything but the last digits must be the same."""
    monkeypatch.setattr(config, "raise_internal_errors", True)
    want = repr(outcomes(PROGRAMS[name], lambda f: f, capsys))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", records.CompileWarning)
        got = repr(outcomes(PROGRAMS[name], torch.compile, capsys))
    assert NUMBER.sub("#", got) == NUMBER.sub("#", want)
    numbers = [[float(n) for n in NUMBER.findall(text)] for text in (got, want)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-4, abs=1e-5)


def recorded(name):
    """What happened while the calls of a program were captured: (kind, site, what) each."""
    seen = []
    records.collected.append(seen)
    try:
        function, calls, _ = PROGRAMS[name]()
        compiled = torch.compile(function, backend="eager")
        for args in calls:
            try:
                compiled(*copy.copy(args))
            except Exception:
                continue
    finally:
        records.collected.remove(seen)
    return seen


def breaks(name):
    """Why the program is not one graph: reasons of all breaks and skips."""
    seen = recorded(name)
    found = [w.broken.reason for k, _, w in seen if k == "capture" and w.broken is not None]
    return found + [w for k, _, w in seen if k == "skip" and "raises" not in w]


@pytest.mark.parametrize("name", SETTLED)
def test_training_step_is_one_graph_soon(name):
    """No break, and after the first calls no capture for each further batch."""
    captures = [what for kind, _, what in recorded(name) if kind == "capture"]
    assert [c.broken for c in captures if c.broken is not None] == []
    assert 1 <= len(captures) <= SETTLED[name]


def test_share_without_breaks(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        broken = {n: b for n in PROGRAMS if not n.endswith("_io") and (b := breaks(n))}
    total = sum(not n.endswith("_io") for n in PROGRAMS)
    with capsys.disabled():
        print(f"\n{total - len(broken)} of {total} programs without a graph break", end="; ")
        print(f"broken: {sorted(broken)}")
    assert len(broken) <= 0.05 * total

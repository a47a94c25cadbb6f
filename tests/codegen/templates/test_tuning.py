"""Every plan that is timed computes the product; what was fastest is remembered."""

import ctypes
import time
from dataclasses import replace

import numpy as np
import pytest

import flambeau as torch
from flambeau.codegen import target, templates
from flambeau.codegen.templates import tuning
from flambeau.codegen.templates.epilogue import named
from flambeau.codegen.templates.gemm_plan import GemmSpec
from flambeau.runtime import pool

SPECS = [
    GemmSpec(70, 100, 300),
    GemmSpec(130, 65, 520, trans_a=True),
    GemmSpec(40, 200, 129, trans_b=True, epilogue=named("bias")),
    GemmSpec(33, 90, 64, "float64", trans_a=True, trans_b=True, lda=40, ldc=96),
    GemmSpec(20, 48, 96, batch=(3, 2), batch_a=(2000, 0), batch_b=(0, 5000), batch_c=(2000, 1000)),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_all_candidates_compute_the_same(spec):
    host, threads = target.host(), pool.get_num_threads()
    known = tuning.candidates(spec, host, threads)
    assert len(known) > 2 and next(iter(known)) == "usual"
    memory = tuning.operands(spec)
    wanted = tuning.outcome(templates._gemm(spec, host, threads), memory)
    for plan in known.values():
        got = tuning.outcome(templates._gemm(spec, host, threads, plan), memory)
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-4)


def test_the_usual_plan_computes_the_product():
    spec = GemmSpec(33, 65, 300)
    a, b, c = tuning.operands(spec)
    templates.gemm(33, 65, 300)(*[x.ctypes.data for x in (a, b, c)])
    wanted = a.reshape(33, 300).astype(np.float64) @ b.reshape(300, 65).astype(np.float64)
    np.testing.assert_allclose(c.reshape(33, 65), wanted, rtol=1e-4, atol=1e-4)


def writing(value: float, seconds: float = 0.0):
    def program(a, b, c):
        time.sleep(seconds)
        ctypes.c_float.from_address(c).value = value

    return program


def test_what_is_clearly_faster_is_chosen():
    spec = GemmSpec(4, 4, 4)
    assert tuning.fastest(spec, {"usual": writing(1, 0.01), "other": writing(1)}) == "other"
    assert tuning.fastest(spec, {"usual": writing(1), "other": writing(1, 0.01)}) == "usual"


def test_what_computes_something_else_is_not():
    programs = {"usual": writing(1, 0.01), "other": writing(2)}
    assert tuning.fastest(GemmSpec(4, 4, 4), programs) == "usual"


@pytest.fixture
def forgotten(monkeypatch, tmp_path):
    """An empty cache on disk, and nothing in this process's."""
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "cache"))
    templates._tuned.cache_clear()
    yield
    templates._tuned.cache_clear()


def test_a_choice_is_remembered(forgotten, monkeypatch):
    spec = GemmSpec(50, 60, 70)
    host, threads = target.host(), pool.get_num_threads()
    label = list(tuning.candidates(spec, host, threads))[1]
    monkeypatch.setattr(tuning, "fastest", lambda spec, programs: label)
    with tuning.tuning():
        templates.gemm(50, 60, 70)
    first = templates._tuned(spec, host, threads)
    assert first == tuning.candidates(spec, host, threads)[label]

    def timed_again(spec, programs):
        raise AssertionError("the choice is on disk")

    templates._tuned.cache_clear()
    monkeypatch.setattr(tuning, "fastest", timed_again)
    assert templates._tuned(spec, host, threads) == first


def test_nothing_is_timed_unless_asked(forgotten, monkeypatch):
    def timed(spec, programs):
        raise AssertionError("nobody asked")

    monkeypatch.setattr(tuning, "fastest", timed)
    templates.gemm(51, 61, 71)
    with tuning.tuning(False):
        templates.gemm(52, 61, 71)


def test_products_without_a_choice_are_left_alone():
    host = target.host()
    spec = GemmSpec(64, 64, 64)
    assert tuning.suits(spec, host)
    for other in (replace(spec, m=1), replace(spec, dtype="bfloat16"),
                  GemmSpec(1 << 14, 1 << 14, 1 << 14)):
        assert not tuning.suits(other, host)


def test_a_tuned_program_computes_what_eager_does(forgotten):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(40, 64), torch.nn.GELU(), torch.nn.Linear(64, 64), torch.nn.Linear(64, 5)
    )
    x = torch.randn(48, 40)
    compiled = torch.compile(model, mode="max-autotune", options={"tier": "sync"})
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)

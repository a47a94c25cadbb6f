"""Recipes: a second process finds the code without generating it."""

import ctypes
import threading

import pytest

from flambeau.codegen import target
from flambeau.codegen.templates.epilogue import NAMED
from flambeau.codegen.templates.gemm_plan import GemmSpec
from flambeau.runtime import elf, jit, object_cache, recipes

TEXT = "define i64 @answer() {\n  ret i64 NUMBER\n}\n"


@pytest.fixture
def made(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "cache"))
    calls = []

    def make(number, *parameters):
        def generate():
            calls.append(parameters)
            return TEXT.replace("NUMBER", str(number)), {"number": number}

        chosen = target.host()
        library, facts = recipes.library(
            parameters, generate, cpu=chosen.cpu, features=chosen.features, level=1)
        return library.function("answer", ctypes.c_int64)(), facts, len(calls)

    return make


def test_equal_parameters_generate_once(made):
    if not elf.is_elf(object_cache.read(jit.load(TEXT.replace("NUMBER", "3")).key) or b""):
        pytest.skip("objects tell what they need on ELF systems only")
    assert made(41, "a", 1) == (41, {"number": 41}, 1)
    assert made(41, "a", 1) == (41, {"number": 41}, 1)
    assert made(42, "a", 2) == (42, {"number": 42}, 2)


def test_a_lost_object_is_made_again(made, monkeypatch):
    made(7, "lost")
    monkeypatch.setattr(jit, "known", lambda key, names: None)
    assert made(7, "lost")[::2] == (7, 2)


def test_parameters_are_told_apart_without_addresses():
    plain, biased = GemmSpec(2, 3, 4), GemmSpec(2, 3, 4, epilogue=NAMED["bias_relu"])
    texts = {recipes.described((s, n)) for s in (plain, biased) for n in (1, 2)}
    assert len(texts) == 4
    assert not any(" at 0x" in text for text in texts)


def test_threads_that_want_the_same_generate_once(made, monkeypatch):
    chosen, calls, results = target.host(), [], []
    started, going = threading.Event(), threading.Event()

    def generate():
        calls.append(1)
        started.set()
        assert going.wait(600)
        return TEXT.replace("NUMBER", "17"), {}

    def ask():
        results.append(recipes.library(
            ("same",), generate, cpu=chosen.cpu, features=chosen.features, level=1)[0])

    first = threading.Thread(target=ask)
    first.start()
    assert started.wait(600)
    others = [threading.Thread(target=ask) for _ in range(3)]
    for thread in others:
        thread.start()
    going.set()
    for thread in (first, *others):
        thread.join()
    assert len(calls) == 1
    assert [x.function("answer", ctypes.c_int64)() for x in results] == [17] * 4
    assert not recipes._flights


def test_a_failure_is_not_shared(made):
    chosen = target.host()

    def fail():
        raise ArithmeticError("once")

    with pytest.raises(ArithmeticError):
        recipes.library(("fails",), fail, cpu=chosen.cpu, features=chosen.features, level=1)
    assert made(5, "fails")[0] == 5

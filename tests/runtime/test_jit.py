"""Compiling, linking and refusing."""

from __future__ import annotations

import ctypes
import os
import threading
import warnings

import pytest

from flambeau.core.errors import OpError
from flambeau.runtime import elf, jit

INCREMENT = """define i64 @increment(i64 %x) {
  %y = add i64 %x, STEP
  ret i64 %y
}
"""


def increment(step: int):
    library = jit.load(INCREMENT.replace("STEP", str(step)))
    return library.function("increment", ctypes.c_int64, ctypes.c_int64)


def test_equal_names_of_different_texts_do_not_clash():
    assert [increment(step)(10) for step in (1, 2, 1)] == [11, 12, 11]


def test_unknown_symbol_is_refused():
    text = "declare void @no_such_symbol_anywhere()\n"
    text += "define void @entry() {\n  call void @no_such_symbol_anywhere()\n  ret void\n}\n"
    with pytest.raises(OpError, match="unknown=no_such_symbol_anywhere"):
        jit.load(text)


def test_symbols_of_the_process_are_found():
    text = "declare i64 @labs(i64)\n"
    text += "define i64 @entry(i64 %x) {\n  %y = call i64 @labs(i64 %x)\n  ret i64 %y\n}\n"
    assert jit.load(text).function("entry", ctypes.c_int64, ctypes.c_int64)(-5) == 5


def test_bad_text_raises():
    with pytest.raises(RuntimeError, match="parsing"):
        jit.load("define i64 @broken( {\n}\n")


def test_threads_may_compile_at_once():
    results = {}

    def work(step: int) -> None:
        results[step] = increment(1000 + step)(0)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {i: 1000 + i for i in range(8)}


def test_cross_compilation_to_aarch64():
    text = """define <4 x float> @f(<4 x float> %a, <4 x float> %b) {
  %c = fadd <4 x float> %a, %b
  ret <4 x float> %c
}
"""
    code = jit.assembly(text, cpu="generic", features="", triple="aarch64-unknown-linux-gnu")
    assert "fadd\tv0.4s" in code


def test_elf_reader_ignores_other_files():
    assert not elf.is_elf(b"MZ")
    assert not elf.is_elf(b"")


def test_second_process_does_not_compile(child, tmp_path):
    program = """
from flambeau.runtime import jit
print(jit.load("define i64 @f() {\\n  ret i64 7\\n}\\n").from_cache)
"""
    first = child(program, FLAMBEAU_CACHE=str(tmp_path / "cache"))
    second = child(program, FLAMBEAU_CACHE=str(tmp_path / "cache"))
    assert (first, second) == ("False", "True")


def test_fork_while_another_thread_compiles(child):
    program = """
import os, threading
from flambeau.runtime import jit
text = "define i64 @f() {\\n  ret i64 %d\\n}\\n"
stop = []
def work():
    i = 0
    while not stop:
        jit.load(text % i); i += 1
t = threading.Thread(target=work); t.start()
import warnings; warnings.simplefilter("ignore")
for _ in range(5):
    pid = os.fork()
    if not pid:
        jit.load(text % -1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop.append(1); t.join()
print("fine")
"""
    assert child(program, FLAMBEAU_CACHE="off") == "fine"


def test_threads_compile_at_once_and_a_fork_waits_for_them(monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE", "off")
    answers: dict[int, int] = {}

    def work(k: int) -> None:
        text = f"define i64 @at_once{k}() {{\n  ret i64 {k}\n}}\n"
        made = jit.load(text)
        answers[k] = made.function(f"at_once{k}", ctypes.c_int64)()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        work(99)
        os._exit(0 if answers[99] == 99 else 1)
    for thread in threads:
        thread.join()
    assert os.waitpid(pid, 0)[1] == 0
    assert answers == {k: k for k in range(6)}

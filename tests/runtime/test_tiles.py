"""Tile registers are asked for once, and forked children keep them."""

from __future__ import annotations

from flambeau.runtime import tiles


def test_the_answer_does_not_change():
    assert tiles.permitted() is tiles.permitted()


def test_other_systems_have_none(monkeypatch):
    monkeypatch.setattr(tiles.sys, "platform", "darwin")
    assert tiles.permitted.__wrapped__() is False


def test_forked_child_multiplies_bfloat16(child):
    program = """
import os, warnings
import ml_dtypes, numpy as np
from flambeau.codegen import templates
warnings.simplefilter("ignore")
a = np.ones((64, 64), ml_dtypes.bfloat16)
program = templates.gemm(64, 64, 64, "bfloat16")
def run():
    c = np.zeros_like(a)
    program(a.ctypes.data, a.ctypes.data, c.ctypes.data)
    return (c.astype("f4") == 64).all()
assert run()
pid = os.fork()
if not pid:
    os._exit(0 if run() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print("fine")
"""
    assert child(program) == "fine"

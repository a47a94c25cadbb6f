"""Recurrent sequences and their gradients against the reference in float64, inside of canaries."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen import templates
from flambeau.codegen.templates.recurrent_spec import RecurrentSpec
from flambeau.ops import recurrence
from flambeau.runtime import pool
from tests.codegen.templates.conftest import Guarded, relative

SIZES = [(1, 1, 1), (4, 3, 5), (3, 14, 16), (2, 9, 35), (5, 31, 64)]
CELLS = ["lstm", "gru", "tanh", "relu"]


def operands(spec: RecurrentSpec, rng) -> dict[str, np.ndarray]:
    """What both passes read, the results of the forward pass included; float64."""
    n, rows = spec.groups * spec.size, spec.batch
    x = dict(gates=rng.normal(size=(spec.steps, rows, n)), h=rng.normal(size=(rows, spec.size)))
    x.update(c=rng.normal(size=(rows, spec.size)), w=rng.normal(size=(n, spec.size)) / n**0.5)
    x.update(b=rng.normal(size=n), ct_out=rng.normal(size=(spec.steps, rows, spec.size)))
    x.update(ct_h=rng.normal(size=(rows, spec.size)), ct_c=rng.normal(size=(rows, spec.size)))
    return {name: a.astype(spec.dtype).astype("f8") for name, a in x.items()}


def forward(spec: RecurrentSpec, x: dict) -> dict[str, np.ndarray]:
    on, b = recurrence.Arrays, x["b"] if spec.bias else None
    if spec.cell == "lstm":
        found = recurrence.lstm_steps(on, x["gates"], x["h"], x["c"], x["w"], b, spec.reverse)
        return dict(zip(("out", "last_h", "last_c", "kept"), found, strict=True))
    if spec.cell == "gru":
        found = recurrence.gru_steps(on, x["gates"], x["h"], x["w"], b, spec.reverse)
        return dict(zip(("out", "last_h", "kept"), found, strict=True))
    relu = spec.cell == "relu"
    found = recurrence.rnn_steps(on, x["gates"], x["h"], x["w"], b, spec.reverse, relu)
    return dict(zip(("out", "last_h"), found, strict=True))


def backward(spec: RecurrentSpec, x: dict) -> dict[str, np.ndarray]:
    on = recurrence.Arrays
    out, h, c = (x[f"ct_{name}"] if name in spec.given else None for name in ("out", "h", "c"))
    if spec.cell == "lstm":
        found = recurrence.lstm_steps_back(
            on, out, h, c, x["c"], x["w"], x["kept"], spec.reverse)
        return dict(zip(("d_gates", "d_h", "d_c"), found, strict=True))
    if spec.cell == "gru":
        found = recurrence.gru_steps_back(
            on, out, h, x["h"], x["w"], x["out"], x["kept"], spec.reverse)
        return dict(zip(("d_gates", "d_hidden", "d_h"), found, strict=True))
    relu = spec.cell == "relu"
    found = recurrence.rnn_steps_back(on, out, h, x["h"], x["w"], x["out"], spec.reverse, relu)
    return dict(zip(("d_gates", "d_h"), found, strict=True))


def run(program, pointers: tuple, x: dict, wanted: dict, dtype: str) -> dict[str, np.ndarray]:
    made = {n: Guarded(a.shape, dtype) for n, a in wanted.items() if n in pointers}
    given = {n: np.ascontiguousarray(x[n], dtype) for n in pointers if n not in made}
    program(*[made[n].address if n in made else given[n].ctypes.data for n in pointers])
    return {n: g.check() for n, g in made.items()}


def check(cell, sizes, rng, dtype="float32", bound=2e-5, **how) -> None:
    spec = RecurrentSpec(cell, *sizes, dtype=dtype, **how)
    x = operands(spec, rng)
    wanted = forward(spec, x)
    found = run(templates.recurrent_forward(spec), spec.forward_pointers, x, wanted, dtype)
    assert found.keys() == wanted.keys() - (set() if spec.keep else {"kept"})
    for name, got in found.items():
        assert relative(got, wanted[name]) < bound, name
    x.update(wanted)
    wanted = backward(spec, x)
    found = run(templates.recurrent_backward(spec), spec.backward_pointers, x, wanted, dtype)
    assert found.keys() == wanted.keys()
    for name, got in found.items():
        assert relative(got, wanted[name]) < bound, name


@pytest.mark.parametrize("cell", CELLS)
def test_all_steps_of_all_sizes(cell, level, rng):
    for k, sizes in enumerate(SIZES):
        given = [("out", "h"), ("out",), ("h",)][k % 3] + (("c",) if cell == "lstm" else ())
        check(cell, sizes, rng, reverse=bool(k % 2), bias=k % 3 > 0, given=given)


@pytest.mark.parametrize("cell", CELLS)
def test_float64_and_nothing_kept(cell, rng):
    check(cell, (3, 7, 19), rng, "float64", 1e-13, reverse=True, bias=True, given=("out",))
    check(cell, (3, 7, 19), rng, reverse=False, bias=True, given=("out",), keep=False)


@pytest.mark.parametrize("cell", CELLS)
def test_threads_change_no_bit(cell, rng):
    spec = RecurrentSpec(cell, 12, 37, 64, False, True, given=("out",))
    x = operands(spec, rng)
    wanted = forward(spec, x)
    x.update(wanted)
    before, found = pool.get_num_threads(), []
    try:
        for threads in (1, 2):
            pool.set_num_threads(threads)
            made = run(templates.recurrent_forward(spec), spec.forward_pointers, x, wanted,
                       "float32")  # fmt: skip
            made |= run(templates.recurrent_backward(spec), spec.backward_pointers, x,
                        backward(spec, x), "float32")  # fmt: skip
            found.append(made)
    finally:
        pool.set_num_threads(before)
    for name, one in found[0].items():
        np.testing.assert_array_equal(one, found[1][name], err_msg=name)

"""Generated builtins convert, refuse and never crash."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.runtime import builtin, jit

STORE = """define i64 @store(ptr %p, i64 %i, double %d, float %f) #0 {
  %fd = fpext float %f to double
  %fi = sitofp i64 %i to double
  %a = fadd double %d, %fd
  %b = fadd double %a, %fi
  store double %b, ptr %p
  %bad = icmp eq i64 %i, 99
  %status = zext i1 %bad to i64
  ret i64 %status
}
attributes #0 = { nounwind }
"""


@pytest.fixture(params=["builtin", "ctypes"])
def store(request, monkeypatch):
    text = STORE + builtin.DECLARATIONS
    text += builtin.trampoline("store_call", "store", "pidf", status=True, release_gil=True)
    library = jit.load(text)
    if request.param == "ctypes":
        monkeypatch.setattr(builtin, "is_supported", lambda: False)
    return builtin.wrap(library, "store_call", "store", "pidf", status=True)


def test_arguments_arrive(store):
    out = np.zeros(1)
    assert store(out.ctypes.data, -3, 0.25, 0.5) is None
    assert out[0] == -2.25


def test_memory_error(store):
    out = np.zeros(1)
    with pytest.raises(MemoryError):
        store(out.ctypes.data, 99, 0.0, 0.0)


@pytest.mark.parametrize("bad", [(), (1,), (1, 2, 3.0), (1, 2, 3.0, 4.0, 5)])
def test_wrong_number_of_arguments(bad):
    text = STORE + builtin.DECLARATIONS + builtin.trampoline("call", "store", "pidf", status=True)
    call = builtin.wrap(jit.load(text), "call", "store", "pidf", status=True)
    with pytest.raises(TypeError, match=f"takes 4 arguments but {len(bad)} were given"):
        call(*bad)


@pytest.mark.parametrize(
    "bad", [("x", 1, 1.0, 1.0), (0, "x", 1.0, 1.0), (0, 1, "x", 1.0), (0, 1, 1.0, None)]
)
def test_wrong_types(bad):
    text = STORE + builtin.DECLARATIONS + builtin.trampoline("call", "store", "pidf", status=True)
    call = builtin.wrap(jit.load(text), "call", "store", "pidf", status=True)
    with pytest.raises(TypeError):
        call(*bad)


def test_too_large_an_int():
    text = STORE + builtin.DECLARATIONS + builtin.trampoline("call", "store", "pidf", status=True)
    call = builtin.wrap(jit.load(text), "call", "store", "pidf", status=True)
    with pytest.raises(OverflowError):
        call(0, 1 << 80, 1.0, 1.0)


def test_minus_one_is_a_value(store):
    out = np.zeros(1)
    store(out.ctypes.data, -1, -1.0, -1.0)
    assert out[0] == -3.0

"""Random draws as kernels: they fill memory from a state that they are told the address of.

A draw's context has two words, the address of the state that NumPy's generator keeps and that of
the memory. Whoever calls holds the generator's lock. The words are taken in the order and number in
which the laws of `runtime.draws` take them, so the bits are the same.
"""

from __future__ import annotations

import ctypes
import math
import weakref

import numpy as np

from flambeau.runtime import box_muller, forms, jit, twister
from flambeau.runtime.rounding import F32, stored, working

CHOICE_NANOSECONDS, NORMAL_NANOSECONDS, UNIT_NANOSECONDS = 1.2, 2.5, 0.6  # an element

_HEAD = r"""
define internal i64 @word(ptr %p, i64 %k) alwaysinline {
  %at = getelementptr i64, ptr %p, i64 %k
  %x = load i64, ptr %at
  ret i64 %x
}
"""

_CHOICE = r"""
define i64 @choiceBITS(ptr %d, ptr %context) {
  %state = load ptr, ptr %context
  %op = getelementptr i64, ptr %context, i64 1
  %out = load ptr, ptr %op
  %count = call i64 @word(ptr %d, i64 0)
  %limit = call i64 @word(ptr %d, i64 1)
  %vp = getelementptr i64, ptr %d, i64 2
  %value = load iBITS, ptr %vp
  call void @chosenBITS(ptr %state, ptr %out, i64 %count, i64 %limit, iBITS %value)
  ret i64 0
}
"""

_UNIT = r"""
define i64 @unit(ptr %d, ptr %context) {
entry:
  %state = load ptr, ptr %context
  %op = getelementptr i64, ptr %context, i64 1
  %out = load ptr, ptr %op
  %count = call i64 @word(ptr %d, i64 0)
  call void @words(ptr %state, ptr %out, i64 %count)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %p = getelementptr i32, ptr %out, i64 %i
  %w = load i32, ptr %p
  %low = and i32 %w, 16777215
  %x = uitofp i32 %low to float
  %y = fmul float %x, 0x3E70000000000000
  store float %y, ptr %p
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %count
  br i1 %more, label %loop, label %done
done:
  ret i64 0
}
"""

# Where there are fewer in the last block, their words are lost and the last sixteen drawn again.
_NORMAL = r"""
define i64 @normal(ptr %d, ptr %context) {
  %state = load ptr, ptr %context
  %op = getelementptr i64, ptr %context, i64 1
  %out = load ptr, ptr %op
  %unused = alloca [16 x i32]
  %blocks = call i64 @word(ptr %d, i64 0)
  %last = call i64 @word(ptr %d, i64 1)
  %mp = getelementptr i64, ptr %d, i64 2
  %mean = load float, ptr %mp
  %sp = getelementptr i64, ptr %d, i64 3
  %std = load float, ptr %sp
  call void @normals(ptr %state, ptr %out, i64 %blocks, float %mean, float %std)
  %lost = call i64 @word(ptr %d, i64 4)
  %some = icmp sgt i64 %lost, 0
  br i1 %some, label %rest, label %done
rest:
  call void @words(ptr %state, ptr %unused, i64 %lost)
  %end = getelementptr float, ptr %out, i64 %last
  call void @normals(ptr %state, ptr %end, i64 1, float %mean, float %std)
  br label %done
done:
  ret i64 0
}
"""


@jit.Once
def _choices() -> jit.Library:
    sizes = "".join(_CHOICE.replace("BITS", str(8 * n)) for n in (1, 2, 4, 8))
    return jit.load(twister.choices_text() + _HEAD + sizes + _UNIT)


@jit.Once
def _normals() -> jit.Library:
    return jit.load(box_muller.normals_text() + _HEAD + _NORMAL)


class Draw:
    """``draw(state address, address)``; it owns what its form describes."""

    __slots__ = ("__weakref__", "block", "library", "run")

    def __init__(self, library: jit.Library, name: str, words: list[int], nanoseconds: int):
        self.library = library
        self.block = (ctypes.c_int64 * len(words))(*words)
        self.run = library.function(name, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
        address = ctypes.addressof(self.block)
        forms.remember(self, forms.Form(
            library.address(name), address, 2, (0, 1), "ip", nanoseconds))

    def __call__(self, state: int, out: int) -> None:
        context = (ctypes.c_int64 * 2)(state, out)
        self.run(ctypes.addressof(self.block), ctypes.addressof(context))


_draws: weakref.WeakValueDictionary[tuple, Draw] = weakref.WeakValueDictionary()


def choice(count: int, dtype: np.dtype, p: float, value: np.ndarray) -> Draw:
    """`value` with probability p, else 0: `laws.yes_or_no`."""
    bits = int(value.reshape(1).view(f"i{dtype.itemsize}")[0])
    words = [count, math.ceil(p * 2.0**53), bits]
    key = ("choice", dtype.itemsize, *words)
    found = _draws.get(key)
    if found is None:
        found = _draws[key] = Draw(_choices(), f"choice{8 * dtype.itemsize}", words,
                                   int(count * CHOICE_NANOSECONDS))
    return found


def unit(count: int) -> Draw:
    """Uniform float32 in [0, 1): `Engine.unit24`."""
    key = ("unit", count)
    found = _draws.get(key)
    if found is None:
        found = _draws[key] = Draw(_choices(), "unit", [count], int(count * UNIT_NANOSECONDS))
    return found


def normal(count: int, mean: float, std: float) -> Draw:
    """mean + std z in float32, for 16 elements and more: `normals.in_blocks`."""
    whole, rest = divmod(count, box_muller.BLOCK)
    floats = [int(np.array(x, np.float32).view(np.int32)) for x in (mean, std)]
    words = [whole, count - box_muller.BLOCK, *floats, rest]
    key = ("normal", *words)
    found = _draws.get(key)
    if found is None:
        found = _draws[key] = Draw(_normals(), "normal", words, int(count * NORMAL_NANOSECONDS))
    return found


def draw_of(law: str, count: int, dtype: np.dtype, params: dict) -> Draw | None:
    """The kernel of a law's primitive, or None."""
    if law == "dropout_mask" and 0 <= params["p"] < 1:
        kind = working(dtype).type
        kept = stored(np.array(kind(1) / kind(1 - params["p"])), dtype)
        return choice(count, dtype, 1 - params["p"], kept)
    if law == "bernoulli" and 0 <= params["p"] <= 1 and dtype.itemsize <= 8:
        return choice(count, dtype, params["p"], np.ones((), dtype))
    if law == "uniform" and dtype == F32 and (params["low"], params["high"]) == (0, 1):
        return unit(count)
    if law == "normal" and dtype == F32 and count >= box_muller.BLOCK:
        fine = params["std"] >= 0 and math.isfinite(params["mean"] + params["std"])
        if fine and box_muller.is_supported():
            return normal(count, params["mean"], params["std"])
    return None

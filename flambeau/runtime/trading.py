"""Fisher and Yates' shuffle, natively: every trade depends on the one before."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from flambeau.runtime import jit

_IR = """
; place i of `out` trades with place i + words[i] mod (n - i), for each i in turn
define void @traded(ptr %words, ptr %out, i64 %n) #0 {
entry:
  %steps = sub i64 %n, 1
  %some = icmp sgt i64 %steps, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %wp = getelementptr i32, ptr %words, i64 %i
  %word = load i32, ptr %wp
  %left = sub i64 %n, %i
  %narrow = trunc i64 %left to i32
  %more = urem i32 %word, %narrow
  %far = zext i32 %more to i64
  %partner = add i64 %i, %far
  %p = getelementptr i64, ptr %out, i64 %i
  %q = getelementptr i64, ptr %out, i64 %partner
  %x = load i64, ptr %p
  %y = load i64, ptr %q
  store i64 %y, ptr %p
  store i64 %x, ptr %q
  %j = add i64 %i, 1
  %again = icmp slt i64 %j, %steps
  br i1 %again, label %loop, label %done
done:
  ret void
}
attributes #0 = { nounwind }
"""


@jit.Once
def _traded() -> Callable[[int, int, int], None]:
    pointer = ctypes.c_void_p
    return jit.load(_IR).function("traded", None, pointer, pointer, ctypes.c_int64)


def traded(words: np.ndarray, n: int) -> np.ndarray:
    """0 .. n-1 after place i has traded with place i + words[i] mod (n - i), for each i in turn.
    `words` are n - 1 contiguous uint32."""
    out = np.arange(n, dtype=np.int64)
    _traded()(words.ctypes.data, out.ctypes.data, n)
    return out

"""Blocks of sixteen float32 normals from the words of a Mersenne twister, by native code.

What `normals.transformed` does, with real fused multiply-adds: the same bits, at about the cost of
making the words. Sixteen uniforms make sixteen normals, two vectors of eight.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable

import numpy as np

from flambeau.runtime import cephes, jit, twister

BLOCK = 16
BLOCKS_AT_ONCE = 128  # their words stay in the nearest cache
F, I = "<8 x float>", "<8 x i32>"  # noqa: E741
LOW, HIGH = (", ".join(f"i32 {k}" for k in range(first, first + 8)) for first in (0, 8))


class Lines:
    """The instructions of one block, as text; each gives the name of its result."""

    def __init__(self) -> None:
        self.text: list[str] = []

    def line(self, instruction: str) -> str:
        name = f"%t{len(self.text)}"
        self.text.append(f"  {name} = {instruction}")
        return name

    def real(self, operation: str, a: str, b: str) -> str:
        return self.line(f"{operation} {F} {a}, {b}")

    def whole(self, operation: str, a: str, b: str) -> str:
        return self.line(f"{operation} {I} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        return self.line(f"call {F} @llvm.fma.v8f32({F} {a}, {F} {b}, {F} {c})")

    def as_real(self, x: str) -> str:
        return self.line(f"bitcast {I} {x} to {F}")

    def as_whole(self, x: str) -> str:
        return self.line(f"bitcast {F} {x} to {I}")

    def chosen(self, condition: str, a: str, b: str) -> str:
        return self.line(f"select <8 x i1> {condition}, {F} {a}, {F} {b}")

    def units(self, words: str) -> str:
        """The low 24 bits of words as numbers in [0, 1)."""
        low = self.whole("and", words, whole(0xFFFFFF))
        return self.real("fmul", self.line(f"uitofp {I} {low} to {F}"), real(2.0**-24))

    def polynomial(self, x: str, coefficients: list) -> str:
        p = real(coefficients[0])
        for c in coefficients[1:]:
            p = self.fma(p, x, real(c))
        return p


def real(x: float | np.floating) -> str:
    """A float32 constant in every lane, as LLVM writes it: the bits of the double."""
    bits = struct.unpack("<Q", struct.pack("<d", float(np.float32(x))))[0]
    return f"splat (float 0x{bits:016X})"


def whole(n: int) -> str:
    return f"splat (i32 {n - (1 << 32) if n >> 31 else n})"


def logarithm(f: Lines, x: str) -> str:
    """As `cephes.log32`."""
    bits = f.as_whole(x)
    shifted = f.whole("sub", f.whole("lshr", bits, whole(23)), whole(126))
    exponent = f.line(f"sitofp {I} {shifted} to {F}")
    mantissa = f.as_real(
        f.whole("or", f.whole("and", bits, whole(0x7FFFFF)), whole(0x3F000000)))
    low = f.line(f"fcmp olt {F} {mantissa}, {real(cephes.SQRT_HALF)}")
    exponent = f.chosen(low, f.real("fsub", exponent, real(1)), exponent)
    less = f.real("fsub", mantissa, real(1))
    y = f.chosen(low, f.real("fadd", less, mantissa), less)
    square = f.real("fmul", y, y)
    p = f.real("fmul", f.polynomial(y, cephes.LOG), y)
    p = f.fma(p, square, f.real("fmul", exponent, real(cephes.LN2_LOW)))
    p = f.real("fadd", p, f.real("fmul", square, real(-0.5)))
    return f.fma(exponent, real(cephes.LN2_HIGH), f.real("fadd", y, p))


def cosine_and_sine(f: Lines, x: str) -> tuple[str, str]:
    """As `cephes.sincos32`."""
    octant = f.line(f"fptosi {F} {f.real('fmul', x, real(cephes.FOUR_OVER_PI))} to {I}")
    octant = f.whole("and", f.whole("add", octant, whole(1)), whole(0xFFFFFFFE))
    octants = f.line(f"sitofp {I} {octant} to {F}")
    rest = x
    for part in cephes.QUARTER_PI:
        rest = f.fma(octants, real(part), rest)
    square = f.real("fmul", rest, rest)
    c = f.real("fmul", f.polynomial(square, cephes.COS), square)
    c = f.real("fadd", f.fma(c, square, f.real("fmul", square, real(-0.5))), real(1))
    s = f.real("fmul", f.polynomial(square, cephes.SIN), square)
    s = f.fma(s, rest, rest)
    swap = f.line(f"icmp ne {I} {f.whole('and', octant, whole(2))}, zeroinitializer")
    cos, sin = f.chosen(swap, s, c), f.chosen(swap, c, s)
    less = f.whole("xor", f.whole("sub", octant, whole(2)), whole(0xFFFFFFFF))
    return signed(f, cos, less), signed(f, sin, octant)


def signed(f: Lines, x: str, octant: str) -> str:
    """Negated where bit 2 of the octant is set."""
    sign = f.whole("and", f.whole("shl", octant, whole(29)), whole(1 << 31))
    return f.as_real(f.whole("xor", f.as_whole(x), sign))


def block() -> str:
    """The body of the loop over blocks: words at %p become normals at %o."""
    f = Lines()
    words = f.line("load <16 x i32>, ptr %p, align 4")
    first, second = (
        f.units(f.line(f"shufflevector <16 x i32> {words}, <16 x i32> poison, <8 x i32> <{half}>"))
        for half in (LOW, HIGH)
    )
    size = f.real("fmul", logarithm(f, f.real("fsub", real(1), first)), real(-2))
    radius = f.line(f"call {F} @llvm.sqrt.v8f32({F} {size})")
    for part, name in zip(
        cosine_and_sine(f, f.real("fmul", second, real(2 * np.pi))), ("%o", "%o8")
    ):
        normal = f.fma(f.real("fmul", part, radius), "%stds", "%means")
        f.text.append(f"  store {F} {normal}, ptr {name}, align 4")
    return "\n".join(f.text)


_IR = """
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare <8 x float> @llvm.sqrt.v8f32(<8 x float>)

define void @normals(ptr %state, ptr %out, i64 %blocks, float %mean, float %std) #0 {
entry:
  %words = alloca [WORDS x i32], align 64
  %m1 = insertelement <8 x float> poison, float %mean, i64 0
  %means = shufflevector <8 x float> %m1, <8 x float> poison, <8 x i32> zeroinitializer
  %s1 = insertelement <8 x float> poison, float %std, i64 0
  %stds = shufflevector <8 x float> %s1, <8 x float> poison, <8 x i32> zeroinitializer
  br label %part
part:
  %start = phi i64 [ 0, %entry ], [ %stop, %next ]
  %left = sub i64 %blocks, %start
  %few = icmp ult i64 %left, AT_ONCE
  %n = select i1 %few, i64 %left, i64 AT_ONCE
  %stop = add i64 %start, %n
  %more = icmp ne i64 %n, 0
  br i1 %more, label %make, label %done
make:
  %count = shl i64 %n, 4
  call void @words(ptr %state, ptr %words, i64 %count)
  br label %loop
loop:
  %i = phi i64 [ 0, %make ], [ %j, %loop ]
  %from = shl i64 %i, 4
  %p = getelementptr i32, ptr %words, i64 %from
  %here = add i64 %start, %i
  %to = shl i64 %here, 4
  %o = getelementptr float, ptr %out, i64 %to
  %o8 = getelementptr float, ptr %o, i64 8
BODY
  %j = add i64 %i, 1
  %again = icmp ult i64 %j, %n
  br i1 %again, label %loop, label %next
next:
  br label %part
done:
  ret void
}
"""


@jit.Once
def is_supported() -> bool:
    """Has the processor fused multiply-adds?"""
    architecture, _, features = jit.host()
    return architecture == "aarch64" or "+fma" in features.split(",")


def normals_text() -> str:
    """Code of ``void normals(ptr state, ptr out, i64 blocks, float mean, float std)``."""
    text = _IR.replace("WORDS", str(BLOCK * BLOCKS_AT_ONCE)).replace("AT_ONCE", str(BLOCKS_AT_ONCE))
    return twister.words_text() + text.replace("BODY", block())


@jit.Once
def _normals() -> Callable[[int, int, int, float, float], None]:
    library = jit.load(normals_text())
    pointer, real = ctypes.c_void_p, ctypes.c_float
    return library.function("normals", None, pointer, pointer, ctypes.c_int64, real, real)


def fill(state_address: int, out: np.ndarray, mean: float, std: float) -> None:
    """Normals all over a contiguous float32 array of whole blocks. Hold the generator's lock."""
    _normals()(state_address, out.ctypes.data, out.size // BLOCK, mean, std)

"""A list of kernel calls as one native call: addresses into contexts, then kernel after kernel.

A tape is a block of 64-bit words that one interpreter, compiled once, reads; making a tape compiles
nothing. Its callable takes the address of a frame (working memory of one run) and then tensors and
numbers, and gives a status. Tensors are read natively: an ndarray of the expected spec, or the
status is UNFIT and nothing has run. Every word of a context that an argument belongs to is written
anew for each run, as a kernel may use it for its own ends.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau.runtime import builtin, forms, jit, pool

DONE, UNFIT = 0, 3  # statuses; between them forms.INDEX_ERROR and forms.NO_MEMORY
TENSOR, INTEGER, DOUBLE = range(3)  # how an argument is read
LONG_NANOSECONDS = 200_000  # from here on other Python threads run meanwhile
FRAME = 0  # the source of a relocation that is the frame's own address
FAILED_CALL = 0  # the word of a frame that says which call has failed
HEADER_WORDS = 8

_IR = r"""
declare ptr @PyLong_FromLong(i64)
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
@PyExc_TypeError = external global ptr
@arity = internal constant [43 x i8] c"tape: takes %zd arguments; %zd were given.\00"

; words of %d: arguments, relocations, calls, long, array's place, spec's place, class, ndarray
define i64 @run(ptr %d, ptr %values) #0 {
entry:
  %n = load i64, ptr %d
  %rp = getelementptr i64, ptr %d, i64 1
  %relocations = load i64, ptr %rp
  %kp = getelementptr i64, ptr %d, i64 2
  %calls = load i64, ptr %kp
  %frame = load ptr, ptr %values
  %twice = shl i64 %n, 1
  %first = add i64 %twice, HEADER
  %moves = getelementptr i64, ptr %d, i64 %first
  %some = icmp sgt i64 %relocations, 0
  br i1 %some, label %move, label %moved
move:
  %i = phi i64 [ 0, %entry ], [ %j, %move ]
  %at = mul i64 %i, 3
  %wp = getelementptr i64, ptr %moves, i64 %at
  %sp = getelementptr i64, ptr %wp, i64 1
  %op = getelementptr i64, ptr %wp, i64 2
  %word = load i64, ptr %wp
  %source = load i64, ptr %sp
  %offset = load i64, ptr %op
  %vp = getelementptr i64, ptr %values, i64 %source
  %value = load i64, ptr %vp
  %sum = add i64 %value, %offset
  %to = getelementptr i64, ptr %frame, i64 %word
  store i64 %sum, ptr %to
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %relocations
  br i1 %more, label %move, label %moved
moved:
  %skip = mul i64 %relocations, 3
  %list = getelementptr i64, ptr %moves, i64 %skip
  %any = icmp sgt i64 %calls, 0
  br i1 %any, label %call, label %done
call:
  %k = phi i64 [ 0, %moved ], [ %l, %next ]
  %where = mul i64 %k, 3
  %fp = getelementptr i64, ptr %list, i64 %where
  %dp = getelementptr i64, ptr %fp, i64 1
  %cp = getelementptr i64, ptr %fp, i64 2
  %f = load ptr, ptr %fp
  %description = load ptr, ptr %dp
  %start = load i64, ptr %cp
  %context = getelementptr i64, ptr %frame, i64 %start
  %status = call i64 %f(ptr %description, ptr %context)
  %bad = icmp ne i64 %status, 0
  br i1 %bad, label %failed, label %next
next:
  %l = add i64 %k, 1
  %again = icmp slt i64 %l, %calls
  br i1 %again, label %call, label %done
failed:
  store i64 %k, ptr %frame
  ret i64 %status
done:
  ret i64 0
}

define ptr @entry(ptr %self, ptr %args, i64 %count) #0 {
entry:
  %d = call ptr @PyLong_AsVoidPtr(ptr %self)
  %n = load i64, ptr %d
  %fits = icmp eq i64 %count, %n
  br i1 %fits, label %sized, label %wrong
sized:
  %ap = getelementptr i64, ptr %d, i64 4
  %array_place = load i64, ptr %ap
  %sp = getelementptr i64, ptr %d, i64 5
  %spec_place = load i64, ptr %sp
  %tp = getelementptr i64, ptr %d, i64 6
  %class = load ptr, ptr %tp
  %np = getelementptr i64, ptr %d, i64 7
  %ndarray = load ptr, ptr %np
  %letters = getelementptr i64, ptr %d, i64 HEADER
  %values = alloca i64, i64 %n, align 16
  %frame_object = load ptr, ptr %args
  %frame = call ptr @PyLong_AsVoidPtr(ptr %frame_object)
  store ptr %frame, ptr %values
  %some = icmp sgt i64 %n, 1
  br i1 %some, label %read, label %go
read:
  %i = phi i64 [ 1, %sized ], [ %j, %stored ]
  %argument = getelementptr ptr, ptr %args, i64 %i
  %o = load ptr, ptr %argument
  %twice = shl i64 %i, 1
  %lp = getelementptr i64, ptr %letters, i64 %twice
  %letter = load i64, ptr %lp
  %vp = getelementptr i64, ptr %values, i64 %i
  %number = icmp ne i64 %letter, 0
  br i1 %number, label %word, label %tensor
word:
  %fine = call i1 @read_word(ptr %o, i64 %letter, ptr %vp)
  br i1 %fine, label %stored, label %fail
tensor:
  %otp = getelementptr i8, ptr %o, i64 TYPE_PLACE
  %type = load ptr, ptr %otp
  %same = icmp eq ptr %type, %class
  br i1 %same, label %shaped, label %derived
derived:
  %sub = call i32 @PyType_IsSubtype(ptr %type, ptr %class)
  %is = icmp ne i32 %sub, 0
  br i1 %is, label %shaped, label %unfit
shaped:
  %osp = getelementptr i8, ptr %o, i64 %spec_place
  %have = load ptr, ptr %osp
  %ep = getelementptr i64, ptr %lp, i64 1
  %want = load ptr, ptr %ep
  %equal = icmp eq ptr %have, %want
  br i1 %equal, label %held, label %unfit
held:
  %oap = getelementptr i8, ptr %o, i64 %array_place
  %array = load ptr, ptr %oap
  %null = icmp eq ptr %array, null
  br i1 %null, label %unfit, label %exists
exists:
  %atp = getelementptr i8, ptr %array, i64 TYPE_PLACE
  %kind = load ptr, ptr %atp
  %plain = icmp eq ptr %kind, %ndarray
  br i1 %plain, label %data, label %unfit
data:
  %pp = getelementptr i8, ptr %array, i64 DATA_PLACE
  %p = load ptr, ptr %pp
  store ptr %p, ptr %vp
  br label %stored
stored:
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %read, label %go
go:
  %gp = getelementptr i64, ptr %d, i64 3
  %release = load i64, ptr %gp
  %long = icmp ne i64 %release, 0
  br i1 %long, label %unlocked, label %locked
unlocked:
  %thread = call ptr @PyEval_SaveThread()
  %r1 = call i64 @run(ptr %d, ptr %values)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
locked:
  %r2 = call i64 @run(ptr %d, ptr %values)
  br label %ran
ran:
  %status = phi i64 [ %r1, %unlocked ], [ %r2, %locked ]
  %result = call ptr @PyLong_FromLong(i64 %status)
  ret ptr %result
unfit:
  %misfit = call ptr @PyLong_FromLong(i64 3)
  ret ptr %misfit
wrong:
  %error = load ptr, ptr @PyExc_TypeError
  %w = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %error, ptr @arity, i64 %n, i64 %count)
  ret ptr null
fail:
  ret ptr null
}
attributes #0 = { nounwind }
"""


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """Where native code finds what it needs in a tensor: byte places of two slots."""

    kind: type
    array: int
    spec: int


def slot_places(example: object, *held: object) -> tuple[int, ...]:
    """The byte places at which an object with slots keeps these objects."""
    places = range(object.__basicsize__, type(example).__basicsize__, 8)
    words = {ctypes.c_void_p.from_address(id(example) + k).value: k for k in places}
    return tuple(words[id(x)] for x in held)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tape: how it is read, and for tensors the spec it must have."""

    letter: int
    spec: Any = None


@dataclass(frozen=True, slots=True)
class Relocation:
    """frame[word] = argument + offset in bytes; argument FRAME is the frame."""

    word: int
    argument: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel, and the word of the frame at which its context starts."""

    form: forms.Form
    context: int


@jit.Once
def library() -> jit.Library:
    """The interpreter's code."""
    pool.library()
    head = object.__basicsize__
    text = builtin.READ_WORD + _IR.replace("HEADER", str(HEADER_WORDS))
    return jit.load(text.replace("TYPE_PLACE", str(head - 8)).replace("DATA_PLACE", str(head)))


def tape(
    arguments: Sequence[Argument],
    relocations: Sequence[Relocation],
    calls: Sequence[KernelCall],
    layout: TensorLayout,
) -> Callable[..., int]:
    """(frame address, *arguments) -> status. Whoever holds it must keep the kernels alive."""
    words = [len(arguments) + 1, len(relocations), len(calls), int(is_long(calls))]
    words += [layout.array, layout.spec, id(layout.kind), id(np.ndarray), 0, 0]
    words += [w for a in arguments for w in (a.letter, id(a.spec))]
    words += [w for r in relocations for w in (r.word, r.argument, r.offset)]
    words += [w for c in calls for w in (c.form.function, c.form.description, c.context)]
    block = (ctypes.c_int64 * len(words))(*words)
    specs = tuple(a.spec for a in arguments)
    if not builtin.is_supported():
        return _CtypesTape(block, tuple(arguments))
    owned = (block, specs, layout.kind)
    return builtin.bound("tape", library().address("entry"), ctypes.addressof(block), owned)


def is_long(calls: Sequence[KernelCall]) -> bool:
    return sum(c.form.nanoseconds for c in calls) >= LONG_NANOSECONDS


class _CtypesTape:
    """The slower entry; it always releases the GIL."""

    def __init__(self, block: ctypes.Array, arguments: tuple[Argument, ...]):
        self.block, self.arguments = block, arguments
        self.run = library().function("run", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)

    def __call__(self, frame: int, *given: Any) -> int:
        values = (ctypes.c_int64 * (len(given) + 1))(frame)
        for k, (a, x) in enumerate(zip(self.arguments, given, strict=True), 1):
            if a.letter == TENSOR:
                if x._spec is not a.spec or type(x._array) is not np.ndarray:
                    return UNFIT
                values[k] = x._array.__array_interface__["data"][0]
            else:
                values[k] = builtin.word_of(x, double=a.letter == DOUBLE)
        return self.run(ctypes.addressof(self.block), ctypes.addressof(values))

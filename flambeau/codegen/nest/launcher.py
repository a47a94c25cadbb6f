"""The one native caller of every kernel: arguments into a context block, chunks onto the pool.

A kernel is described by a block of 64-bit words (`Description`), so compiling it compiles nothing
but its chunks. The Python entry is a CPython builtin whose `self` is the address of the
description; a call costs about 50 ns beyond the kernel. Where builtins are not supported ctypes
calls `launch`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau.codegen.text import PARALLEL_FOR
from flambeau.core.bounds import out_of_range, site_error, site_text
from flambeau.runtime import builtin, forms, jit, pool, scratch

STATUS_WORDS = 5  # what went wrong: status, index, size, site; the last is the kernel's own
ON_STACK = 64 * 1024  # bytes of scratch that the caller's stack lends
LONG_NANOSECONDS = 1_000_000  # from here on other Python threads may run meanwhile
POINTER, INTEGER, DOUBLE = range(3)  # how an argument is read
ARGUMENTS, POINTERS, SLOTS, SCRATCH_BYTES, SCRATCH_SLOTS, LAUNCHES, RUN, SITES, RELEASE = range(9)
HEADER_WORDS = 9

_IR = r"""
declare ptr @PyErr_NoMemory()
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
@_Py_NoneStruct = external global i8
@PyExc_TypeError = external global ptr
declare ptr @flambeau_scratch_take(i64)
declare void @flambeau_scratch_give(ptr)
declare void @PARALLEL_FOR(ptr, ptr, i64, i64)
@arity = internal constant [45 x i8] c"kernel: takes %zd arguments; %zd were given.\00"

; kernels after one that has met a bad index do not start
define internal void @launches(ptr %d, ptr %context, ptr %list) #0 {
entry:
  %sp = getelementptr i64, ptr %d, i64 2
  %slots = load i64, ptr %sp
  %status = getelementptr i64, ptr %context, i64 %slots
  %np = getelementptr i64, ptr %d, i64 5
  %n = load i64, ptr %np
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %at = mul i64 %i, 3
  %fp = getelementptr i64, ptr %list, i64 %at
  %cp = getelementptr i64, ptr %fp, i64 1
  %wp = getelementptr i64, ptr %fp, i64 2
  %f = load ptr, ptr %fp
  %count = load i64, ptr %cp
  %work = load i64, ptr %wp
  %one = icmp eq i64 %count, 1
  br i1 %one, label %single, label %many
single:
  call void %f(ptr %context, i64 0, i64 0)
  br label %next
many:
  call void @PARALLEL_FOR(ptr %f, ptr %context, i64 %count, i64 %work)
  br label %next
next:
  %failed = load i64, ptr %status
  %fine = icmp eq i64 %failed, 0
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  %on = and i1 %more, %fine
  br i1 %on, label %loop, label %done
done:
  ret void
}

define internal void @start(ptr %d, ptr %context) #0 {
entry:
  %ap = getelementptr i64, ptr %d, i64 0
  %arguments = load i64, ptr %ap
  %kp = getelementptr i64, ptr %d, i64 4
  %scratch = load i64, ptr %kp
  %rp = getelementptr i64, ptr %d, i64 6
  %run = load ptr, ptr %rp
  %first = add i64 HEADER, %arguments
  %second = add i64 %first, %scratch
  %list = getelementptr i64, ptr %d, i64 %second
  %own = icmp eq ptr %run, null
  br i1 %own, label %plain, label %computed
plain:
  call void @launches(ptr %d, ptr %context, ptr %list)
  ret void
computed:
  call void %run(ptr %context)
  ret void
}

; fill the scratch slots, launch, free: 0 done, 1 an index was out of range, 2 no memory
define i64 @launch(ptr %d, ptr %context) #0 {
entry:
  %ap = getelementptr i64, ptr %d, i64 0
  %arguments = load i64, ptr %ap
  %pp = getelementptr i64, ptr %d, i64 1
  %pointers = load i64, ptr %pp
  %sp = getelementptr i64, ptr %d, i64 2
  %slots = load i64, ptr %sp
  %status = getelementptr i64, ptr %context, i64 %slots
  store i64 0, ptr %status
  %bp = getelementptr i64, ptr %d, i64 3
  %bytes = load i64, ptr %bp
  %kp = getelementptr i64, ptr %d, i64 4
  %scratch = load i64, ptr %kp
  %none = icmp eq i64 %scratch, 0
  br i1 %none, label %ready, label %memory
memory:
  %large = icmp ugt i64 %bytes, ON_STACK
  br i1 %large, label %heap, label %stack
heap:
  %h = call ptr @flambeau_scratch_take(i64 %bytes)
  %failed = icmp eq ptr %h, null
  br i1 %failed, label %broke, label %place
stack:
  %s = alloca i8, i64 %bytes, align 64
  br label %place
place:
  %base = phi ptr [ %h, %heap ], [ %s, %stack ]
  %owned = phi ptr [ %h, %heap ], [ null, %stack ]
  %o0 = add i64 HEADER, %arguments
  %offsets = getelementptr i64, ptr %d, i64 %o0
  br label %fill
fill:
  %i = phi i64 [ 0, %place ], [ %j, %fill ]
  %op = getelementptr i64, ptr %offsets, i64 %i
  %offset = load i64, ptr %op
  %address = getelementptr i8, ptr %base, i64 %offset
  %slot = add i64 %pointers, %i
  %cp = getelementptr i64, ptr %context, i64 %slot
  store ptr %address, ptr %cp
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %scratch
  br i1 %more, label %fill, label %filled
filled:
  call void @start(ptr %d, ptr %context)
  %mine = icmp eq ptr %owned, null
  br i1 %mine, label %end, label %release
release:
  call void @flambeau_scratch_give(ptr %owned)
  br label %end
ready:
  call void @start(ptr %d, ptr %context)
  br label %end
end:
  %result = load i64, ptr %status
  ret i64 %result
broke:
  ret i64 2
}

define ptr @entry(ptr %self, ptr %args, i64 %count) #0 {
entry:
  %d = call ptr @PyLong_AsVoidPtr(ptr %self)
  %arguments = load i64, ptr %d
  %fits = icmp eq i64 %count, %arguments
  br i1 %fits, label %sized, label %wrong
sized:
  %pp = getelementptr i64, ptr %d, i64 1
  %pointers = load i64, ptr %pp
  %sp = getelementptr i64, ptr %d, i64 2
  %slots = load i64, ptr %sp
  %kp = getelementptr i64, ptr %d, i64 4
  %scratch = load i64, ptr %kp
  %words = add i64 %slots, STATUS
  %context = alloca i64, i64 %words, align 64
  %letters = getelementptr i64, ptr %d, i64 HEADER
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %read, label %go
read:
  %i = phi i64 [ 0, %sized ], [ %j, %stored ]
  %arg = getelementptr ptr, ptr %args, i64 %i
  %o = load ptr, ptr %arg
  %lp = getelementptr i64, ptr %letters, i64 %i
  %letter = load i64, ptr %lp
  %number = icmp sge i64 %i, %pointers
  %moved = add i64 %i, %scratch
  %where = select i1 %number, i64 %moved, i64 %i
  %cp = getelementptr i64, ptr %context, i64 %where
  %fine = call i1 @read_word(ptr %o, i64 %letter, ptr %cp)
  br i1 %fine, label %stored, label %fail
stored:
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %count
  br i1 %more, label %read, label %go
go:
  %rp = getelementptr i64, ptr %d, i64 8
  %release = load i64, ptr %rp
  %long = icmp ne i64 %release, 0
  br i1 %long, label %unlocked, label %locked
unlocked:
  %thread = call ptr @PyEval_SaveThread()
  %r1 = call i64 @launch(ptr %d, ptr %context)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
locked:
  %r2 = call i64 @launch(ptr %d, ptr %context)
  br label %ran
ran:
  %result = phi i64 [ %r1, %unlocked ], [ %r2, %locked ]
  switch i64 %result, label %memory [ i64 0, label %done
                                      i64 1, label %index ]
done:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
index:
  %mp = getelementptr i64, ptr %d, i64 7
  %sites = load ptr, ptr %mp
  %b3 = add i64 %slots, 3
  %bp3 = getelementptr i64, ptr %context, i64 %b3
  %site = load i64, ptr %bp3
  %pair = shl i64 %site, 1
  %kp1 = getelementptr i64, ptr %sites, i64 %pair
  %mp1 = getelementptr i64, ptr %kp1, i64 1
  %kind = load ptr, ptr %kp1
  %message = load ptr, ptr %mp1
  %b1 = add i64 %slots, 1
  %b2 = add i64 %slots, 2
  %bp1 = getelementptr i64, ptr %context, i64 %b1
  %bp2 = getelementptr i64, ptr %context, i64 %b2
  %bad = load i64, ptr %bp1
  %size = load i64, ptr %bp2
  %w1 = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %kind, ptr %message, i64 %bad, i64 %size)
  ret ptr null
memory:
  %w2 = call ptr @PyErr_NoMemory()
  ret ptr null
wrong:
  %type = load ptr, ptr @PyExc_TypeError
  %w3 = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %type, ptr @arity, i64 %arguments, i64 %count)
  ret ptr null
fail:
  ret ptr null
}
attributes #0 = { nounwind }
"""


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel: its chunk function, how many chunks, the work of all in nanoseconds."""

    chunk: str
    count: int
    work: int


@dataclass(frozen=True, slots=True)
class Description:
    """What the launcher must know of a compiled module."""

    pointers: int
    letters: tuple[int, ...]  # one an argument: POINTER, INTEGER or DOUBLE
    scratch: tuple[int, ...]  # the offset of each scratch buffer
    scratch_bytes: int
    launches: tuple[Launch, ...]  # empty when `run` computes them
    run: str | None  # a function of the module that launches by itself
    sites: tuple[str, ...]  # who complains about an index: the words of flambeau.core.bounds

    def words(self, library: jit.Library, sites: int) -> list[int]:
        """The block of words."""
        offsets, total = self.scratch, self.scratch_bytes
        slots = len(self.letters) + len(self.scratch)
        release = sum(x.work for x in self.launches) >= LONG_NANOSECONDS
        head = [
            len(self.letters),
            self.pointers,
            slots,
            total,
            len(offsets),
            len(self.launches),
            library.address(self.run) if self.run else 0,
            sites,
            int(release),
        ]
        jobs = [w for x in self.launches for w in (library.address(x.chunk), x.count, x.work)]
        return [*head, *self.letters, *offsets, *jobs]


def description(facts: dict[str, Any]) -> Description:
    """From what `asdict` made of one."""
    lists = {name: tuple(facts[name]) for name in ("letters", "scratch")}
    launches = tuple(Launch(**x) for x in facts["launches"])
    return Description(**{**facts, **lists, "launches": launches})


@jit.Once
def library() -> jit.Library:
    """The launcher's code."""
    pool.library()
    scratch.library()
    text = builtin.READ_WORD + _IR.replace("PARALLEL_FOR", PARALLEL_FOR)
    text = text.replace("HEADER", str(HEADER_WORDS))
    return jit.load(text.replace("ON_STACK", str(ON_STACK)).replace("STATUS", str(STATUS_WORDS)))


def site_table(sites: tuple[str, ...]) -> tuple[ctypes.Array, list]:
    """For each site the class of its error and the address of its text; and what to keep alive."""
    texts = [
        ctypes.create_string_buffer(site_text(site).replace("%d", "%lld").encode())
        for site in sites
    ]
    words = [w for s, t in zip(sites, texts) for w in (id(site_error(s)), ctypes.addressof(t))]
    return (ctypes.c_int64 * len(words))(*words), texts


def entry(description: Description, code: jit.Library) -> Callable[..., None]:
    """The Python callable of a compiled module; it keeps the code and the description alive."""
    sites, texts = site_table(description.sites)
    words = description.words(code, ctypes.addressof(sites))
    block = (ctypes.c_int64 * len(words))(*words)
    made = _callable(description, block, (sites, texts, code))
    forms.remember(made, form(description, ctypes.addressof(block)))
    return made


def _callable(description: Description, block: ctypes.Array, owned: tuple) -> Callable[..., None]:
    if not builtin.is_supported():
        return _CtypesEntry(description, block, owned)
    code, receiver = library().address("entry"), ctypes.addressof(block)
    return builtin.bound("kernel", code, receiver, (block, *owned))


def form(d: Description, block: int) -> forms.Form:
    """How a program calls the kernel."""
    slots = len(d.letters) + len(d.scratch)
    places = tuple(k if k < d.pointers else k + len(d.scratch) for k in range(len(d.letters)))
    letters = "".join("pid"[x] for x in d.letters)
    return forms.Form(
        library().address("launch"), block, slots + STATUS_WORDS, places, letters,
        sum(x.work for x in d.launches), slots + 1, d.sites,
    )  # fmt: skip


class _CtypesEntry:
    """The slower entry; it always releases the GIL."""

    def __init__(self, description: Description, block: ctypes.Array, owned: tuple):
        self.description = description
        self.block = block
        self.owned = owned
        self.launch = library().function("launch", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)

    def __call__(self, *arguments: int | float) -> None:
        d = self.description
        if len(arguments) != len(d.letters):
            raise TypeError(
                f"kernel: takes {len(d.letters)} arguments; {len(arguments)} were given."
            )
        slots = len(d.letters) + len(d.scratch)
        context = (ctypes.c_int64 * (slots + STATUS_WORDS))()
        for k, (letter, x) in enumerate(zip(d.letters, arguments)):
            word = builtin.word_of(x, double=letter == DOUBLE)
            context[k if k < d.pointers else k + len(d.scratch)] = word
        failed = self.launch(ctypes.addressof(self.block), ctypes.addressof(context))
        if failed == 1:
            index, size, site = context[slots + 1 : slots + 4]
            raise out_of_range(d.sites[site], index, size)
        if failed:
            raise MemoryError("kernel: no memory for scratch")

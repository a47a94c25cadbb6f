"""Working memory of native kernels: blocks that are handed from call to call and keep their pages.

``flambeau_scratch_take(bytes)`` gives a block of at least that size, aligned to 64, or null when
memory ran out; ``flambeau_scratch_give(block)`` returns it. Eight slots hold idle blocks; they
change hands by atomic exchange, so concurrent calls get different blocks and a forked child goes
on. The content is whatever the last kernel left: a kernel clears what it needs cleared.
"""

from __future__ import annotations

from flambeau.runtime import jit

EXPORTS = ("flambeau_scratch_take", "flambeau_scratch_give")
SLOTS = 8

_IR = r"""
@slots = internal global [SLOTS x ptr] zeroinitializer, align 64
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)

define ptr @flambeau_scratch_take(i64 %bytes) #0 {
entry:
  %place = alloca ptr, align 8
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %j, %skip ]
  %slot = getelementptr ptr, ptr @slots, i64 %i
  %block = atomicrmw xchg ptr %slot, ptr null acq_rel
  %empty = icmp eq ptr %block, null
  br i1 %empty, label %skip, label %measure
measure:
  %size = load i64, ptr %block
  %fits = icmp uge i64 %size, %bytes
  br i1 %fits, label %found, label %small
small:
  call void @free(ptr %block)
  br label %make
skip:
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, SLOTS
  br i1 %more, label %look, label %make
make:
  %full = add i64 %bytes, 64
  %error = call i32 @posix_memalign(ptr %place, i64 64, i64 %full)
  %ok = icmp eq i32 %error, 0
  br i1 %ok, label %made, label %none
made:
  %new = load ptr, ptr %place
  store i64 %bytes, ptr %new
  br label %found
found:
  %got = phi ptr [ %block, %measure ], [ %new, %made ]
  %memory = getelementptr i8, ptr %got, i64 64
  ret ptr %memory
none:
  ret ptr null
}
define void @flambeau_scratch_give(ptr %memory) #0 {
entry:
  %block = getelementptr i8, ptr %memory, i64 -64
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %j, %skip ]
  %slot = getelementptr ptr, ptr @slots, i64 %i
  %swapped = cmpxchg ptr %slot, ptr null, ptr %block acq_rel acquire
  %done = extractvalue { ptr, i1 } %swapped, 1
  br i1 %done, label %kept, label %skip
skip:
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, SLOTS
  br i1 %more, label %look, label %drop
drop:
  call void @free(ptr %block)
  br label %kept
kept:
  ret void
}
define void @release() #0 {
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %j, %next ]
  %slot = getelementptr ptr, ptr @slots, i64 %i
  %block = atomicrmw xchg ptr %slot, ptr null acq_rel
  call void @free(ptr %block)
  br label %next
next:
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, SLOTS
  br i1 %more, label %look, label %x
x:
  ret void
}
attributes #0 = { nounwind }
"""


@jit.Once
def library() -> jit.Library:
    made = jit.load(_IR.replace("SLOTS", str(SLOTS)))
    for name in EXPORTS:
        jit.define_symbol(name, made.address(name))
    return made


def empty_cache() -> None:
    """Return idle blocks to the system."""
    if library.is_made():
        library().function("release")()


jit.provide(EXPORTS, library)

"""One thread pool in generated code: ``parallel_for(chunk, context, count, work)``.

A job is one atomic word, ``count << 32 | next index``: taking a ticket tells at once whether it is
still valid, so a worker that comes late can never run a stale chunk. The caller takes tickets too,
so a job ends even if no worker ever wakes (after ``fork`` for example). Workers spin for a short
while, then sleep in the kernel; they are started by the first job that wants them. A nested or
concurrent call runs serially with thread number 0.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import platform
import sys
import time

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.runtime import jit

EXPORTS = ("flambeau_parallel_for", "flambeau_capacity")
SPIN_SECONDS = 100e-6
SMALL_JOB_NANOSECONDS = 2_000  # below: not worth a fork and join
SLEEPING_JOB_NANOSECONDS = 20_000  # below: not worth waking workers
_FUTEX = {"x86_64": 202, "aarch64": 98}
_RELAX = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.isb(i32 15)"}
_RELAX_TYPES = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.isb(i32)"}

_IR = r"""
@ticket = internal global [8 x i64] zeroinitializer, align 64
@generation = internal global [16 x i32] zeroinitializer, align 64
@job = internal global [8 x i64] zeroinitializer, align 64
@finished = internal global [8 x i64] zeroinitializer, align 64
@sleepers = internal global [16 x i32] zeroinitializer, align 64
@busy = internal global [16 x i32] zeroinitializer, align 64
@started = internal global i64 0
@limit = internal global i64 1
@spins = internal global i64 1000
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare void PAUSE_TYPE
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)

define i64 @flambeau_capacity() #0 {
  ret i64 CAPACITY
}
define void @set_limit(i64 %n) #0 {
  store atomic i64 %n, ptr @limit release, align 8
  ret void
}
define void @set_spins(i64 %n) #0 {
  store atomic i64 %n, ptr @spins release, align 8
  ret void
}
define void @relax(i64 %n) #0 {
entry:
  br label %l
l:
  %i = phi i64 [ 0, %entry ], [ %j, %l ]
  call void RELAX
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %l, label %x
x:
  ret void
}
define void @reset() #0 {
  store atomic i64 0, ptr @started release, align 8
  store atomic i32 0, ptr @sleepers release, align 4
  store atomic i64 0, ptr @ticket release, align 8
  store atomic i32 0, ptr @busy release, align 4
  ret void
}
define internal void @start(i64 %wanted) #0 {
entry:
  %all = alloca [16 x i64], align 16
  %old = alloca [16 x i64], align 16
  %thread = alloca i64, align 8
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 128, i1 false)
  %m0 = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %l
l:
  %i = load atomic i64, ptr @started acquire, align 8
  %more = icmp ult i64 %i, %wanted
  br i1 %more, label %new, label %x
new:
  %id = add i64 %i, 1
  %arg = inttoptr i64 %id to ptr
  %r = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %arg)
  %ok = icmp eq i32 %r, 0
  br i1 %ok, label %made, label %failed
failed:
  store atomic i64 %id, ptr @limit release, align 8
  br label %x
made:
  %t = load i64, ptr %thread
  %d = call i32 @pthread_detach(i64 %t)
  store atomic i64 %id, ptr @started release, align 8
  br label %l
x:
  %m1 = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  ret void
}
define internal void @drain(i64 %thread) #0 {
entry:
  br label %l
l:
  %w = atomicrmw add ptr @ticket, i64 1 acq_rel
  %index = and i64 %w, 4294967295
  %n = lshr i64 %w, 32
  %ok = icmp ult i64 %index, %n
  br i1 %ok, label %run, label %x
run:
  %chunk = load ptr, ptr @job
  %context = load ptr, ptr getelementptr (i64, ptr @job, i64 1)
  call void %chunk(ptr %context, i64 %index, i64 %thread)
  %d = atomicrmw add ptr @finished, i64 1 acq_rel
  br label %l
x:
  ret void
}
define internal void @serial(ptr %chunk, ptr %context, i64 %n) #0 {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %l, label %x
l:
  %i = phi i64 [ 0, %entry ], [ %j, %l ]
  call void %chunk(ptr %context, i64 %i, i64 0)
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %l, label %x
x:
  ret void
}
define void @flambeau_parallel_for(ptr %chunk, ptr %context, i64 %n, i64 %work) #0 {
entry:
  %one = icmp sle i64 %n, 1
  %small = icmp slt i64 %work, SMALL
  %skip = or i1 %one, %small
  br i1 %skip, label %alone, label %threads
threads:
  %most = load atomic i64, ptr @limit acquire, align 8
  %single = icmp sle i64 %most, 1
  br i1 %single, label %alone, label %awake
awake:
  %asleep = load atomic i32, ptr @sleepers acquire, align 4
  %dormant = icmp sgt i32 %asleep, 0
  %short = icmp slt i64 %work, SLEEPING
  %rest = and i1 %dormant, %short
  br i1 %rest, label %alone, label %claim
claim:
  %claimed = cmpxchg ptr @busy, i32 0, i32 1 acq_rel acquire
  %mine = extractvalue { i32, i1 } %claimed, 1
  br i1 %mine, label %fork, label %alone
alone:
  call void @serial(ptr %chunk, ptr %context, i64 %n)
  ret void
fork:
  %others = sub i64 %most, 1
  %have = load atomic i64, ptr @started acquire, align 8
  %few = icmp ult i64 %have, %others
  br i1 %few, label %grow, label %publish
grow:
  call void @start(i64 %others)
  br label %publish
publish:
  store ptr %chunk, ptr @job
  store ptr %context, ptr getelementptr (i64, ptr @job, i64 1)
  store atomic i64 0, ptr @finished release, align 8
  %word = shl i64 %n, 32
  store atomic i64 %word, ptr @ticket seq_cst, align 8
  %g = atomicrmw add ptr @generation, i32 1 seq_cst
  %sleeping = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp sgt i32 %sleeping, 0
  br i1 %any, label %wake, label %work_too
wake:
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @generation, i32 129,
    i32 2147483647, ptr null, ptr null, i32 0)
  br label %work_too
work_too:
  call void @drain(i64 0)
  br label %wait
wait:
  %k = phi i64 [ 0, %work_too ], [ %k2, %again ]
  %d = load atomic i64, ptr @finished acquire, align 8
  %all = icmp eq i64 %d, %n
  br i1 %all, label %done, label %pause
pause:
  call void RELAX
  %low = and i64 %k, 1023
  %long = icmp eq i64 %low, 1023
  br i1 %long, label %yield, label %again
yield:
  %y = call i32 @sched_yield()
  br label %again
again:
  %k2 = add i64 %k, 1
  br label %wait
done:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}
define internal ptr @worker(ptr %arg) #0 {
entry:
  %thread = ptrtoint ptr %arg to i64
  br label %outer
outer:
  %seen = phi i32 [ -1, %entry ], [ %g1, %next ]
  %most_spins = load atomic i64, ptr @spins acquire, align 8
  br label %spin
spin:
  %s = phi i64 [ 0, %outer ], [ %s2, %relaxed ]
  %g = load atomic i32, ptr @generation acquire, align 4
  %new = icmp ne i32 %g, %seen
  br i1 %new, label %go, label %more
more:
  %over = icmp uge i64 %s, %most_spins
  br i1 %over, label %sleep, label %relaxed
relaxed:
  call void RELAX
  %s2 = add i64 %s, 1
  br label %spin
sleep:
  %a = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr @generation, i32 128,
    i32 %seen, ptr null, ptr null, i32 0)
  %b = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %gs = load atomic i32, ptr @generation acquire, align 4
  %same = icmp eq i32 %gs, %seen
  br i1 %same, label %sleep, label %go
go:
  %g1 = phi i32 [ %g, %spin ], [ %gs, %sleep ]
  %most = load atomic i64, ptr @limit acquire, align 8
  %mine = icmp ult i64 %thread, %most
  br i1 %mine, label %take, label %next
take:
  call void @drain(i64 %thread)
  br label %next
next:
  br label %outer
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
attributes #0 = { nounwind }
"""

_SERIAL_IR = r"""
define i64 @flambeau_capacity() #0 {
  ret i64 1
}
define void @set_limit(i64 %n) #0 {
  ret void
}
define void @reset() #0 {
  ret void
}
define void @flambeau_parallel_for(ptr %chunk, ptr %context, i64 %n, i64 %work) #0 {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %l, label %x
l:
  %i = phi i64 [ 0, %entry ], [ %j, %l ]
  call void %chunk(ptr %context, i64 %i, i64 0)
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %l, label %x
x:
  ret void
}
attributes #0 = { nounwind }
"""


@functools.cache
def capacity() -> int:
    """The most threads a job can use; thread numbers in chunks are below it."""
    return available_cpus()


def machine_cpus() -> int:
    """CPUs of the machine, whatever this process may use: what results may depend on."""
    return max(1, os.cpu_count() or 1)


def available_cpus() -> int:
    """CPUs this process may use: affinity and the control group's quota."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min(count, _quota()))


def _quota(root: str = "/sys/fs/cgroup") -> int:
    """The control group's CPU quota, rounded up; many when there is none. Both versions."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = " ".join(_content(f"{root}/{name}") for name in files).split()
            quota, period = (int(word) for word in words)
        except (OSError, ValueError):
            continue
        if quota > 0:
            return math.ceil(quota / period)
    return 1 << 16


def _content(path: str) -> str:
    with open(path) as file:
        return file.read()


def _default_threads() -> int:
    for name in ("FLAMBEAU_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "")
        if text.isdigit() and int(text) > 0:
            return int(text)
    return available_cpus()


_threads: list[int] = []


def get_num_threads() -> int:
    """How many threads a parallel kernel uses."""
    if not _threads:
        _threads.append(_default_threads())
    return _threads[0]


def set_num_threads(count: int) -> None:
    """Use `count` threads from the next kernel on; above the number of CPUs it changes nothing."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        must = "the number of threads must be a positive int"
        raise ValueRangeError(complaint("set_num_threads", must, {"count": count}))
    _threads[:] = [count]
    if library.is_made():
        library().function("set_limit", None, ctypes.c_int64)(min(count, capacity()))


def _supported() -> bool:
    return sys.platform == "linux" and platform.machine() in _FUTEX


@jit.Once
def library() -> jit.Library:
    """The pool's code; without threads where the system is not Linux on x86-64 or AArch64."""
    machine = platform.machine()
    text = _SERIAL_IR
    if _supported():
        text = _IR.replace("FUTEX", str(_FUTEX[machine])).replace("RELAX", _RELAX[machine])
        text = text.replace("PAUSE_TYPE", _RELAX_TYPES[machine])
        text = text.replace("CAPACITY", str(capacity()))
        text = text.replace("SMALL", str(SMALL_JOB_NANOSECONDS))
        text = text.replace("SLEEPING", str(SLEEPING_JOB_NANOSECONDS))
    made = jit.load(text)
    for name in EXPORTS:
        jit.define_symbol(name, made.address(name))
    if _supported():
        made.function("set_spins", None, ctypes.c_int64)(_spins(made))
    made.function("set_limit", None, ctypes.c_int64)(min(get_num_threads(), capacity()))
    os.register_at_fork(after_in_child=made.function("reset"))
    return made


def _spins(made: jit.Library, turns: int = 500) -> int:
    """How many pauses of the CPU last `SPIN_SECONDS`."""
    relax = made.function("relax", None, ctypes.c_int64)
    relax(turns)
    start = time.perf_counter()
    relax(turns)
    return max(1, int(turns * SPIN_SECONDS / max(time.perf_counter() - start, 1e-9)))


def parallel_for(chunk: int, context: int, count: int, work: int = 1 << 30) -> None:
    """Run the native function at `chunk`; see the module's docstring."""
    parameters = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    library().function("flambeau_parallel_for", None, *parameters)(chunk, context, count, work)


jit.provide(EXPORTS, library)

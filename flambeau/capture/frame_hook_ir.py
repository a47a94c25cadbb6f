"""The PEP 523 frame evaluation hook as LLVM IR text.

Policy of the generated `hook(thread, frame, throw)`; what needs Python is left to Python:

* inactive thread, generator-like code, or a code object marked None: the frame runs as it is;
* a code object with a lookup: `lookup(function, *raw_arguments)` gives the code object to run, or
  None, which means: ask the callback;
* otherwise `callback(function, code, arguments)` gives a code object or None.

A code object that is returned replaces the frame's own in place, before its first instruction, and
the default evaluator runs it, so CPython itself clears and pops the frame. A replacement must keep
the argument header and the free variables.
"""

from __future__ import annotations

import string

from flambeau.capture.frame_layout import SPECIAL_SLOTS, Layout

GENERATOR_LIKE = 0x20 | 0x80 | 0x200
VECTORCALL_OFFSET = -(1 << 63)

_SIZE_FROM_PARTS = string.Template("""
  %a = getelementptr i8, ptr %co, i64 $code_localsplus
  %b = getelementptr i8, ptr %co, i64 $code_stacksize
  %slots = load i32, ptr %a
  %stack = load i32, ptr %b
  %both = add i32 %slots, %stack
  %size = add i32 %both, $special_slots
  ret i32 %size""")

_SIZE_FROM_FIELD = string.Template("""
  %a = getelementptr i8, ptr %co, i64 $code_framesize
  %size = load i32, ptr %a
  ret i32 %size""")

_RUN_PLAIN = string.Template("""
  %r = tail call ptr $_PyEval_EvalFrameDefault(ptr %ts, ptr %f, i32 %throw)
  ret ptr %r""")

# Each call that the hook does not let CPython inline burns two units of the C recursion budget;
# giving one back keeps ordinary recursion working, giving back both overflows the C stack.
_RUN_WITH_BUDGET = string.Template("""
  %p = getelementptr i8, ptr %ts, i64 $thread_c_recursion
  %a = load i32, ptr %p
  %b = add i32 %a, 1
  store i32 %b, ptr %p
  %r = call ptr $_PyEval_EvalFrameDefault(ptr %ts, ptr %f, i32 %throw)
  %c = load i32, ptr %p
  %d = sub i32 %c, 1
  store i32 %d, ptr %p
  ret ptr %r""")

_MODULE = string.Template("""
define internal i32 @framesize(ptr %co) alwaysinline {$framesize
}
define internal ptr @run(ptr %ts, ptr %f, i32 %throw) alwaysinline {$run
}

define ptr @hook(ptr %ts, ptr %f, i32 %throw) {
entry:
  %xp = alloca ptr
  %is_throw = icmp ne i32 %throw, 0
  br i1 %is_throw, label %plain, label %check_active
check_active:
  %cb = call ptr $PyThread_tss_get(ptr $key)
  %inactive = icmp eq ptr %cb, null
  br i1 %inactive, label %plain, label %check_flags
check_flags:
  %co_at = getelementptr i8, ptr %f, i64 $frame_code
  %co = load ptr, ptr %co_at
  %flags_at = getelementptr i8, ptr %co, i64 $code_flags
  %flags = load i32, ptr %flags_at
  %generator_bits = and i32 %flags, $generator_like
  %is_generator = icmp ne i32 %generator_bits, 0
  %optimized = and i32 %flags, 1
  %not_function = icmp eq i32 %optimized, 0
  %unfit = or i1 %is_generator, %not_function
  br i1 %unfit, label %plain, label %check_mark
check_mark:
  store ptr null, ptr %xp
  %got = call i32 $get_extra(ptr %co, i64 $index, ptr %xp)
  %x = load ptr, ptr %xp
  %skipped = icmp eq ptr %x, $none
  br i1 %skipped, label %plain, label %work
plain:
  %plain_result = tail call ptr @run(ptr %ts, ptr %f, i32 %throw)
  ret ptr %plain_result

work:                                  ; the size really allocated, read before any Python runs
  %old_size = call i32 @framesize(ptr %co)
  %argcount_at = getelementptr i8, ptr %co, i64 $code_argcount
  %kwonly_at = getelementptr i8, ptr %co, i64 $code_kwonly
  %argcount = load i32, ptr %argcount_at
  %kwonly = load i32, ptr %kwonly_at
  %named = add i32 %argcount, %kwonly
  %star_bit = lshr i32 %flags, 2
  %star = and i32 %star_bit, 1
  %starstar_bit = lshr i32 %flags, 3
  %starstar = and i32 %starstar_bit, 1
  %with_star = add i32 %named, %star
  %count = add i32 %with_star, %starstar
  %n = zext i32 %count to i64
  %locals = getelementptr i8, ptr %f, i64 $frame_locals
  %function_at = getelementptr i8, ptr %f, i64 $frame_function
  %function = load ptr, ptr %function_at
  %off = call i32 $PyThread_tss_set(ptr $key, ptr null)
  call void $PyThreadState_EnterTracing(ptr %ts)
  call void $Py_IncRef(ptr %cb)
  %no_lookup = icmp eq ptr %x, null
  br i1 %no_lookup, label %slow, label %fast
fast:
  call void $Py_IncRef(ptr %x)
  %room = add i64 %n, 2
  %fast_args = alloca ptr, i64 %room
  %fast_first = getelementptr ptr, ptr %fast_args, i64 1
  store ptr %function, ptr %fast_first
  %fast_rest = getelementptr ptr, ptr %fast_args, i64 2
  %bytes = mul i64 %n, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %fast_rest, ptr %locals, i64 %bytes, i1 false)
  %fast_count = add i64 %n, 1
  %fast_flagged = or i64 %fast_count, $vectorcall_offset
  %found = call ptr $PyObject_Vectorcall(ptr %x, ptr %fast_first, i64 %fast_flagged, ptr null)
  call void $Py_DecRef(ptr %x)
  %is_miss = icmp eq ptr %found, $none
  br i1 %is_miss, label %miss, label %done
miss:
  call void $Py_DecRef(ptr %found)
  br label %slow
slow:
  %tuple = call ptr $PyTuple_New(i64 %n)
  %no_tuple = icmp eq ptr %tuple, null
  br i1 %no_tuple, label %done, label %loop
loop:
  %i = phi i64 [0, %slow], [%next_i, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %filled
body:
  %slot = getelementptr ptr, ptr %locals, i64 %i
  %value = load ptr, ptr %slot
  call void $Py_IncRef(ptr %value)
  %set = call i32 $PyTuple_SetItem(ptr %tuple, i64 %i, ptr %value)
  %next_i = add i64 %i, 1
  br label %loop
filled:
  %args = alloca ptr, i64 4
  %args1 = getelementptr ptr, ptr %args, i64 1
  %args2 = getelementptr ptr, ptr %args, i64 2
  %args3 = getelementptr ptr, ptr %args, i64 3
  store ptr %function, ptr %args1
  store ptr %co, ptr %args2
  store ptr %tuple, ptr %args3
  %three = or i64 3, $vectorcall_offset
  %answer = call ptr $PyObject_Vectorcall(ptr %cb, ptr %args1, i64 %three, ptr null)
  call void $Py_DecRef(ptr %tuple)
  br label %done
done:
  %r = phi ptr [%found, %fast], [null, %slow], [%answer, %filled]
  call void $PyThreadState_LeaveTracing(ptr %ts)
  %on = call i32 $PyThread_tss_set(ptr $key, ptr %cb)
  call void $Py_DecRef(ptr %cb)
  %failed = icmp eq ptr %r, null
  br i1 %failed, label %raise, label %check_answer
raise:                                 ; an exception is set: CPython unwinds the frame itself
  %raised = tail call ptr @run(ptr %ts, ptr %f, i32 1)
  ret ptr %raised
check_answer:
  %type_at = getelementptr i8, ptr %r, i64 8
  %type = load ptr, ptr %type_at
  %is_code = icmp eq ptr %type, $code_type
  br i1 %is_code, label %size, label %drop
drop:
  call void $Py_DecRef(ptr %r)
  br label %plain

size:
  %new_size = call i32 @framesize(ptr %r)
  %delta = sub i32 %new_size, %old_size
  %grows = icmp sgt i32 %delta, 0
  br i1 %grows, label %grow, label %swap
grow:
  %top_at = getelementptr i8, ptr %ts, i64 $thread_stack_top
  %limit_at = getelementptr i8, ptr %ts, i64 $thread_stack_limit
  %top = load ptr, ptr %top_at
  %limit = load ptr, ptr %limit_at
  %old_size64 = sext i32 %old_size to i64
  %frame_end = getelementptr ptr, ptr %f, i64 %old_size64
  %is_last = icmp eq ptr %frame_end, %top
  %delta64 = sext i32 %delta to i64
  %new_top = getelementptr ptr, ptr %top, i64 %delta64
  %fits = icmp ult ptr %new_top, %limit
  %can_grow = and i1 %is_last, %fits
  br i1 %can_grow, label %bump, label %misfit
misfit:
  %misfits = load i64, ptr $misfit_counter
  %misfits1 = add i64 %misfits, 1
  store i64 %misfits1, ptr $misfit_counter
  br label %drop
bump:
  store ptr %new_top, ptr %top_at
  br label %swap
swap:
  %slots_at = getelementptr i8, ptr %r, i64 $code_localsplus
  %slots = load i32, ptr %slots_at
  %slots64 = sext i32 %slots to i64
  %fresh = sub i64 %slots64, %n
  %fresh_bytes = mul i64 %fresh, 8
  %fresh_at = getelementptr ptr, ptr %locals, i64 %n
  call void @llvm.memset.p0.i64(ptr %fresh_at, i8 0, i64 %fresh_bytes, i1 false)
  %stacktop_at = getelementptr i8, ptr %f, i64 $frame_stacktop
  store i32 %slots, ptr %stacktop_at
  %instruction_at = getelementptr i8, ptr %f, i64 $frame_instruction
  %start = getelementptr i8, ptr %r, i64 $start
  store ptr %start, ptr %instruction_at
  store ptr %r, ptr %co_at
  call void $Py_DecRef(ptr %co)
  %swapped = tail call ptr @run(ptr %ts, ptr %f, i32 0)
  ret ptr %swapped
}

; activate(callback or None) -> the callback that was active on this thread, or None.
; The interpreter-wide hook is installed while at least one thread has a callback.
define ptr @activate(ptr %self, ptr %new) {
entry:
  %old = call ptr $PyThread_tss_get(ptr $key)
  %is_none = icmp eq ptr %new, $none
  %stored = select i1 %is_none, ptr null, ptr %new
  %was_off = icmp eq ptr %old, null
  br i1 %is_none, label %keep, label %hold
hold:
  call void $Py_IncRef(ptr %new)
  br label %keep
keep:
  %set = call i32 $PyThread_tss_set(ptr $key, ptr %stored)
  %same = icmp eq i1 %was_off, %is_none
  br i1 %same, label %out, label %changed
changed:
  %step = select i1 %is_none, i64 -1, i64 1
  %count = load i64, ptr $active_counter
  %count1 = add i64 %count, %step
  store i64 %count1, ptr $active_counter
  %now = icmp ne i64 %count1, 0
  %before = icmp ne i64 %count, 0
  %unchanged = icmp eq i1 %now, %before
  br i1 %unchanged, label %out, label %set_hook
set_hook:
  %evaluator = select i1 %now, ptr @hook, ptr $_PyEval_EvalFrameDefault
  call void $_PyInterpreterState_SetEvalFrameFunc(ptr $interpreter, ptr %evaluator)
  br label %out
out:
  br i1 %was_off, label %nothing, label %previous
nothing:
  call void $Py_IncRef(ptr $none)
  ret ptr $none
previous:                              ; the reference that the thread held passes to the caller
  ret ptr %old
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
""")

FUNCTIONS = (
    "_PyEval_EvalFrameDefault",
    "_PyInterpreterState_SetEvalFrameFunc",
    "PyThread_tss_get",
    "PyThread_tss_set",
    "PyObject_Vectorcall",
    "PyTuple_New",
    "PyTuple_SetItem",
    "Py_IncRef",
    "Py_DecRef",
    "PyThreadState_EnterTracing",
    "PyThreadState_LeaveTracing",
)
"""CPython functions that the hook calls, by address."""


def hook_ir(at: Layout, addresses: dict[str, int], index: int) -> str:
    """The module text; `addresses` holds `FUNCTIONS` and the objects named in the template."""
    names = {name: f"inttoptr (i64 {address} to ptr)" for name, address in addresses.items()}
    names |= {name: str(offset) for name, offset in at._asdict().items()}
    names |= {
        "index": str(index),
        "generator_like": str(GENERATOR_LIKE),
        "vectorcall_offset": str(VECTORCALL_OFFSET),
        "special_slots": str(SPECIAL_SLOTS),
        "start": str(at.code_bytecode + at.instruction_bias),
    }
    size = _SIZE_FROM_PARTS if at.code_framesize is None else _SIZE_FROM_FIELD
    run = _RUN_PLAIN if at.thread_c_recursion is None else _RUN_WITH_BUDGET
    return _MODULE.substitute(names, framesize=size.substitute(names), run=run.substitute(names))

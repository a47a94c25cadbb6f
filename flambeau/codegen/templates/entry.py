"""From a generated kernel to a Python callable: working memory, argument conversion, linking.

A kernel is an internal function ``kernel(ptr slots)``: `slots` is an array of 8-byte cells that
starts with the callers' pointers, followed by the address of the working memory and by whatever the
kernel wants to share among its chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flambeau.codegen.target import Target
from flambeau.codegen.text import Function, Module, Operand, Value
from flambeau.runtime import builtin, forms, pool, recipes
from flambeau.runtime import scratch as scratch

LONG_NANOSECONDS = 200_000  # from here on other Python threads may run meanwhile


@dataclass(frozen=True, slots=True)
class Kernel:
    """One generated kernel inside a module.

    `shared_bytes` of working memory are common to all threads, `thread_bytes` belong to each.
    """

    name: str
    pointers: int  # leading slots filled by the caller
    slots: int  # cells in all, the working memory's included
    shared_bytes: int = 0
    thread_bytes: int = 0
    nanoseconds: int = 0  # estimate of a call


def slot(f: Function, slots: Value, index: int, type: str = "ptr") -> Value:
    """The content of a cell."""
    return f.load(type, f.gep(slots, index, "i64"), 8)


def set_slot(f: Function, slots: Value, index: int, value: Operand) -> None:
    typed = value if isinstance(value, Value) else Value(str(value), "i64")
    f.store(typed, f.gep(slots, index, "i64"), 8)


def scratch_bytes(kernel: Kernel) -> int:
    """Working memory of a call, for as many threads as there can ever be."""
    shared = -(-kernel.shared_bytes // 64) * 64
    return shared + -(-kernel.thread_bytes // 64) * 64 * pool.capacity()


def thread_memory(f: Function, kernel_memory: Value, shared: int, own: int, thread: Value) -> Value:
    """Where a thread's own part of the working memory begins."""
    start = -(-shared // 64) * 64
    return f.gep(kernel_memory, f.add(f.mul(thread, -(-own // 64) * 64), start), "i8")


def emit_run(module: Module, kernel: Kernel, name: str) -> None:
    """An exported ``i64 name(ptr, ptr slots)`` around the kernel: takes and gives working memory.

    It returns NO_MEMORY, having done nothing, when memory ran out. See `flambeau.runtime.forms`.
    """
    f = module.function(name, [("ptr", "unused"), ("ptr", "slots")], "i64", exported=True)
    slots = f.arguments[1]
    size = scratch_bytes(kernel)
    if not size:
        f.call(kernel.name, "void", slots)
        f.effect("ret i64 0")
        return
    memory = f.call("flambeau_scratch_take", "ptr", size)
    null = Value("null", "ptr")
    with f.when(f.compare("ne", memory, null)):
        set_slot(f, slots, kernel.pointers, memory)
        f.call(kernel.name, "void", slots)
        f.call("flambeau_scratch_give", "void", memory)
    failed = f.cast("zext", f.compare("eq", memory, null), "i64")
    f.ret(f.mul(failed, forms.NO_MEMORY))


def emit_entry(module: Module, kernel: Kernel, run: str, name: str) -> None:
    """An exported ``i64 name(ptr, ...)`` that calls `run` with slots on the stack."""
    parameters = [("ptr", f"p{i}") for i in range(kernel.pointers)]
    f = module.function(name, parameters, "i64", exported=True)
    slots = f.alloca("i64", kernel.slots)
    for i, pointer in enumerate(f.arguments):
        set_slot(f, slots, i, pointer)
    f.ret(f.call(run, "i64", Value("null", "ptr"), slots))


def build(
    target: Target,
    name: str,
    emit: Callable[[Module], Kernel],
    level: int = 1,
    *,
    parameters: tuple,
) -> Callable[..., None]:
    """A callable of integer addresses for the kernel that `emit` adds to a module.

    `parameters` are all that the kernel depends on besides the target. It raises MemoryError when
    working memory runs out.
    """

    def generate() -> tuple[str, recipes.Facts]:
        module = Module(target.vector_bits)
        kernel = emit(module)
        return written(module, kernel, name), {
            "pointers": kernel.pointers,
            "slots": kernel.slots,
            "nanoseconds": kernel.nanoseconds,
        }

    library, facts = recipes.library(
        (name, target, *parameters), generate, cpu=target.cpu, features=target.features, level=level
    )
    letters = "p" * facts["pointers"]
    made = builtin.wrap(library, f"{name}_call", f"{name}_entry", letters, status=True)
    run, places = library.address(f"{name}_run"), tuple(range(facts["pointers"]))
    forms.remember(made, forms.Form(run, 0, facts["slots"], places, letters, facts["nanoseconds"]))
    return made


def written(module: Module, kernel: Kernel, name: str) -> str:
    """The text of a module with a kernel and its entries."""
    emit_run(module, kernel, f"{name}_run")
    emit_entry(module, kernel, f"{name}_run", f"{name}_entry")
    module.append(builtin.DECLARATIONS)
    long = kernel.nanoseconds >= LONG_NANOSECONDS
    letters = "p" * kernel.pointers
    module.append(builtin.trampoline(
        f"{name}_call", f"{name}_entry", letters, release_gil=long, status=True))  # fmt: skip
    return module.text()

"""LLVM IR as text: a module of functions with structured loops, typed values and value numbering.

Invariant: a pure instruction is emitted once per open scope. A scope is a loop body or a branch, so
a value is reused only where its definition dominates. Python ints stand for ``i64`` constants in
index arithmetic and fold; ints and floats beside a typed operand become constants of its type.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

PARALLEL_FOR = "flambeau_parallel_for"
LEAST_CHUNK = 4_000  # nanoseconds
FEWEST_CHUNKS = 16  # of a job, where chunks are put together
_SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "i128": 16, "ptr": 8}
_SIZES |= {"half": 2, "bfloat": 2, "float": 4, "double": 8}
_FLOATS = frozenset(("half", "bfloat", "float", "double"))
_MANGLED = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "ptr": "p0"}


class Value(str):
    """The text of an SSA name or constant; `type` is its LLVM type."""

    __slots__ = ("type",)
    type: str

    def __new__(cls, text: str, type: str) -> Value:
        value = super().__new__(cls, text)
        value.type = type
        return value


Operand = Value | int | float


def vector(lanes: int, element: str) -> str:
    """``<lanes x element>``, or the element itself for one lane."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def lanes_of(type: str) -> int:
    return int(type[1 : type.index(" ")]) if type[0] == "<" else 1


def element_of(type: str) -> str:
    return type[type.index(" x ") + 3 : -1] if type[0] == "<" else type


def size_of(type: str) -> int:
    """Bytes of a scalar or vector type."""
    return lanes_of(type) * _SIZES[element_of(type)]


def mangled(type: str) -> str:
    """The suffix of an overloaded intrinsic: ``<16 x float>`` gives ``v16f32``."""
    element = element_of(type)
    name = _MANGLED.get(element, element)
    return f"v{lanes_of(type)}{name}" if type[0] == "<" else name


def _scalar_text(number: int | float | bool, element: str) -> str:
    if element == "i1":
        return "true" if number else "false"
    if element not in _FLOATS:
        return str(int(number))
    if element == "double":
        return "0x" + struct.pack(">d", number).hex().upper()
    if element == "float":
        rounded = _to_float(float(number))
        return "0x" + struct.pack(">d", rounded).hex().upper()
    if element == "half":
        return "0xH" + struct.pack(">e", number).hex().upper()
    return f"0xR{_bfloat_bits(float(number)):04X}"


def _to_float(number: float) -> float:
    """The nearest float32; overflow gives infinity."""
    try:
        return struct.unpack(">f", struct.pack(">f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _bfloat_bits(number: float) -> int:
    if number != number:
        return 0x7FC0
    bits = struct.unpack(">I", struct.pack(">f", _to_float(number)))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def constant(number: int | float | bool, type: str) -> Value:
    """A scalar constant, splat over the lanes of a vector type."""
    element = element_of(type)
    text = _scalar_text(number, element)
    return Value(text if type[0] != "<" else f"splat ({element} {text})", type)


def constants(numbers: Sequence[int | float | bool], element: str) -> Value:
    """A vector constant of the given lanes."""
    if element not in _FLOATS:
        return _whole_constants(tuple(numbers), element)
    body = ", ".join(f"{element} {_scalar_text(n, element)}" for n in numbers)
    return Value(f"<{body}>", vector(len(numbers), element))


@functools.lru_cache(maxsize=4096)
def _whole_constants(numbers: tuple[int | float | bool, ...], element: str) -> Value:
    """Kept, because shuffles ask for the same few orders of lanes thousands of times."""
    body = ", ".join(f"{element} {_scalar_text(n, element)}" for n in numbers)
    return Value(f"<{body}>", vector(len(numbers), element))


def zero(type: str) -> Value:
    if type[0] == "<" or type == "ptr":
        return Value("null" if type == "ptr" else "zeroinitializer", type)
    return constant(0, type)


class Module:
    """Functions, constant tables and the declarations they need.

    `vector_bits` becomes ``prefer-vector-width``; it matters where scalar loops are left to LLVM.
    """

    def __init__(self, vector_bits: int = 512) -> None:
        self.vector_bits = vector_bits
        self._declarations: dict[str, str] = {}
        self._globals: dict[str, str] = {}
        self._functions: dict[str, Function] = {}
        self._texts: list[str] = []

    def function(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]],
        result: str = "void",
        exported: bool = False,
    ) -> Function:
        """A new function; `parameters` are (type with attributes, name) pairs.

        ``("ptr noalias readonly", "a")`` is a parameter whose value has the type ``ptr``.
        """
        if name in self._functions:
            raise ValueError(f"text: function names must be unique; got {name} twice")
        made = Function(self, name, parameters, result, exported)
        self._functions[name] = made
        return made

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def declare(self, name: str, result: str, parameters: Sequence[str]) -> None:
        """Declare an external function or intrinsic; repeated declarations are merged."""
        if name not in self._functions:
            self._declarations[name] = f"declare {result} @{name}({', '.join(parameters)})"

    def table(self, name: str, element: str, numbers: Sequence[int | float]) -> Value:
        """A constant array in read-only memory, aligned to 64 bytes; its address."""
        if name not in self._globals:
            body = ", ".join(f"{element} {_scalar_text(n, element)}" for n in numbers)
            kind = f"[{len(numbers)} x {element}]"
            self._globals[name] = f"@{name} = internal constant {kind} [{body}], align 64"
        return Value("@" + name, "ptr")

    def append(self, text: str) -> None:
        """Add ready-made IR text (no attribute groups)."""
        self._texts.append(text)

    def text(self) -> str:
        """The module without triple and data layout, which the linker adds."""
        functions = [f.text() for f in self._functions.values()]
        declared = [d for n, d in self._declarations.items() if n not in self._functions]
        width = f'"prefer-vector-width"="{self.vector_bits}"'
        attributes = f'attributes #0 = {{ nounwind "no-trapping-math"="true" {width} }}'
        parts = [*declared, *self._globals.values(), *functions, *self._texts, attributes]
        return "\n".join(parts) + "\n"


class Loop:
    """An open counted loop: `index`, the `carried` values of this turn, and what they become."""

    def __init__(self, index: Value, carried: list[Value]) -> None:
        self.index = index
        self.carried = carried
        self.next: list[Value] = carried
        self.results: list[Value] = carried


class Function:
    """One function under construction; instructions go to the end of the current block."""

    def __init__(
        self,
        module: Module,
        name: str,
        parameters: Sequence[tuple[str, str]],
        result: str,
        exported: bool,
    ) -> None:
        self.module = module
        self.name = name
        self.parameters = list(parameters)
        self.arguments = [Value("%" + n, t.split(" ")[0]) for t, n in parameters]
        self.result = result
        self._linkage = "" if exported else "internal "
        self._lines: list[str] = []
        self._allocas: list[str] = []
        self._count = 0
        self._block = "entry"
        self._scopes: list[dict[str, Value]] = [{}]

    # instructions

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def effect(self, text: str) -> None:
        """An instruction without a result."""
        self._lines.append("  " + text)

    def fresh(self, type: str, text: str) -> Value:
        """An instruction with a result that must not be merged with an equal one (a load)."""
        name = Value(self._name(), type)
        self._lines.append(f"  {name} = {text}")
        return name

    def value(self, type: str, text: str) -> Value:
        """A pure instruction: an equal one of an open scope is reused."""
        for scope in self._scopes:
            known = scope.get(text)
            if known is not None:
                return known
        made = self.fresh(type, text)
        self._scopes[-1][text] = made
        return made

    def _pair(self, a: Operand, b: Operand) -> tuple[Value, Value]:
        if not isinstance(a, Value):
            a = constant(a, b.type if isinstance(b, Value) else "i64")
        if not isinstance(b, Value):
            b = constant(b, a.type)
        return a, b

    def binary(self, operation: str, a: Operand, b: Operand) -> Value:
        """Any two-operand instruction, flags included: ``binary("fadd contract", a, b)``."""
        a, b = self._pair(a, b)
        return self.value(a.type, f"{operation} {a.type} {a}, {b}")

    # integers; two Python ints fold

    def add(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(b, int) and b == 0:
            return a
        if isinstance(a, int) and a == 0:
            return b
        return self.binary("add nsw", a, b)

    def sub(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        if isinstance(b, int):
            return self.add(a, -b)
        return self.binary("sub nsw", a, b)

    def mul(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        for x, y in ((a, b), (b, a)):
            if isinstance(x, int) and x in (0, 1):
                return y if x else 0
        return self.binary("mul nsw", a, b)

    def udiv(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        return a if isinstance(b, int) and b == 1 else self.binary("udiv", a, b)

    def urem(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        return 0 if isinstance(b, int) and b == 1 else self.binary("urem", a, b)

    def minimum(self, a: Operand, b: Operand) -> Operand:
        """Signed minimum of integers."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        a, b = self._pair(a, b)
        return self.intrinsic("llvm.smin", a.type, a, b)

    def maximum(self, a: Operand, b: Operand) -> Operand:
        """Signed maximum of integers."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        a, b = self._pair(a, b)
        return self.intrinsic("llvm.smax", a.type, a, b)

    # floats: contraction is allowed, reassociation never

    def fadd(self, a: Operand, b: Operand) -> Value:
        return self.binary("fadd contract", a, b)

    def fsub(self, a: Operand, b: Operand) -> Value:
        return self.binary("fsub contract", a, b)

    def fmul(self, a: Operand, b: Operand) -> Value:
        return self.binary("fmul contract", a, b)

    def fdiv(self, a: Operand, b: Operand) -> Value:
        return self.binary("fdiv", a, b)

    def fneg(self, a: Value) -> Value:
        return self.value(a.type, f"fneg {a.type} {a}")

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a * b + c, fused where the CPU can."""
        typed = next(x for x in (a, b, c) if isinstance(x, Value))
        a, b, c = (x if isinstance(x, Value) else constant(x, typed.type) for x in (a, b, c))
        return self.intrinsic("llvm.fmuladd", typed.type, a, b, c)

    # comparison, selection, conversion

    def compare(self, predicate: str, a: Operand, b: Operand) -> Value:
        """``icmp`` or ``fcmp`` by operand type; `predicate` is LLVM's (``slt``, ``olt`` ...)."""
        a, b = self._pair(a, b)
        kind = "fcmp" if element_of(a.type) in _FLOATS else "icmp"
        return self.value(vector(lanes_of(a.type), "i1"), f"{kind} {predicate} {a.type} {a}, {b}")

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        a, b = self._pair(a, b)
        text = f"select {condition.type} {condition}, {a.type} {a}, {b.type} {b}"
        return self.value(a.type, text)

    def cast(self, operation: str, a: Value, type: str) -> Value:
        """``fpext``, ``sitofp``, ``bitcast`` ...; the same type passes through."""
        return a if a.type == type else self.value(type, f"{operation} {a.type} {a} to {type}")

    # vectors

    def splat(self, scalar: Operand, lanes: int, element: str = "float") -> Value:
        if not isinstance(scalar, Value):
            return constant(scalar, vector(lanes, element))
        if lanes == 1:
            return scalar
        type = vector(lanes, scalar.type)
        first = self.value(type, f"insertelement {type} poison, {scalar.type} {scalar}, i64 0")
        return self.shuffle(first, first, (0,) * lanes)

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """Lanes of the concatenation of a and b."""
        order = constants(lanes, "i32")
        type = vector(len(lanes), element_of(a.type))
        text = f"shufflevector {a.type} {a}, {b.type} {b}, {order.type} {order}"
        return self.value(type, text)

    def extract(self, a: Value, lane: int) -> Value:
        if a.type[0] != "<":
            return a
        return self.value(element_of(a.type), f"extractelement {a.type} {a}, i64 {lane}")

    def insert(self, a: Value, scalar: Value, lane: int) -> Value:
        return self.value(a.type, f"insertelement {a.type} {a}, {scalar.type} {scalar}, i64 {lane}")

    def lane_mask(self, count: Operand, lanes: int) -> Value:
        """The first `count` lanes on; a dynamic count may be negative or above `lanes`."""
        if isinstance(count, int):
            return constants([i < count for i in range(lanes)], "i1")
        limit = self.splat(self.cast("trunc", self.minimum(count, lanes), "i32"), lanes)
        return self.compare("sgt", limit, constants(range(lanes), "i32"))

    # memory

    def gep(self, pointer: Value, index: Operand, element: str = "float") -> Value:
        """The address of element `index` after `pointer`."""
        if isinstance(index, int) and index == 0:
            return pointer
        return self.value("ptr", f"getelementptr inbounds {element}, ptr {pointer}, i64 {index}")

    def load(self, type: str, pointer: Value, align: int = 0) -> Value:
        align = align or _SIZES[element_of(type)]
        return self.fresh(type, f"load {type}, ptr {pointer}, align {align}")

    def store(self, value: Value, pointer: Value, align: int = 0) -> None:
        align = align or _SIZES[element_of(value.type)]
        self.effect(f"store {value.type} {value}, ptr {pointer}, align {align}")

    def load_masked(self, type: str, pointer: Value, mask: Value) -> Value:
        """Lanes that are off read as zero and touch no memory."""
        name = f"llvm.masked.load.{mangled(type)}.p0"
        self.module.declare(name, type, ("ptr", "i32", mask.type, type))
        align = _SIZES[element_of(type)]
        off = zero(type)
        text = f"call {type} @{name}(ptr {pointer}, i32 {align}, {mask.type} {mask}, {type} {off})"
        return self.fresh(type, text)

    def store_masked(self, value: Value, pointer: Value, mask: Value) -> None:
        type = value.type
        if mask == self.lane_mask(1, lanes_of(type)):
            # LLVM 22 stores four bytes here if a lane of fewer was truncated from 32 bits.
            self.store(self.extract(value, 0), pointer)
            return
        name = f"llvm.masked.store.{mangled(type)}.p0"
        self.module.declare(name, "void", (type, "ptr", "i32", mask.type))
        align = _SIZES[element_of(type)]
        arguments = f"{type} {value}, ptr {pointer}, i32 {align}, {mask.type} {mask}"
        self.effect(f"call void @{name}({arguments})")

    def load_lanes(self, type: str, pointer: Value, count: int) -> Value:
        """The first `count` elements, the other lanes zero."""
        lanes = lanes_of(type)
        if count >= lanes:
            return self.load(type, pointer)
        return self.load_masked(type, pointer, self.lane_mask(count, lanes))

    def store_lanes(self, value: Value, pointer: Value, count: int) -> None:
        lanes = lanes_of(value.type)
        if count >= lanes:
            self.store(value, pointer)
        else:
            self.store_masked(value, pointer, self.lane_mask(count, lanes))

    def alloca(self, type: str, count: int = 1, align: int = 64) -> Value:
        """Stack memory of the whole call, uninitialised."""
        name = Value(self._name(), "ptr")
        self._allocas.append(f"  {name} = alloca {type}, i64 {count}, align {align}")
        return name

    def copy(self, target: Value, source: Value, nbytes: Operand) -> None:
        self.module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
        self.effect(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {nbytes}, i1 false)"
        )

    def clear(self, target: Value, nbytes: Operand) -> None:
        self.module.declare("llvm.memset.p0.i64", "void", ("ptr", "i8", "i64", "i1"))
        self.effect(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {nbytes}, i1 false)")

    def prefetch(self, pointer: Value, write: bool = False, locality: int = 3) -> None:
        self.module.declare("llvm.prefetch.p0", "void", ("ptr", "i32", "i32", "i32"))
        arguments = f"ptr {pointer}, i32 {int(write)}, i32 {locality}, i32 1"
        self.effect(f"call void @llvm.prefetch.p0({arguments})")

    # calls

    def intrinsic(self, name: str, type: str, *arguments: Value, overload: str = "") -> Value:
        """A pure intrinsic overloaded on its result type (or on `overload`)."""
        full = f"{name}.{mangled(overload or type)}"
        return self.pure_call(full, type, *arguments)

    def pure_call(self, name: str, type: str, *arguments: Value) -> Value:
        """A call without side effects, value-numbered; the callee is declared."""
        self.module.declare(name, type, [a.type for a in arguments])
        body = ", ".join(f"{a.type} {a}" for a in arguments)
        return self.value(type, f"call {type} @{name}({body})")

    def call(self, name: str, type: str, *arguments: Operand) -> Value | None:
        """A call with effects; ints are passed as i64. The callee is declared if unknown."""
        typed = [a if isinstance(a, Value) else constant(a, "i64") for a in arguments]
        self.module.declare(name, type, [a.type for a in typed])
        text = f"call {type} @{name}({', '.join(f'{a.type} {a}' for a in typed)})"
        if type == "void":
            self.effect(text)
            return None
        return self.fresh(type, text)

    def parallel_for(
        self, chunk: str, context: Value, count: Operand, work: Operand = 1 << 30
    ) -> None:
        """Run ``chunk(ptr context, i64 index, i64 thread)`` for `count` indices on the pool.

        `work` estimates the whole job in nanoseconds: small jobs stay on this thread. Neighbouring
        indices that are little work each are handed out together, as handing out costs as well.
        """
        if isinstance(count, int) and isinstance(work, int):
            together = min(LEAST_CHUNK * count // max(work, 1), count // FEWEST_CHUNKS)
            if together > 1:
                chunk, count = self._grouped(chunk, count, together), -(-count // together)
        self.call(PARALLEL_FOR, "void", Value("@" + chunk, "ptr"), context, count, work)

    def _grouped(self, chunk: str, count: int, together: int) -> str:
        """A chunk that runs `together` indices of another."""
        name = f"{chunk}_by_{together}"
        if name in self.module:
            return name
        f = self.module.function(name, [("ptr", "context"), ("i64", "i"), ("i64", "thread")])
        context, i, thread = f.arguments
        first = f.mul(i, together)
        with f.loop(first, f.minimum(f.add(first, together), count)) as each:
            f.call(chunk, "void", context, each.index, thread)
        f.ret()
        return name

    # control flow

    def label(self, name: str) -> None:
        self._lines.append(name + ":")
        self._block = name

    def _fresh_label(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    @contextmanager
    def _scope(self) -> Iterator[None]:
        self._scopes.append({})
        yield
        self._scopes.pop()

    @contextmanager
    def loop(
        self, low: Operand, high: Operand, step: int = 1, carry: Sequence[Value] = ()
    ) -> Iterator[Loop]:
        """``for index in range(low, high, step)`` with carried values.

        Set `next` of the yielded loop to the carried values of the next turn; `results` holds them
        after the loop (the initial ones when it never ran). Bounds that are ints and empty emit a
        loop that never runs.
        """
        guarded = not (isinstance(low, int) and isinstance(high, int) and low < high)
        head, done = self._fresh_label("loop"), self._fresh_label("done")
        before = self._block
        if guarded:
            test = self.compare("slt", low, high)
            ready = self._fresh_label("ready")
            self.effect(f"br i1 {test}, label %{ready}, label %{done}")
            before, skipped = ready, before
            self.label(ready)
        self.effect(f"br label %{head}")
        self.label(head)
        index, following = Value(self._name(), "i64"), Value(self._name(), "i64")
        loop = Loop(index, [Value(self._name(), c.type) for c in carry])
        place = len(self._lines)
        self._lines.append("")
        with self._scope():
            yield loop
        self.effect(f"{following} = add nuw nsw i64 {index}, {step}")
        again = self.fresh("i1", f"icmp slt i64 {following}, {high}")
        last = self._block
        self.effect(f"br i1 {again}, label %{head}, label %{done}")
        phis = [f"  {index} = phi i64 [ {low}, %{before} ], [ {following}, %{last} ]"]
        for name, first, then in zip(loop.carried, carry, loop.next, strict=True):
            phis.append(f"  {name} = phi {name.type} [ {first}, %{before} ], [ {then}, %{last} ]")
        self._lines[place] = "\n".join(phis)
        self.label(done)
        loop.results = list(loop.next)
        if guarded:
            loop.results = [
                self.fresh(n.type, f"phi {n.type} [ {first}, %{skipped} ], [ {n}, %{last} ]")
                for first, n in zip(carry, loop.next, strict=True)
            ]

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """The body runs if `condition` (i1) holds."""
        then, done = self._fresh_label("then"), self._fresh_label("done")
        self.effect(f"br i1 {condition}, label %{then}, label %{done}")
        self.label(then)
        with self._scope():
            yield
        self.effect(f"br label %{done}")
        self.label(done)

    @contextmanager
    def either(self, condition: Value) -> Iterator[Either]:
        """If / else: ``with f.either(c) as branch: ...; branch.otherwise(); ...``."""
        then, other = self._fresh_label("then"), self._fresh_label("else")
        done = self._fresh_label("done")
        self.effect(f"br i1 {condition}, label %{then}, label %{other}")
        self.label(then)
        self._scopes.append({})
        branch = Either(self, other, done)
        yield branch
        if not branch.switched:
            branch.otherwise()
        self._scopes.pop()
        self.effect(f"br label %{done}")
        self.label(done)

    def ret(self, value: Value | None = None) -> None:
        self.effect("ret void" if value is None else f"ret {value.type} {value}")

    def text(self) -> str:
        parameters = ", ".join(f"{t} %{n}" for t, n in self.parameters)
        head = f"define {self._linkage}{self.result} @{self.name}({parameters}) #0 {{"
        return "\n".join([head, "entry:", *self._allocas, *self._lines, "}"])


class Either:
    """The two sides of `Function.either`."""

    def __init__(self, function: Function, other: str, done: str) -> None:
        self._function = function
        self._other = other
        self._done = done
        self.switched = False

    def otherwise(self) -> None:
        """What follows belongs to the else side."""
        f = self._function
        self.switched = True
        f.effect(f"br label %{self._done}")
        f._scopes[-1] = {}
        f.label(self._other)

"""Lines of a tensor in order: a stable radix sort, and the first few by insertion.

An element becomes a record: above, its key, an unsigned integer that orders as the element does
(NaN last, both zeros equal); below, its place in the line. No two records are equal, so whatever
sorts them sorts stably. For a descending order keys are inverted.
"""

from __future__ import annotations

from dataclasses import dataclass

from flambeau.codegen.templates.entry import Kernel, slot
from flambeau.codegen.text import Function, Module, Operand, Value, constant
from flambeau.runtime import pool

LONG_LINE = 4096  # elements; from here on digits of 11 bits save passes
MOST_INSERTED = 64  # elements kept in order by insertion; more are cut from a full sort
CHUNK_ELEMENTS = 4096
NANOSECONDS = {"sort": 15.0, "first": 2.0}  # an element


@dataclass(frozen=True, slots=True)
class SortSpec:
    """`outer` x `length` x `inner` elements, contiguous; lines run along the middle. The first
    `count` of each are wanted. `kind` is ``float``, ``signed`` or ``unsigned``; `infinity` are the
    bits of a float's infinity."""

    outer: int
    length: int
    inner: int
    count: int
    bits: int
    kind: str
    descending: bool
    infinity: int = 0

    @property
    def key_bits(self) -> int:
        return 32 if self.bits <= 32 else 64

    @property
    def digit_bits(self) -> int:
        return 11 if self.length >= LONG_LINE else 8

    @property
    def digits(self) -> int:
        return -(-self.bits // self.digit_bits)

    @property
    def is_inserted(self) -> bool:
        return self.count <= MOST_INSERTED and 4 * self.count <= self.length


class Sorting:
    """Writes the kernel; slots: x, values, indices, working memory."""

    def __init__(self, module: Module, name: str, spec: SortSpec):
        self.module, self.name, self.spec = module, name, spec
        self.element = f"i{spec.bits}"
        self.key = f"i{spec.key_bits}"
        self.record = f"i{2 * spec.key_bits}"
        self.record_bytes = spec.key_bits // 4
        self.buckets = 1 << spec.digit_bits
        lines = spec.outer * spec.inner
        self.block = max(1, CHUNK_ELEMENTS // spec.length)
        self.chunks = -(-lines // self.block)

    @property
    def memory(self) -> int:
        """Bytes that one chunk works in: records, a second lot of them, counts of digits."""
        spec = self.spec
        if spec.is_inserted:
            return -(-spec.count * self.record_bytes // 64) * 64
        records = -(-spec.length * self.record_bytes // 64) * 64
        return 2 * records + spec.digits * self.buckets * 4

    def emit(self) -> Kernel:
        spec = self.spec
        self.chunk()
        f = self.module.function(self.name, [("ptr", "slots")])
        kind = "first" if spec.is_inserted else "sort"
        work = int(spec.outer * spec.length * spec.inner * NANOSECONDS[kind])
        f.parallel_for(f"{self.name}_lines", f.arguments[0], self.chunks, work)
        f.ret()
        memory = self.memory * min(self.chunks, pool.capacity())
        return Kernel(self.name, 3, 4, memory, nanoseconds=work)

    def chunk(self) -> None:
        """A block of lines, one after the other."""
        spec = self.spec
        parameters = [("ptr", "slots"), ("i64", "chunk"), ("i64", "thread")]
        f = self.module.function(f"{self.name}_lines", parameters)
        slots, chunk, thread = f.arguments
        x, values, indices, memory = (slot(f, slots, k) for k in range(4))
        mine = chunk if self.chunks <= pool.capacity() else thread
        memory = f.gep(memory, f.mul(mine, self.memory), "i8")
        low = f.mul(chunk, self.block)
        high = f.minimum(f.add(low, self.block), spec.outer * spec.inner)
        with f.loop(low, high) as loop:
            outer, inner = f.udiv(loop.index, spec.inner), f.urem(loop.index, spec.inner)
            start = f.add(f.mul(outer, spec.length * spec.inner), inner)
            found = f.add(f.mul(outer, spec.count * spec.inner), inner)
            line = f.gep(x, start, self.element)
            if spec.is_inserted:
                records = self.inserted(f, line, memory)
            else:
                records = self.sorted(f, line, memory)
            targets = f.gep(values, found, self.element), f.gep(indices, found, "i64")
            self.deliver(f, line, records, *targets)
        f.ret()

    def deliver(self, f: Function, line: Value, records: Value, values: Value, indices: Value):
        """The elements that the first records stand for, and their places."""
        spec = self.spec
        with f.loop(0, spec.count) as loop:
            record = f.load(self.record, f.gep(records, loop.index, self.record))
            low = f.cast("trunc", record, self.key)
            place = f.cast("zext", low, "i64") if spec.key_bits < 64 else low
            at = f.mul(loop.index, spec.inner)
            raw = f.load(self.element, f.gep(line, f.mul(place, spec.inner), self.element))
            f.store(raw, f.gep(values, at, self.element))
            f.store(place, f.gep(indices, at, "i64"))

    # keys and records

    def ordered(self, f: Function, raw: Value) -> Value:
        """The bits of an element (or a vector of them) as an unsigned number of their order."""
        spec = self.spec
        sign = 1 << (spec.bits - 1)
        key = raw
        if spec.kind == "signed":
            key = f.binary("xor", raw, signed(sign, spec.bits))
        elif spec.kind == "float":
            size = f.binary("and", raw, sign - 1)
            negative = f.compare("slt", raw, 0)
            flipped = f.binary("xor", raw, -1)
            key = f.select(negative, flipped, f.binary("or", raw, signed(sign, spec.bits)))
            key = f.select(f.compare("eq", size, 0), signed(sign, spec.bits), key)
            key = f.select(f.compare("ugt", size, spec.infinity), -1, key)
        return f.binary("xor", key, -1) if spec.descending else key

    def packed(self, f: Function, raw: Value, place: Value) -> Value:
        """The record of an element."""
        key = f.cast("zext", self.ordered(f, raw), self.record)
        low = f.cast("zext", place, self.record) if self.record != "i64" else place
        return f.binary("or", f.binary("shl", key, self.spec.key_bits), low)

    def at(self, f: Function, line: Value, place: Operand) -> Value:
        return f.load(self.element, f.gep(line, f.mul(place, self.spec.inner), self.element))

    # the first few

    def inserted(self, f: Function, line: Value, records: Value) -> Value:
        """`count` records in order; one that is smaller than the last takes its place in them."""
        spec = self.spec
        with f.loop(0, spec.count) as loop:
            f.store(constant(-1, self.record), f.gep(records, loop.index, self.record))
        last = f.gep(records, spec.count - 1, self.record)
        lanes = min(64, self.module.vector_bits // spec.bits)
        whole = spec.length // lanes * lanes if spec.inner == 1 else 0
        if whole:
            with f.loop(0, whole, lanes) as block:
                self.insert_block(f, line, records, last, block.index, lanes)
        with f.loop(whole, spec.length) as loop:
            record = self.packed(f, self.at(f, line, loop.index), loop.index)
            self.insert(f, records, last, record)
        return records

    def insert_block(self, f, line: Value, records: Value, last: Value, start: Value, lanes: int):
        """Most blocks have nothing to insert: one comparison of vectors tells."""
        spec = self.spec
        vector = f.load(f"<{lanes} x {self.element}>", f.gep(line, start, self.element))
        worst = f.load(self.record, last)
        shifted = f.binary("lshr", worst, spec.key_bits)
        limit = f.splat(f.cast("trunc", shifted, self.element), lanes)
        near = f.compare("ule", self.ordered(f, vector), limit)
        any_near = f.pure_call(f"llvm.vector.reduce.or.v{lanes}i1", "i1", near)
        with f.when(any_near), f.loop(0, lanes) as lane:
            place = f.add(start, lane.index)
            self.insert(f, records, last, self.packed(f, self.at(f, line, place), place))

    def insert(self, f: Function, records: Value, last: Value, record: Value) -> None:
        """Records behind the new one move on by one place."""
        with (
            f.when(f.compare("ult", record, f.load(self.record, last))),
            f.loop(0, self.spec.count, 1, [record]) as loop,
        ):
            at = f.gep(records, loop.index, self.record)
            (moving,) = loop.carried
            held = f.load(self.record, at)
            smaller = f.compare("ult", moving, held)
            f.store(f.select(smaller, moving, held), at)
            loop.next = [f.select(smaller, held, moving)]

    # all of them

    def sorted(self, f: Function, line: Value, memory: Value) -> Value:
        """Records by their digits, lowest first; where they end up."""
        spec = self.spec
        size = -(-spec.length * self.record_bytes // 64) * 64
        here, there = memory, f.gep(memory, size, "i8")
        counts = f.gep(memory, 2 * size, "i8")
        f.clear(counts, spec.digits * self.buckets * 4)
        with f.loop(0, spec.length) as loop:
            record = self.packed(f, self.at(f, line, loop.index), loop.index)
            f.store(record, f.gep(here, loop.index, self.record))
            for digit in range(spec.digits):
                counter = f.gep(counts, self.digit(f, record, digit), "i32")
                f.store(f.binary("add", f.load("i32", counter), 1), counter)
        for digit in range(spec.digits):
            here, there = self.distributed(f, here, there, counts, digit)
        return here

    def digit(self, f: Function, record: Value, digit: int) -> Value:
        """Where the record's digit is counted."""
        spec = self.spec
        shift = spec.key_bits + digit * spec.digit_bits
        low = f.binary("and", f.binary("lshr", record, shift), self.buckets - 1)
        number = f.cast("trunc", low, "i64") if self.record != "i64" else low
        return f.add(number, digit * self.buckets)

    def distributed(self, f: Function, here: Value, there: Value, counts: Value, digit: int):
        """One pass; nothing moves where all records have the same digit."""
        spec = self.spec
        first = f.load(self.record, here)
        shared = f.load("i32", f.gep(counts, self.digit(f, first, digit), "i32"))
        place_here, place_there = f.alloca("ptr"), f.alloca("ptr")
        f.store(here, place_here)
        f.store(there, place_there)
        with f.when(f.compare("ne", shared, spec.length)):
            with f.loop(0, self.buckets, 1, [constant(0, "i32")]) as loop:
                counter = f.gep(counts, f.add(loop.index, digit * self.buckets), "i32")
                (total,) = loop.carried
                count = f.load("i32", counter)
                f.store(total, counter)
                loop.next = [f.binary("add", total, count)]
            with f.loop(0, spec.length) as loop:
                record = f.load(self.record, f.gep(here, loop.index, self.record))
                counter = f.gep(counts, self.digit(f, record, digit), "i32")
                at = f.load("i32", counter)
                f.store(f.binary("add", at, 1), counter)
                f.store(record, f.gep(there, f.cast("zext", at, "i64"), self.record))
            f.store(there, place_here)
            f.store(here, place_there)
        return f.load("ptr", place_here), f.load("ptr", place_there)


def signed(value: int, bits: int) -> int:
    """The signed number with these bits."""
    return value - (1 << bits) if value >> (bits - 1) else value

"""Leaving and entering a function in the middle.

A frame at an index is described by a `Place`: which stack entries are NULL and which local slots
are bound. Two code objects are made from it:

* `resume_code` restores the state and runs the rest of the function;
* `bridge_code` restores the state, executes the one instruction at the index inside the exception
  handlers that guard it there, and passes the new state on to a successor callable. The rest of the
  function follows only for its exception handlers, so a handler that loops back to the instruction
  runs it as plain Python.

Both take the bound locals in slot order and then the stack, because `super()` without arguments
reads the first slot. Slots of cell variables receive the cells themselves.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import NamedTuple

import bytecode
from bytecode import CellVar, FreeVar, Instr, Label, TryBegin, TryEnd
from bytecode.flags import CompilerFlags

from flambeau.capture.bytecodes import (
    NULL_AFTER_CALLABLE,
    VERSION,
    UnknownBytecode,
    assembled,
    fresh_listing,
)
from flambeau.capture.instructions import after_loop

STACK_ARGUMENT = "___stack{}"
VARIADIC = 0x04 | 0x08
FREE_VARIABLES_PRESENT = 0x10


class Place(NamedTuple):
    """The shape of a frame before the instruction at `index` of its listing."""

    index: int
    nulls: tuple[bool, ...]
    """For each stack entry, bottom first, whether it is NULL."""
    bound: tuple[str, ...]
    """The local slots that hold something, in slot order; cell variables hold their cell."""

    @property
    def values(self) -> int:
        """How many stack entries are not NULL."""
        return self.nulls.count(False)

    def arguments(self) -> list[str]:
        """Argument names of the code objects made for this place."""
        return [*self.bound, *(STACK_ARGUMENT.format(k) for k in range(self.values))]


def slot_order(code: types.CodeType, names: Iterable[str]) -> tuple[str, ...]:
    """`names` in the order of the slots of `code`."""
    slots = [*code.co_varnames, *(c for c in code.co_cellvars if c not in code.co_varnames)]
    wanted = set(names)
    return tuple(s for s in slots if s in wanted)


def _restored(code: types.CodeType, place: Place) -> list[Instr]:
    """Instructions that rebuild the state from the arguments."""
    head = []
    if code.co_freevars:
        head.append(Instr("COPY_FREE_VARS", len(code.co_freevars)))
    head.append(Instr("RESUME", 0))
    names = iter([STACK_ARGUMENT.format(k) for k in range(place.values)])
    for null in place.nulls:
        head.append(Instr("PUSH_NULL") if null else Instr("LOAD_FAST", next(names)))
    head += [Instr("DELETE_FAST", STACK_ARGUMENT.format(k)) for k in range(place.values)]
    return head


ENTRY_ONLY = ("MAKE_CELL", "COPY_FREE_VARS", "RETURN_GENERATOR")


def _body(listing: bytecode.Bytecode) -> list:
    """The listing without the instructions that set a frame up."""
    before_start, body = True, []
    for element in listing:
        if before_start and isinstance(element, Instr):
            if element.name == "RESUME":
                before_start = False
                continue
            if element.name in ENTRY_ONLY:
                continue
        body.append(element)
    return body


def _finished(
    listing: bytecode.Bytecode, code: types.CodeType, place: Place, elements: list
) -> types.CodeType:
    line = next(
        (x.location for x in listing[place.index :] if isinstance(x, Instr) and x.location), None
    )
    for element in elements:
        if not isinstance(element, Instr):
            continue
        if element.location is None or not element.location.lineno:
            element.location = line
        line = element.location
    listing[:] = elements
    listing.argnames = place.arguments()
    listing.argcount = len(listing.argnames)
    listing.kwonlyargcount = listing.posonlyargcount = 0
    listing.flags = CompilerFlags(code.co_flags & ~VARIADIC)
    return assembled(listing, code.co_stacksize + len(listing.argnames) + 16)


def resume_code(code: types.CodeType, place: Place) -> types.CodeType:
    """`code` from `place` on, as a function of the bound locals and the stack."""
    listing = fresh_listing(code)
    target = Label()
    listing.insert(place.index, target)
    elements = [*_restored(code, place), Instr("JUMP_FORWARD", target), *_body(listing)]
    return _finished(listing, code, place, elements)


def _cell_load(name: str, kind: type) -> Instr:
    return Instr("LOAD_FAST" if NULL_AFTER_CALLABLE else "LOAD_CLOSURE", kind(name))


def _tail(code: types.CodeType, after: Place, successor: Callable) -> list[Instr]:
    """`return successor((free cells), bound locals..., stack...)`, with the stack taken along."""
    names = [STACK_ARGUMENT.format(k) for k in range(after.values)]
    tail, left = [], list(names)
    for null in reversed(after.nulls):
        # NULL may be stored, which leaves the local unbound, but never popped.
        tail.append(Instr("STORE_FAST", "___null" if null else left.pop()))
    callee = [Instr("LOAD_CONST", successor), Instr("PUSH_NULL")]
    tail += callee if NULL_AFTER_CALLABLE else callee[::-1]
    tail += [_cell_load(name, FreeVar) for name in code.co_freevars]
    tail.append(Instr("BUILD_TUPLE", len(code.co_freevars)))
    for name in after.bound:
        is_cell = name in code.co_cellvars
        tail.append(_cell_load(name, CellVar) if is_cell else Instr("LOAD_FAST", name))
    tail += [Instr("LOAD_FAST", name) for name in names]
    count = 1 + len(after.bound) + len(names)
    if VERSION < (3, 12):
        tail.append(Instr("PRECALL", count))
    return [*tail, Instr("CALL", count), Instr("RETURN_VALUE")]


NOT_BRIDGED = frozenset(
    "CACHE EXTENDED_ARG KW_NAMES PRECALL PUSH_EXC_INFO END_FOR SEND YIELD_VALUE RETURN_GENERATOR "
    "RESUME MAKE_CELL COPY_FREE_VARS LOAD_FAST_AND_CLEAR POP_EXCEPT CHECK_EXC_MATCH "
    "WITH_EXCEPT_START CLEANUP_THROW END_SEND GET_YIELD_FROM_ITER GET_AWAITABLE".split()
)
FINAL = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")


def can_break_at(code: types.CodeType, index: int) -> bool:
    """Whether a bridge can execute the instruction at `index` on its own."""
    element = fresh_listing(code)[index]
    return isinstance(element, Instr) and element.name not in NOT_BRIDGED


def _after(instruction: Instr, place: Place, code: types.CodeType, index: int, jump: bool) -> Place:
    """The place behind `instruction` when it falls through, or when it jumps."""
    nulls, bound = list(place.nulls), set(place.bound)
    name, arg = instruction.name, instruction.arg
    if name == "PUSH_NULL":
        nulls.append(True)
    elif name == "COPY":
        nulls.append(nulls[-arg])
    elif name == "SWAP":
        nulls[-1], nulls[-arg] = nulls[-arg], nulls[-1]
    elif name == "CALL":  # 3.11 books the arguments on PRECALL, which does nothing
        nulls = [*nulls[: -(arg + 2)], False]
    elif name == "FOR_ITER":
        nulls = nulls[:-1] if jump else [*nulls, False]
    else:
        popped, pushed = instruction.pre_and_post_stack_effect(jump)
        if popped < 0:
            del nulls[popped:]
        else:
            nulls += [False] * popped
        nulls = nulls + [False] * pushed if pushed >= 0 else nulls[:pushed]
    if name in ("STORE_FAST", "STORE_FAST_MAYBE_NULL"):
        bound.add(str(getattr(arg, "name", arg)))
    elif name == "DELETE_FAST":
        bound.discard(str(getattr(arg, "name", arg)))
    return Place(index, tuple(nulls), slot_order(code, bound))


def _guarding(listing: bytecode.Bytecode, index: int) -> TryBegin | None:
    active: list[TryBegin] = []
    for element in listing[:index]:
        if isinstance(element, TryBegin):
            active.append(element)
        elif isinstance(element, TryEnd):
            active = [a for a in active if a is not element.entry]
    return active[-1] if active else None


def _position(listing: bytecode.Bytecode, label: Label) -> int:
    return next(k for k, x in enumerate(listing) if x is label)


def bridge_code(
    code: types.CodeType, place: Place, successor: Callable[[Place], Callable]
) -> types.CodeType:
    """Execute the instruction at `place`, then call `successor(place behind it)`.

    The callable gets a tuple of the free cells, the bound locals and the stack, one by one.
    """
    if not can_break_at(code, place.index):
        raise UnknownBytecode(f"{code.co_qualname}: cannot break at {place.index}")
    listing = fresh_listing(code)
    instruction = listing[place.index]
    guard = _guarding(listing, place.index)
    step: list = []
    taken = Label()
    keyword_names = _keyword_names(listing, place.index)
    copied = instruction.copy()
    target = None
    if isinstance(instruction.arg, Label):
        target, copied = (
            instruction.arg,
            Instr(_forward(instruction.name), taken, location=instruction.location),
        )
    step += [*keyword_names, copied]
    if guard is not None:
        begin = TryBegin(guard.target, guard.push_lasti, guard.stack_depth)
        step = [begin, *step, TryEnd(begin)]
    if instruction.name not in FINAL and instruction.name != "JUMP_FORWARD":
        after = _after(instruction, place, code, place.index + 1, False)
        step += _tail(code, after, successor(after))
    if target is not None:
        step += _taken(code, place, listing, instruction, taken, target, successor)
    body = _body(listing) if guard is not None else []
    return _finished(listing, code, place, [*_restored(code, place), *step, *body])


def _forward(name: str) -> str:
    """The jump copied into a bridge always leads forward."""
    if name.startswith("JUMP") and "IF" not in name:
        return "JUMP_FORWARD"
    return name.replace("BACKWARD", "FORWARD")


def _keyword_names(listing: bytecode.Bytecode, index: int) -> list[Instr]:
    """The KW_NAMES and PRECALL in front of a CALL, which belong to it."""
    found: list[Instr] = []
    if listing[index].name != "CALL":
        return found
    for element in reversed(listing[:index]):
        if not isinstance(element, Instr):
            continue
        if element.name not in ("KW_NAMES", "PRECALL"):
            break
        found.insert(0, element.copy())
    return found


def _taken(
    code: types.CodeType,
    place: Place,
    listing: bytecode.Bytecode,
    instruction: Instr,
    taken: Label,
    target: Label,
    successor: Callable[[Place], Callable],
) -> list:
    """What runs when the jump at `place` is taken."""
    index = _position(listing, target)
    skipped: list[Instr] = []
    if instruction.name == "FOR_ITER":
        behind = after_loop(code, index)
        skipped = [x.copy() for x in listing[index:behind] if isinstance(x, Instr)]
        index = behind
    after = _after(instruction, place, code, index, True)
    return [taken, *skipped, *_tail(code, after, successor(after))]

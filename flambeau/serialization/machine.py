"""A machine for pickles that runs no code of its own accord.

It knows the opcodes that data needs. Names are resolved by `names.find(module, name)`, which
refuses all but an allow-list; objects are made only by `names.call`, `names.new` and `names.build`,
which check again. The stack and the memo are plain lists and dicts, so a file can make the machine
use no more memory than a small multiple of its own size.
"""

from __future__ import annotations

import pickle
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

from flambeau.core.errors import FlambeauError, complaint
from flambeau.serialization.errors import DamagedFile, EmptyFile

_NEWEST = 5  # of the pickle protocols
_LARGEST_KEY = 10_000  # items in a dict key, those of nested tuples counted


class Names(Protocol):
    """Decides which globals a file may use, and how."""

    def find(self, module: str, name: str) -> Any: ...

    def call(self, function: Any, arguments: tuple) -> Any: ...

    def new(self, kind: Any, arguments: tuple, keywords: dict) -> Any: ...

    def build(self, target: Any, state: Any) -> None: ...


def damaged(must: str, **facts: Any) -> DamagedFile:
    return DamagedFile(complaint("load", must, facts,
                                 "The file is damaged, or no checkpoint: save or fetch it again."))


def hashable(key: Any) -> Any:
    """The key, unless hashing it could take forever: tuples of tuples of ... are walked whole."""
    if type(key) is tuple:
        pending, seen = [key], 0
        while pending:
            part = pending.pop()
            seen += 1
            if seen > _LARGEST_KEY:
                raise damaged("keys must be small", parts=f"more than {_LARGEST_KEY}")
            if type(part) is tuple:
                pending.extend(part)
    return key


class Machine:
    """Reads one pickle from `file`, of which at most `limit` bytes are left."""

    def __init__(
        self,
        file: BinaryIO,
        limit: int,
        names: Names,
        persistent: Callable[[Any], Any],
        encoding: str = "utf-8",
    ):
        self.file = file
        self.left = limit
        self.names = names
        self.persistent = persistent
        self.encoding = encoding
        self.memo: dict[int, Any] = {}
        self.stack: list[Any] = []
        self.marked: list[list[Any]] = []  # the stacks below each open MARK

    def load(self) -> Any:
        """The object. Every mistake in the stream comes out as DamagedFile."""
        try:
            while (code := self.read(1)[0]) != pickle.STOP[0]:
                step = _STEPS.get(code)
                if step is None:
                    raise damaged("the pickle may hold only opcodes for data", opcode=hex(code))
                step(self)
            value = self.stack.pop()
        except (FlambeauError, OSError, MemoryError):
            raise
        except Exception as error:
            raise damaged("the pickle must be well formed", reason=repr(error)) from error
        if self.stack or self.marked:
            raise damaged("the pickle must hold one object", left=len(self.stack))
        return value

    def read(self, count: int) -> bytes:
        if count > self.left:
            raise EmptyFile(str(damaged("the pickle must not end early (Ran out of input)",
                                        wanted=count, left=self.left)))
        data = self.file.read(count)
        if len(data) != count:
            raise EmptyFile(str(damaged("the pickle must not end early (Ran out of input)",
                                        wanted=count, read=len(data))))
        self.left -= count
        return data

    def line(self) -> str:
        data = self.file.readline(min(self.left, 1 << 16))
        self.left -= len(data)
        if not data.endswith(b"\n"):
            raise damaged("a line of the pickle must end", read=len(data))
        return data[:-1].decode("utf-8")

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.read(struct.calcsize(layout)))[0]

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop_mark(self) -> list:
        items, self.stack = self.stack, self.marked.pop()
        return items

    def memoize(self, key: int) -> None:
        self.memo[key] = self.stack[-1]


_STEPS: dict[int, Callable[[Machine], None]] = {}

Step = Callable[[Machine], None]


def _opcode(*codes: bytes) -> Callable[[Step], Step]:
    def register(step: Step) -> Step:
        for code in codes:
            _STEPS[code[0]] = step
        return step

    return register


def _constant(code: bytes, value: Any) -> None:
    _STEPS[code[0]] = lambda m: m.push(value)


def _number(code: bytes, layout: str) -> None:
    _STEPS[code[0]] = lambda m: m.push(m.number(layout))


def _sized(code: bytes, layout: str, convert: Callable[[Machine, bytes], Any]) -> None:
    _STEPS[code[0]] = lambda m: m.push(convert(m, m.read(m.number(layout))))


_constant(pickle.NONE, None)
_constant(pickle.NEWTRUE, True)
_constant(pickle.NEWFALSE, False)
_constant(pickle.EMPTY_TUPLE, ())
_number(pickle.BININT, "<i")
_number(pickle.BININT1, "<B")
_number(pickle.BININT2, "<H")
_number(pickle.BINFLOAT, ">d")


def _utf8(m: Machine, data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _python2_string(m: Machine, data: bytes) -> str | bytes:
    return data if m.encoding == "bytes" else data.decode(m.encoding)


def _integer(m: Machine, data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


for _code, _layout in ((pickle.SHORT_BINUNICODE, "<B"), (pickle.BINUNICODE, "<I"),
                       (pickle.BINUNICODE8, "<Q")):
    _sized(_code, _layout, _utf8)
for _code, _layout in ((pickle.SHORT_BINBYTES, "<B"), (pickle.BINBYTES, "<I"),
                       (pickle.BINBYTES8, "<Q")):
    _sized(_code, _layout, lambda m, data: data)
_sized(pickle.BYTEARRAY8, "<Q", lambda m, data: bytearray(data))
_sized(pickle.SHORT_BINSTRING, "<B", _python2_string)
_sized(pickle.BINSTRING, "<I", _python2_string)
_sized(pickle.LONG1, "<B", _integer)
_sized(pickle.LONG4, "<I", _integer)


@_opcode(pickle.PROTO)
def _protocol(m: Machine) -> None:
    protocol = m.number("<B")
    if protocol > _NEWEST:
        raise damaged(f"the pickle protocol must be at most {_NEWEST}", protocol=protocol)


@_opcode(pickle.FRAME)
def _frame(m: Machine) -> None:
    m.read(8)  # how many bytes follow; nothing here depends on it


@_opcode(pickle.INT)
def _decimal_int(m: Machine) -> None:
    text = m.line()
    m.push({"00": False, "01": True}[text] if text in ("00", "01") else int(text))


@_opcode(pickle.LONG)
def _decimal_long(m: Machine) -> None:
    m.push(int(m.line().rstrip("L")))


@_opcode(pickle.FLOAT)
def _decimal_float(m: Machine) -> None:
    m.push(float(m.line()))


@_opcode(pickle.UNICODE)
def _escaped_text(m: Machine) -> None:
    m.push(m.line().encode("latin-1").decode("raw-unicode-escape"))


@_opcode(pickle.MARK)
def _mark(m: Machine) -> None:
    m.marked.append(m.stack)
    m.stack = []


@_opcode(pickle.POP)
def _pop(m: Machine) -> None:
    if m.stack:
        m.stack.pop()
    else:
        m.pop_mark()


@_opcode(pickle.POP_MARK)
def _pop_mark(m: Machine) -> None:
    m.pop_mark()


@_opcode(pickle.DUP)
def _dup(m: Machine) -> None:
    m.push(m.stack[-1])


@_opcode(pickle.EMPTY_LIST)
def _empty_list(m: Machine) -> None:
    m.push([])


@_opcode(pickle.EMPTY_DICT)
def _empty_dict(m: Machine) -> None:
    m.push({})


@_opcode(pickle.EMPTY_SET)
def _empty_set(m: Machine) -> None:
    m.push(set())


@_opcode(pickle.LIST)
def _list(m: Machine) -> None:
    items = m.pop_mark()
    m.push(items)


@_opcode(pickle.DICT)
def _dict(m: Machine) -> None:
    items = m.pop_mark()
    m.push({})
    _put_items(m, items)


@_opcode(pickle.FROZENSET)
def _frozenset(m: Machine) -> None:
    items = m.pop_mark()
    m.push(frozenset(map(hashable, items)))


@_opcode(pickle.TUPLE)
def _tuple(m: Machine) -> None:
    items = m.pop_mark()
    m.push(tuple(items))


def _short_tuple(code: bytes, size: int) -> None:
    def step(m: Machine) -> None:
        if len(m.stack) < size:
            raise damaged("a tuple must find its items on the stack", size=size)
        m.stack[-size:] = [tuple(m.stack[-size:])]

    _STEPS[code[0]] = step


_short_tuple(pickle.TUPLE1, 1)
_short_tuple(pickle.TUPLE2, 2)
_short_tuple(pickle.TUPLE3, 3)


def _target(m: Machine, *kinds: type) -> Any:
    """The container that items are put into, of one of the given builtin kinds or below."""
    target = m.stack[-1]
    if not isinstance(target, kinds):
        raise damaged("items may be put only into containers", target=type(target).__name__)
    return target


@_opcode(pickle.APPEND)
def _append(m: Machine) -> None:
    value = m.stack.pop()
    _target(m, list, deque).append(value)


@_opcode(pickle.APPENDS)
def _appends(m: Machine) -> None:
    items = m.pop_mark()
    _target(m, list, deque).extend(items)


@_opcode(pickle.SETITEM)
def _set_item(m: Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _put_items(m, [key, value])


@_opcode(pickle.SETITEMS)
def _set_items(m: Machine) -> None:
    _put_items(m, m.pop_mark())


def _put_items(m: Machine, items: list) -> None:
    target = _target(m, dict)
    for key, value in zip(items[::2], items[1::2], strict=True):
        target[hashable(key)] = value


@_opcode(pickle.ADDITEMS)
def _add_items(m: Machine) -> None:
    items = m.pop_mark()
    _target(m, set).update(map(hashable, items))


@_opcode(pickle.BINGET)
def _get(m: Machine) -> None:
    m.push(m.memo[m.number("<B")])


@_opcode(pickle.LONG_BINGET)
def _long_get(m: Machine) -> None:
    m.push(m.memo[m.number("<I")])


@_opcode(pickle.GET)
def _decimal_get(m: Machine) -> None:
    m.push(m.memo[int(m.line())])


@_opcode(pickle.BINPUT)
def _put(m: Machine) -> None:
    m.memoize(m.number("<B"))


@_opcode(pickle.LONG_BINPUT)
def _long_put(m: Machine) -> None:
    m.memoize(m.number("<I"))


@_opcode(pickle.PUT)
def _decimal_put(m: Machine) -> None:
    m.memoize(int(m.line()))


@_opcode(pickle.MEMOIZE)
def _memoize(m: Machine) -> None:
    m.memoize(len(m.memo))


@_opcode(pickle.GLOBAL)
def _global(m: Machine) -> None:
    module = m.line()
    m.push(m.names.find(module, m.line()))


@_opcode(pickle.STACK_GLOBAL)
def _stack_global(m: Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if type(name) is not str or type(module) is not str:
        raise damaged("a global must be named by two strings", module=module, name=name)
    m.push(m.names.find(module, name))


@_opcode(pickle.REDUCE)
def _reduce(m: Machine) -> None:
    arguments, function = m.stack.pop(), m.stack.pop()
    m.push(m.names.call(function, _arguments(arguments)))


@_opcode(pickle.NEWOBJ)
def _new(m: Machine) -> None:
    arguments, kind = m.stack.pop(), m.stack.pop()
    m.push(m.names.new(kind, _arguments(arguments), {}))


@_opcode(pickle.NEWOBJ_EX)
def _new_with_keywords(m: Machine) -> None:
    keywords, arguments, kind = m.stack.pop(), m.stack.pop(), m.stack.pop()
    if type(keywords) is not dict:
        raise damaged("keyword arguments must be a dict", got=type(keywords).__name__)
    m.push(m.names.new(kind, _arguments(arguments), keywords))


def _arguments(value: Any) -> tuple:
    if type(value) is not tuple:
        raise damaged("arguments must be a tuple", got=type(value).__name__)
    return value


@_opcode(pickle.BUILD)
def _build(m: Machine) -> None:
    state = m.stack.pop()
    m.names.build(m.stack[-1], state)


@_opcode(pickle.BINPERSID)
def _persistent(m: Machine) -> None:
    m.push(m.persistent(m.stack.pop()))

"""Where programs live: a `Site` is one code object, from its start or from a place in its middle.

A call of a site asks each of its programs in turn; a program whose guards do not hold says MISS.
When all have missed, the frame is captured again, until the limit; after that it runs as plain
Python. A program that ends at a break gives the state of the frame there: the bridge executes one
instruction and calls the site that continues behind it.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from flambeau.autograd import anomaly
from flambeau.capture import frame_hook, trust
from flambeau.capture.breaks import GraphBreak, SkipFrame
from flambeau.capture.bytecodes import UnknownBytecode, argument_names
from flambeau.capture.capture import Captured, Frozen, Options, capture
from flambeau.capture.guards import Guard, failing, failures
from flambeau.capture.instructions import program
from flambeau.capture.outside import Same
from flambeau.capture.programs import FAILED, MISS
from flambeau.capture.resume import Place, bridge_code, resume_code
from flambeau.compile import config, records
from flambeau.compile.entries import Entry
from flambeau.core import logs

TELLING = ("equals", "tensor", "like")
"""Guards on what may become symbolic."""
GENERATOR_LIKE = 0x20 | 0x80 | 0x200
busy = threading.local()
"""`busy.capturing` is true on a thread while it captures."""
_lock = threading.RLock()


class Region:
    """What all sites of one `compile` call share."""

    def __init__(self, options: Options, name: str, callback: Callable | None = None):
        self.options = options
        self.name = name
        self.sites: dict[tuple, Site] = {}
        self.frames: frame_hook.Callback | None = callback
        self.entry: Callable[[types.FunctionType, Site], Callable] | None = None

    def site(self, code: types.CodeType, space: dict, start: Place | None = None) -> Site:
        """The site for a code object at a place."""
        key = (code, id(space), start)
        found = self.sites.get(key)
        if found is None:
            found = self.sites[key] = Site(self, code, space, start)
        return found

    def reset(self) -> None:
        self.sites.clear()


class FailedGuard(NamedTuple):
    """A test that did not hold: where, what the program was captured with, what is there now."""

    guard: str
    old: str
    new: str


class Site:
    """Programs for one code object from one place."""

    def __init__(self, region: Region, code: types.CodeType, space: dict, start: Place | None):
        self.region, self.code, self.space, self.start = region, code, space, start
        self.names = tuple(start.arguments()) if start else argument_names(code)
        self.entries: list[Entry] = []
        self.skipped = ""
        self.failed = 0
        self.empty = 0
        self.dynamic: set[str] = set()
        self.limited = False
        self.plain_code: types.CodeType | None = None

    # Calling ---------------------------------------------------------------------------------

    def call(self, function: types.FunctionType, *values: Any) -> Any:
        """Run the frame, whose function provides globals and closure."""
        for entry in self.entries:
            result = entry.program(function, *values)
            if result is not MISS:
                if entry.bridge is None and result is not FAILED:
                    return result
                return self.concluded(entry, function, values, result)
        return self.missed(function, values)

    def concluded(
        self, entry: Entry, function: types.FunctionType, values: tuple, result: Any
    ) -> Any:
        """The frame's result, from what a program that fits has given."""
        if result is FAILED:
            return self.plain(function, values)
        return result if entry.bridge is None else self.leave(entry, function, result)

    def leave(self, entry: Entry, function: types.FunctionType, state: tuple) -> Any:
        """Go on behind a program that ends at a break."""
        assert entry.bridge is not None
        bridge = types.FunctionType(
            entry.bridge, self.space, self.code.co_name, None, function.__closure__
        )
        bridge.__qualname__ = self.code.co_qualname
        if self.region.frames is None:
            return bridge(*self._with_captured_callee(entry, state))
        with frame_hook.enabled(self.region.frames):
            return bridge(*state)

    def _with_captured_callee(self, entry: Entry, state: tuple) -> tuple:
        """Without a frame hook, the function that the bridge calls is replaced by its captured form
        on the stack; functions that it calls in turn are found in the same way."""
        assert entry.captured.broken is not None
        place = entry.captured.broken.place
        instruction = program(self.code)[place.index]
        if instruction.name not in ("CALL", "CALL_KW") or self.region.entry is None:
            return state
        above = instruction.arg + (instruction.name == "CALL_KW")  # arguments, and their names
        has_null = any(place.nulls[-(above + 2) : len(place.nulls) - above])
        at = -(above + 1) if has_null else -(above + 2)
        callee = self._captured_callee(state[at])
        return (*state[:at], callee, *state[len(state) + at + 1 :])

    def _captured_callee(self, callee: Any) -> Any:
        if isinstance(callee, types.MethodType):
            inner = self._captured_callee(callee.__func__)
            return types.MethodType(inner, callee.__self__)
        if not isinstance(callee, types.FunctionType) or trust.is_opaque(callee):
            return callee
        code = callee.__code__
        if not trust.offers_frames(code) or not can_capture(code):
            return callee
        assert self.region.entry is not None
        return self.region.entry(callee, self.region.site(code, callee.__globals__))

    def plain(self, function: types.FunctionType, values: tuple) -> Any:
        """Run the rest of the frame as Python does."""
        if self.plain_code is None:
            if self.start is None:
                self.plain_code = self.code.replace()
            else:
                self.plain_code = resume_code(self.code, self.start)
            frame_hook.skip(self.plain_code)
        made = types.FunctionType(
            self.plain_code, self.space, self.code.co_name, None, function.__closure__
        )
        made.__qualname__ = self.code.co_qualname
        if self.start is not None:
            return self._hooked(made, values, {})
        args, kwargs = spread(self.code, values)
        return self._hooked(made, args, kwargs)

    def _hooked(self, made: types.FunctionType, args: tuple, kwargs: dict) -> Any:
        """Plain Python whose callees may still be captured."""
        if self.region.frames is None:
            return made(*args, **kwargs)
        with frame_hook.enabled(self.region.frames):
            return made(*args, **kwargs)

    # Capturing -------------------------------------------------------------------------------

    def missed(self, function: types.FunctionType, values: tuple) -> Any:
        """No program fits: capture another one, or run as Python does."""
        if self.skipped or anomaly.enabled or getattr(busy, "capturing", False):
            return self.plain(function, values)
        known = len(self.entries)
        with _lock:
            if len(self.entries) != known:  # another thread has captured meanwhile
                return self.call(function, *values)
            if len(self.entries) >= min(config.cache_size_limit, config.recompile_limit):
                self._limit(function, values)
                return self.plain(function, values)
            entry = self._captured(function, values)
        if entry is None:
            return self.plain(function, values)
        result = entry.program(function, *values)
        if result is MISS:
            self.entries.remove(entry)
            self._skip("the guards of a new program do not hold")
            return self.plain(function, values)
        return self.concluded(entry, function, values, result)

    def _captured(self, function: types.FunctionType, values: tuple) -> Entry | None:
        self._learn(function, values)
        options = self.region.options._replace(dynamic=frozenset(self.dynamic))
        frozen = Frozen(function, self.code, self.names, values, self.start)
        busy.capturing = True
        try:
            with frame_hook.enabled(None), logs.timed(f"capture of {self.code.co_qualname}"):
                captured = capture(frozen, options)
                entry = Entry(captured, self._bridge(captured))
        except SkipFrame as reason:
            self.failed += 1
            records.note_skip(self, str(reason))
            if self.failed > config.failure_limit or "raises" not in str(reason):
                self._skip(str(reason))
            return None
        except UnknownBytecode as reason:
            self._skip(str(reason))
            return None
        except GraphBreak as reason:
            raise records.Unsupported(self, reason) from None
        except Exception as error:
            if config.raise_internal_errors:
                raise
            records.note_skip(self, f"internal: {type(error).__name__}: {error}")
            self._skip(f"the capture failed: {type(error).__name__}: {error}")
            return None
        finally:
            busy.capturing = False
        self.entries.insert(0, entry)
        records.note_capture(self, captured)
        self._count_empty(captured)
        return entry

    def _bridge(self, captured: Captured) -> types.CodeType | None:
        if captured.broken is None:
            return None
        made = bridge_code(self.code, captured.broken.place, self._successor)
        frame_hook.skip(made)
        return made

    def _successor(self, place: Place) -> Callable:
        return Continuation(self.region.site(self.code, self.space, place))

    def _count_empty(self, captured: Captured) -> None:
        """A place from which nothing is ever recorded is not worth entering."""
        self.empty = 0 if captured.recorded else self.empty + 1
        if captured.broken is not None and self.empty > config.empty_limit:
            self._skip("nothing was recorded before the break")

    def _skip(self, reason: str) -> None:
        self.skipped = reason

    def _learn(self, function: types.FunctionType, values: tuple) -> None:
        """Numbers and sizes that made a program miss become symbolic in the next one."""
        if self.region.options.static or not self.entries:
            return
        arguments = dict(zip(self.names, values))
        telling = [g for g in self.entries[0].captured.guards if g.kind in TELLING or is_of_rate(g)]
        for guard in failing(telling, arguments, function):
            if guard.kind == "equals" or is_of_rate(guard):
                self.dynamic.add(repr(guard.source))
            else:
                self.dynamic |= changed_sizes(guard, arguments, function)

    def _failed_guards(
        self, function: types.FunctionType, values: tuple
    ) -> list[tuple[Guard, str]]:
        newest = self.entries[0].captured
        return failures(newest.guards, dict(zip(self.names, values)), function)

    def _limit(self, function: types.FunctionType, values: tuple) -> None:
        if self.limited:
            return
        self.limited = True
        records.warn_limit(self, self._failed_guards(function, values))

    def explain_recompile(
        self, function: types.FunctionType, values: tuple
    ) -> list[FailedGuard]:
        """What the newest program does not serve in this call."""
        if not self.entries:
            return []
        failed = self._failed_guards(function, values)
        return [FailedGuard(repr(g.source), g.wanted(), now) for g, now in failed]


def is_of_rate(guard: Guard) -> bool:
    """Whether the guard holds an array scalar to its value, which might as well be symbolic."""
    call = guard.expected.call if guard.kind == "test" else None
    return isinstance(call, Same) and issubclass(call.kind, (np.floating, np.integer))


def changed_sizes(guard: Guard, arguments: dict[str, Any], function: Any) -> set[str]:
    """Names of the dimensions whose size is another one now, if nothing else is."""
    assert guard.source is not None
    try:
        now = guard.source.value(arguments, function)
    except (AttributeError, LookupError, TypeError):
        return set()
    before = guard.expected[1]
    after = getattr(now, "_spec", None)
    if after is None or after.dtype is not before.dtype or after.ndim != before.ndim:
        return set()
    pairs = zip(before.shape, after.shape)
    return {f"{guard.source!r}#{k}" for k, (a, b) in enumerate(pairs) if a != b}


class Continuation:
    """What a bridge calls: (free cells, bound locals..., stack...) -> the frame's result."""

    __slots__ = ("site",)

    def __init__(self, site: Site):
        self.site = site

    def __call__(self, cells: tuple, *values: Any) -> Any:
        site = self.site
        made = types.FunctionType(site.code, site.space, site.code.co_name, None, cells or None)
        if site.region.frames is None:
            return site.call(made, *values)
        with frame_hook.enabled(None):
            return site.call(made, *values)


def spread(code: types.CodeType, values: tuple) -> tuple[tuple, dict]:
    """Arguments of a call from the values of the argument slots."""
    count, only = code.co_argcount, code.co_kwonlyargcount
    args, at = values[:count], count + only
    kwargs = dict(zip(code.co_varnames[count:at], values[count:at]))
    if code.co_flags & 0x04:
        args += values[at]
        at += 1
    if code.co_flags & 0x08:
        kwargs |= values[at]
    return args, kwargs


def can_capture(code: types.CodeType) -> bool:
    """Generators and coroutines run as they are."""
    return not code.co_flags & GENERATOR_LIKE and bool(code.co_flags & 1)

"""Tracebacks that show the user's lines, and ours only when they matter.

Hidden are the launcher above the script, our frames between two of the user's, and our frames
below the last one when the error was raised on purpose (a FlambeauError says what to do in its
text). Any other error that comes up inside flambeau keeps its innermost frames: they are the clue.
`FLAMBEAU_TRACEBACK=full` hides nothing.
"""

import os
import sysconfig
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from flambeau.core.errors import FlambeauError
from flambeau.core.nearest import MissingName

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")})
_LAUNCHERS = ("<frozen runpy>", "<frozen importlib")

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


def show_user_lines(hook: Hook) -> Hook:
    """An excepthook that hands `hook` the error with shortened tracebacks."""

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if os.environ.get("FLAMBEAU_TRACEBACK") != "full":
            for linked in _chain(error):
                linked.__traceback__ = shortened(linked, linked.__traceback__)
        hook(kind, error, error.__traceback__)

    return excepthook


def shortened(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames that say nothing to the user.

    Where none of the user's is among them, all stay, but for the script's own syntax error.
    """
    links = _below_launcher(list(_links(trace)))
    end = 1 + max((at for at, link in enumerate(links) if _is_users(link)), default=-1)
    if not end:
        return None if isinstance(error, SyntaxError) else trace
    explained = isinstance(error, FlambeauError | MissingName)
    shown = [at for at, link in enumerate(links) if not _is_ours(link)]
    if not explained:
        shown = [at for at in shown if at < end] + list(range(end, len(links)))
    kept = None
    for at in reversed(shown):
        link = links[at]
        kept = TracebackType(kept, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return kept


def _below_launcher(links: list[TracebackType]) -> list[TracebackType]:
    """Without the frames that end in our first ones: the console script, then `flambeau.cli`."""
    first = next((at for at, link in enumerate(links) if _is_ours(link)), 0)
    return links[first:]


def _links(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_ours(link: TracebackType) -> bool:
    return link.tb_frame.f_code.co_filename.startswith((_OURS, *_LAUNCHERS))


def _is_users(link: TracebackType) -> bool:
    """Whether the frame is neither ours nor an installed library's."""
    return not _is_ours(link) and not link.tb_frame.f_code.co_filename.startswith(_LIBRARIES)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything it came from or holds, each once."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        waiting += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]

"""What captures have done: kept for `explain`, logged on demand, and told in warnings."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from flambeau.core.errors import FlambeauError, complaint

LOGS = frozenset(filter(None, os.environ.get("FLAMBEAU_LOGS", "").split(",")))
collected: list[list[tuple[str, Any, Any]]] = []
"""Lists that `explain` has asked to be filled: (kind, site, captured or reason)."""


class CompileWarning(UserWarning):
    """Compiled code runs slower than it could."""


class Unsupported(FlambeauError, RuntimeError):
    """`fullgraph=True` and the function cannot be one graph."""

    def __init__(self, site: Any, reason: Any):
        super().__init__(
            complaint(
                "compile",
                "the whole function must be capturable because of fullgraph=True",
                {"reason": reason.reason, "at": reason.where},
                reason.hint,
            )
        )


def _log(kind: str, text: str) -> None:
    if kind in LOGS:
        print(f"[{kind}] {text}", file=sys.stderr)


def _note(kind: str, site: Any, what: Any) -> None:
    for records in collected:
        records.append((kind, site, what))


def note_capture(site: Any, captured: Any) -> None:
    """A program has been made."""
    _note("capture", site, captured)
    if not LOGS:
        return
    name = site.code.co_qualname
    _log("graph", f"{name}\n{captured.graph}")
    _log("guards", f"{name}\n" + "\n".join(map(repr, captured.guards)))
    _log("program", f"{name}\n{captured.text}")
    if captured.broken is not None:
        broken = captured.broken
        _log("breaks", f"{name} at {broken.where}: {broken.reason}. {broken.hint}")


def note_skip(site: Any, reason: str) -> None:
    """A frame runs as plain Python."""
    _note("skip", site, reason)
    _log("breaks", f"{site.code.co_qualname} runs as plain Python: {reason}")


def warn_limit(site: Any, failed: list) -> None:
    """Too many programs for one code object."""
    why = "; ".join(f"{guard!r}, now {now}" for guard, now in failed[:3])
    code = site.code
    warnings.warn(
        f"compile: {code.co_qualname} ({code.co_filename}:{code.co_firstlineno}) has been captured "
        f"{len(site.entries)} times and runs as plain Python from now on. What changes from call "
        f"to call: {why or 'unknown'}. Pass it as a tensor, or raise config.cache_size_limit.",
        CompileWarning,
        stacklevel=4,
    )

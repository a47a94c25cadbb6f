"""What captures have done: kept for `explain`, shown by `core.logs`, and told in warnings."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau.core import logs
from flambeau.core.errors import FlambeauError, complaint

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


def _note(kind: str, site: Any, what: Any) -> None:
    for records in collected:
        records.append((kind, site, what))


def note_capture(site: Any, captured: Any) -> None:
    """A program has been made."""
    _note("capture", site, captured)
    name = site.code.co_qualname
    logs.show("graph", name, captured.graph)
    logs.show("guards", name, lambda: "\n".join(map(repr, captured.guards)))
    logs.show("program", name, captured.text)
    if captured.broken is not None:
        broken = captured.broken
        logs.show("breaks", f"{name} at {broken.where}: {broken.reason}. {broken.hint}")


def note_skip(site: Any, reason: str) -> None:
    """A frame runs as plain Python."""
    _note("skip", site, reason)
    logs.show("breaks", f"{site.code.co_qualname} runs as plain Python: {reason}")


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

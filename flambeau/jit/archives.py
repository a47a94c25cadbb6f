"""`jit.save` and `jit.load`: archives of programs, which flambeau does not write yet."""

from __future__ import annotations

from typing import Any

from flambeau.core.errors import OpError, complaint

_HINT = "Save model.state_dict() with torch.save, and load it into a model built from its class."


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Refused: programs are not archived."""
    raise OpError(complaint("jit.save", "programs are not archived", {}, _HINT))


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> Any:
    """Refused: archives of TorchScript are not read."""
    raise OpError(complaint("jit.load", "archives of programs are not read", {}, _HINT))

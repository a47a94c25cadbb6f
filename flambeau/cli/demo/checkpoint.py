"""The demo's checkpoint: written whole or not at all; reading names whatever is wrong."""

import os
from pathlib import Path
from typing import Any

import flambeau as torch
from flambeau.core.errors import FlambeauError

_PARTS = {"settings", "model", "optimizer", "schedule", "generator", "step", "losses", "accuracies"}


class CheckpointUnusable(FlambeauError, RuntimeError):
    """There is no checkpoint to go on from."""


def save(state: dict[str, Any], file: Path) -> None:
    """Replace the checkpoint in one move, so that a crash while writing leaves the former one."""
    partial = file.with_suffix(f".{os.getpid()}")
    try:
        torch.save(state, partial)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def load(file: Path) -> dict[str, Any]:
    """The saved state; where it is no good, CheckpointUnusable, and the file is left alone."""
    if not file.exists():
        raise CheckpointUnusable(_complaint(file, "no such file"))
    try:
        state = torch.load(file, weights_only=True)
    except Exception as error:
        raise CheckpointUnusable(_complaint(file, f"an unreadable file ({error})")) from error
    if not isinstance(state, dict) or not state.keys() >= _PARTS:
        raise CheckpointUnusable(_complaint(file, "a file that the demo did not write"))
    return state


def _complaint(file: Path, got: str) -> str:
    return (
        f"flambeau demo: --resume needs the checkpoint {str(file)!r}; got {got}. "
        "Start anew without --resume, or name another folder with --out."
    )

"""How programs are made: waited for or not, with kernels timed against each other or not."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from flambeau.core.errors import ValueRangeError, complaint

TIERS = ("background", "sync")
MODES = (
    None,
    "default",
    "reduce-overhead",
    "max-autotune",
    "max-autotune-no-cudagraphs",
    "sync",
)


class Settings(NamedTuple):
    """wait  a call does not return before its program is made
    tune  candidates for a kernel are timed, and the fastest is kept
    """

    wait: bool = False
    tune: bool = False


def settings_of(mode: str | None, options: dict[str, Any] | None = None) -> Settings:
    """What the arguments of `compile` and the environment ask for; options come first."""
    if mode not in MODES:
        names = ", ".join(map(repr, MODES))
        raise ValueRangeError(complaint("compile", f"mode must be one of {names}", {"mode": mode}))
    tier = os.environ.get("FLAMBEAU_TIER") or TIERS[0]
    if mode == "sync":
        tier = "sync"
    given = options or {}
    tier = given.get("tier", tier)
    if tier not in TIERS:
        must = f"the tier must be one of {', '.join(TIERS)}"
        raise ValueRangeError(complaint("compile", must, {"tier": tier}))
    tune = bool(given.get("max_autotune", (mode or "").startswith("max-autotune")))
    return Settings(tier == "sync", tune)

"""The tables that every module keeps, and the clock of changes to them.

`change_clock[0]` counts the changes to all modules; each module's `_changed_at` is the time of its
own last one. Captured programs compare these instead of looking at every attribute again. Direct
writes to the tables pass by the clock.
"""

from __future__ import annotations

from typing import Any

change_clock = [0]

MODULE_TABLES = ("_parameters", "_buffers", "_modules")
HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Tables:
    """What the parts of Module share: the names of its state."""

    training: bool
    _version: int
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _is_full_backward_hook: bool | None
    _backward_pre_hooks: dict[int, Any]
    _backward_hooks: dict[int, Any]
    _forward_hooks: dict[int, Any]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: dict[int, Any]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _state_dict_hooks: dict[int, Any]
    _state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_post_hooks: dict[int, Any]

    def _touch(self) -> None:
        """Record that this module has changed."""
        change_clock[0] += 1
        self.__dict__["_changed_at"] = change_clock[0]

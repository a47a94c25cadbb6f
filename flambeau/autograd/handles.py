"""What registering a hook gives: the way to take it off again."""

from __future__ import annotations

import itertools
from typing import Any

_ids = itertools.count()


def next_id() -> int:
    """A key that no hook has had yet; hooks of one table run in the order of their keys."""
    return next(_ids)


class RemovableHandle:
    """`remove()` takes the hook away; also a context manager. `extra_dict` as in PyTorch."""

    def __init__(self, hooks_dict: dict, *, extra_dict: Any = None):
        self.hooks, self.id = hooks_dict, next_id()
        self.extra = [] if extra_dict is None else (
            [extra_dict] if isinstance(extra_dict, dict) else list(extra_dict))

    def remove(self) -> None:
        self.hooks.pop(self.id, None)
        for d in self.extra:
            d.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc) -> None:
        self.remove()

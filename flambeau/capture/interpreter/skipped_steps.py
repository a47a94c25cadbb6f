"""A scaler's optimizer step, which does not happen where a gradient has overflowed.

A graph has no branches: the step is taken, and what it has written is put back where it should not
have happened. That holds for tensors only, so a step that does more (the first one, which makes the
optimizer's state) ends the graph.
"""

from __future__ import annotations

import collections
from typing import Any

from flambeau.amp.grad_scaler import step_unless
from flambeau.autograd.modes import no_grad
from flambeau.capture.breaks import GraphBreak
from flambeau.capture.interpreter.run import CODE_HANDLERS
from flambeau.capture.traced import TracedStorage
from flambeau.tensor import Tensor, stack, where

CONTAINERS = (list, dict, set, collections.deque)


def step_or_put_back(run: Any, found: Any, optimizer: Any, args: tuple, kwargs: dict) -> None:
    """The interpreter's version of `step_unless`."""
    recorder, session = run.session.tensors.recorder, run.session
    start, before = len(recorder.equations), PythonState(session)
    present = {id(t._storage.place) for t in recorder.kept if _is_traced(t)}
    result = run.call(run.attributes.get(optimizer, "step"), args, kwargs)
    session.tensors.foresight.follow(recorder.equations)
    if result is not None or before.has_changed():
        raise GraphBreak("a step that may be skipped does more than write tensors")
    with no_grad():
        present |= {id(known.place[0].place) for known in session.tensors.inputs.values()}
        skipped = stack([f != 0 for f in run.listed(found)]).any()
        for t in _written(recorder, start, present):
            _put_back(recorder, start, t, skipped)
            session.tensors.foresight.at += 1  # it has seen what the copy of `t` now precedes


def _is_traced(t: Any) -> bool:
    return isinstance(t, Tensor) and isinstance(t._storage, TracedStorage)


def _written(recorder: Any, start: int, present: set[int]) -> list[Tensor]:
    """The tensors that the step has written, one for each place in memory that was there before."""
    targets = {e.target for e in recorder.equations[start:] if e.target is not None}
    found: dict[tuple, Tensor] = {}
    for t in recorder.kept:
        if _is_traced(t) and recorder.values.get(id(t)) in targets:
            if id(t._storage.place) in present:
                found.setdefault((id(t._storage.place), t._offset, id(t._spec)), t)
    return list(found.values())


def _put_back(recorder: Any, start: int, t: Tensor, skipped: Tensor) -> None:
    """t <- its value before the step, where `skipped`."""
    later = recorder.equations[start:]
    del recorder.equations[start:]
    old = t.clone()
    recorder.equations += later
    t.copy_(where(skipped, old, t))


class PythonState:
    """What the frame has changed besides tensors, at one moment."""

    def __init__(self, session: Any):
        self.session = session
        self.contents = {id(s): _identities(s) for s in self._containers()}
        self.attributes = dict(session.attributes)
        self.variables = dict(session.variables)

    def _containers(self) -> list[Any]:
        held = self.session.shadows.values()
        return [s for s in held if isinstance(s, CONTAINERS) and id(s) in self.session.snapshots]

    def _is_written(self, key: tuple[int, str]) -> bool:
        """Whether an attribute has another value now than at that moment."""
        value, session = self.session.attributes[key], self.session
        if key in self.attributes:
            return self.attributes[key] is not value
        _, owner, name = session.effects["attribute", *key]
        entries, source = getattr(owner, "__dict__", {}), session.source(owner)
        if source is None or name not in entries or isinstance(owner, type):
            return True
        return session.wrap(entries[name], source.entry(name)) is not value

    def has_changed(self) -> bool:
        """Since that moment; what has been read since then, since it was read."""
        variables = self.session.variables
        if len(variables) > len(self.variables):
            return True
        if any(variables[key] is not value for key, value in self.variables.items()):
            return True
        if any(map(self._is_written, self.session.attributes)):
            return True
        for shadow in self._containers():
            first = self.session.snapshots[id(shadow)]
            if _identities(shadow) != self.contents.get(id(shadow), _identities(first)):
                return True
        return False


def _identities(container: Any) -> list[int]:
    if isinstance(container, dict):
        return [id(part) for pair in container.items() for part in pair]
    return [id(part) for part in container]


CODE_HANDLERS[step_unless.__code__] = step_or_put_back

"""Replaying what the frame changed, in order, after the graph has run."""

from __future__ import annotations

import collections
import types
from typing import Any

from flambeau.capture import modes
from flambeau.capture.rebuild import Builder
from flambeau.capture.values import DELETED, ListShadow, static


def write_effects(builder: Builder) -> None:
    """Append the statements that make the changes real."""
    changed = changed_containers(builder)
    for kind, subject, name in list(builder.session.effects.values()):
        WRITERS[kind](builder, subject, name)
        builder.finish()
    for shadow in changed:
        _container(builder, shadow)
    builder.finish()


def changed_containers(builder: Builder) -> list[Any]:
    """Shadows whose contents differ from what was found."""
    session, found = builder.session, []
    for identity, original in list(session.originals.items()):
        shadow = session.shadows[id(original)]
        if id(shadow) != identity:
            continue
        if isinstance(shadow, ListShadow) and not shadow.filled:
            if len(shadow):
                found.append(shadow)
        elif identity in session.snapshots and _differs(shadow, session.snapshots[identity]):
            found.append(shadow)
    return found


def _differs(now: Any, before: Any) -> bool:
    if len(now) != len(before):
        return True
    if isinstance(now, dict):
        return any(a is not b or now[a] is not before[b] for a, b in zip(now, before))
    if isinstance(now, set):
        return now != before
    return any(a is not b for a, b in zip(now, before))


def _container(builder: Builder, shadow: Any) -> None:
    target = builder.reads.path(builder.session.sources[id(shadow)])
    if isinstance(shadow, ListShadow):
        items = builder.joined(shadow)
        builder.finish()
        place = f"{target}[:]" if shadow.filled else f"{target}[len({target}):]"
        builder.body.line(f"{place} = [{items}]")
        return
    if isinstance(shadow, dict):
        text, verb = builder.entries(shadow), "update"
    else:
        text = f"[{builder.joined(shadow)}]"
        verb = "extend" if isinstance(shadow, collections.deque) else "update"
    builder.finish()
    held = builder.body.fresh(text, "n")
    builder.body.line(f"{target}.clear(); {target}.{verb}({held})")


def _attribute(builder: Builder, owner: Any, name: str) -> None:
    session = builder.session
    value = session.attributes[id(owner), name]
    target = builder.expression(owner)
    if value is DELETED:
        builder.body.line(f"{builder.constant(object.__delattr__)}({target}, {name!r})")
        return
    text = builder.expression(value)
    builder.finish()
    if isinstance(owner, type):
        builder.body.line(f"{builder.constant(type.__setattr__)}({target}, {name!r}, {text})")
    elif isinstance(static(type(owner), name), types.MemberDescriptorType):
        builder.body.line(f"{builder.constant(object.__setattr__)}({target}, {name!r}, {text})")
    else:
        builder.body.line(f"{target}.__dict__[{name!r}] = {text}")


def _cell(builder: Builder, cell: types.CellType, _: Any) -> None:
    value = builder.session.variables[id(cell), None]
    target = builder.expression(cell)
    if value is DELETED:
        builder.body.line(f"del {target}.cell_contents")
        return
    text = builder.expression(value)
    builder.finish()
    builder.body.line(f"{target}.cell_contents = {text}")


def _global(builder: Builder, names: dict, name: str) -> None:
    text = builder.expression(builder.session.variables[id(names), name])
    builder.finish()
    builder.body.line(f"{builder.constant(names)}[{name!r}] = {text}")


def _call(builder: Builder, call: tuple, _: Any) -> None:
    function, args, kwargs = call
    parts = [builder.expression(a) for a in args]
    parts += [f"{k}={builder.expression(v)}" for k, v in kwargs.items()]
    builder.finish()
    builder.body.line(f"{builder.expression(function)}({', '.join(parts)})")


def _state_value(builder: Builder, change: tuple, _: Any) -> None:
    owner, name, value = change
    if isinstance(value, dict):
        pairs = [f"{k!r}: {builder.expression(v)}" for k, v in value.items()]
        text = "{" + ", ".join(pairs) + "}"
    else:
        text = builder.expression(value)
    builder.finish()
    builder.body.line(f"{builder.constant(modes.put)}({builder.constant(owner)}, {name!r}, {text})")


WRITERS = {
    "attribute": _attribute,
    "cell": _cell,
    "global": _global,
    "call": _call,
    "state": _state_value,
}

"""The one rewrite driver: named rules, bottom-up, iterative, with a limit that names the culprits.

A rule is a function from a node to its replacement, or None where it does not apply. Its docstring
is the equation. The driver rewrites operands before users and repeats on the result until no rule
applies, so a set of rules must not undo one another: the limit catches those that do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from flambeau.ir.node import Node


class RewriteLimit(RuntimeError):
    """The rules did not come to rest: a defect of the rules named in the message."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`apply(node)` is tried on nodes whose kind is in `kinds` (empty: on all)."""

    name: str
    kinds: tuple[str, ...]
    apply: Callable[[Node], Node | None]
    equation: str


def rule(*kinds: str) -> Callable[[Callable], Rule]:
    """Decorator: the function's name and docstring become the rule's name and equation."""

    def wrap(function: Callable) -> Rule:
        return Rule(function.__name__, kinds, function, (function.__doc__ or "").strip())

    return wrap


def rewrite(root: Node, rules: Sequence[Rule], limit: int = 100_000) -> Node:
    """`root` with `rules` applied everywhere until none applies."""
    return rewrite_all([root], rules, limit)[0]


def rewrite_all(roots: Iterable[Node], rules: Sequence[Rule], limit: int = 100_000) -> list[Node]:
    """Rewrite several roots with one memo, so that shared operands stay shared."""
    return Rewriter(rules, limit).all(roots)


class Rewriter:
    """One run of a rule set; keeps what it has done, so later roots reuse earlier work."""

    def __init__(self, rules: Sequence[Rule], limit: int = 100_000):
        self.by_kind: dict[str, list[Rule]] = {}
        self.general = [r for r in rules if not r.kinds]
        for r in rules:
            for kind in r.kinds:
                self.by_kind.setdefault(kind, []).append(r)
        self.limit = limit
        self.fired: Counter[str] = Counter()
        self.done: dict[Node, Node] = {}

    def all(self, roots: Iterable[Node]) -> list[Node]:
        return [self.one(root) for root in roots]

    def one(self, root: Node) -> Node:
        """Work stack of (node, where its final form will be recorded)."""
        done = self.done
        stack: list[tuple[Node, Node | None]] = [(root, None)]
        while stack:
            node, pending = stack.pop()
            if pending is not None:  # `node` was replaced by `pending`, which is finished now
                done[node] = done[pending]
                continue
            if node in done:
                continue
            waiting = [arg for arg in node.args if arg not in done]
            if waiting:
                stack.append((node, None))
                stack.extend((arg, None) for arg in waiting)
                continue
            rebuilt = node.with_args(tuple([done[arg] for arg in node.args]))
            replaced = self.step(rebuilt)
            if replaced is None:
                done[node] = done[rebuilt] = rebuilt
            else:
                stack.append((node, replaced))
                stack.append((replaced, None))
        return done[root]

    def step(self, node: Node) -> Node | None:
        """The first rule's replacement of `node`, or None when all decline."""
        for r in (*self.by_kind.get(node.kind, ()), *self.general):
            result = r.apply(node)
            if result is not None and result is not node:
                self.count(r)
                return result
        return None

    def count(self, fired: Rule) -> None:
        self.fired[fired.name] += 1
        if self.fired.total() > self.limit:
            most = ", ".join(f"{name} x{n}" for name, n in self.fired.most_common(4))
            raise RewriteLimit(
                f"rewrite: rules must come to rest within {self.limit} steps; got {most}. "
                "Two of these rules undo each other, or one grows its own input."
            )

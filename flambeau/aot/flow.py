"""The cheapest set of nodes that separates a source from a sink.

Dinic's algorithm: as long as the sink can be reached, shortest augmenting paths are saturated
level by level; what the sink can then not be reached from is cut off. Nothing recurses.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable


class Network:
    """Directed edges with capacities between hashable nodes."""

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}
        self.leaving: list[list[int]] = []
        self.ends: list[int] = []
        self.left: list[float] = []

    def node(self, name: Hashable) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.leaving)
            self.leaving.append([])
        return self.numbers[name]

    def edge(self, start: Hashable, end: Hashable, capacity: float = math.inf) -> None:
        """An edge is followed by its reverse, so that edge `e` has the reverse `e ^ 1`."""
        for a, b, room in ((start, end, capacity), (end, start, 0.0)):
            self.leaving[self.node(a)].append(len(self.ends))
            self.ends.append(self.node(b))
            self.left.append(room)

    def saturate(self, source: Hashable, sink: Hashable) -> float:
        """The largest flow; `left` then holds what each edge could still carry."""
        total, a, b = 0.0, self.node(source), self.node(sink)
        while True:
            level = self._levels(a)
            if level[b] < 0:
                return total
            total += self._blocking_flow(a, b, level)

    def _levels(self, source: int) -> list[int]:
        level = [-1] * len(self.leaving)
        level[source] = 0
        queue = deque([source])
        while queue:
            at = queue.popleft()
            for e in self.leaving[at]:
                if self.left[e] > 0 and level[self.ends[e]] < 0:
                    level[self.ends[e]] = level[at] + 1
                    queue.append(self.ends[e])
        return level

    def _blocking_flow(self, source: int, sink: int, level: list[int]) -> float:
        total, at = 0.0, source
        tried = [0] * len(self.leaving)
        path: list[int] = []
        while True:
            if at == sink:
                total += self._push(path)
                path, at = [], source
                continue
            edge = self._onward(at, tried, level)
            if edge is not None:
                path.append(edge)
                at = self.ends[edge]
            elif not path:
                return total
            else:
                at = self.ends[path.pop() ^ 1]
                tried[at] += 1

    def _onward(self, at: int, tried: list[int], level: list[int]) -> int | None:
        edges = self.leaving[at]
        while tried[at] < len(edges):
            e = edges[tried[at]]
            if self.left[e] > 0 and level[self.ends[e]] == level[at] + 1:
                return e
            tried[at] += 1
        return None

    def _push(self, path: list[int]) -> float:
        amount = min(self.left[e] for e in path)
        assert amount < math.inf, "every path must have an edge that can be cut"
        for e in path:
            self.left[e] -= amount
            self.left[e ^ 1] += amount
        return amount

    def beyond(self, sink: Hashable) -> set[Hashable]:
        """The nodes from which more could flow to the sink: its side of the cut nearest to it."""
        found = {self.node(sink)}
        stack = [self.node(sink)]
        while stack:
            for e in self.leaving[stack.pop()]:
                if self.left[e ^ 1] > 0 and self.ends[e] not in found:
                    found.add(self.ends[e])
                    stack.append(self.ends[e])
        return {name for name, number in self.numbers.items() if number in found}


def cheapest_cut(network: Network, source: Hashable, sink: Hashable) -> set[Hashable]:
    """The nodes on the sink's side of the cheapest cut that is nearest to the sink."""
    network.saturate(source, sink)
    return network.beyond(sink)

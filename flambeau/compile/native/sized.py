"""Graphs that serve many sizes: a program for each size that comes back, of one captured graph.

Kernels are shared by the cache as far as sizes agree. Sizes that come once run on eager operations,
and so does a graph whose sizes depend on what tensors hold.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from flambeau.capture.outputs import alias as detached
from flambeau.capture.outputs import bump
from flambeau.core import logs
from flambeau.core.errors import FlambeauError
from flambeau.graph import Graph
from flambeau.graph.generated import GeneratedPlan
from flambeau.graph.sizes import Unsized, closed, deciding
from flambeau.tensor.tensor import Tensor

MOST_SIZES = 16
Runner = Callable[..., list[Any]]


class SizedPlan:
    """`plan(graph)` gives what runs a graph of one size."""

    def __init__(self, graph: Graph, plan: Callable[[Graph], Runner]):
        self.graph, self.plan = graph, plan
        self.deciding = deciding(graph)
        self.plans: OrderedDict[tuple, Runner] = OrderedDict()  # used longest ago first

    def __call__(self, *inputs: Any) -> list[Any]:
        key = tuple([_size(inputs[k]) for k in self.deciding])
        plan = self.plans.get(key)
        if plan is None:
            plan = self.made(key, inputs)
        elif len(self.plans) > 1:
            self.use(key)
        return plan(*inputs)

    def use(self, key: tuple) -> None:
        try:
            self.plans.move_to_end(key)
        except KeyError:  # another thread has just let it go
            return

    def made(self, key: tuple, inputs: tuple) -> Runner:
        try:
            given = [x._spec if isinstance(x, Tensor) else x for x in inputs]
            plan = self.plan(closed(self.graph, given))
        except (Unsized, FlambeauError) as reason:
            logs.show("breaks", f"a graph of these sizes runs on eager operations: {reason}")
            plan = GeneratedPlan(self.graph, detached, bump)
        plan = self.plans.setdefault(key, plan)
        while len(self.plans) > MOST_SIZES:
            self.plans.popitem(last=False)
        return plan


def _size(x: Any) -> Any:
    """What of an input decides sizes; 1, 1.0 and True are three."""
    return x._spec if isinstance(x, Tensor) else (type(x), x)

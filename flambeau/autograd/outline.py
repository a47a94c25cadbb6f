"""The outline of a backward pass: all that decides which operations it will run, as one key.

Two passes with the same key run the same operations on the same places of the graph; only the
memory differs. What an outline does not describe (hooks, classes that override, packed values, a
value written since it was saved) has none, and takes the engine's way.
"""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.autograd.hooks import has_leaf_hooks
from flambeau.autograd.node import Constant, Node, PrimitiveNode
from flambeau.autograd.saved import SavedInput, SavedOutput
from flambeau.core import dtype as dtypes
from flambeau.tensor.tensor import Tensor


class Outline:
    """
    key     what decides which operations run
    nodes   in the order in which they were found
    leaves  where gradients are accumulated
    inputs  tensors that the pass starts from: cotangents, saved values, gradients so far
    """

    __slots__ = ("inputs", "key", "leaves", "nodes")

    def __init__(self, key: tuple, nodes: list[Node], leaves: list[Tensor], inputs: list[Tensor]):
        self.key, self.nodes, self.leaves, self.inputs = key, nodes, leaves, inputs


def is_plain(t: Tensor) -> bool:
    """A tensor with memory, whose class leaves operations as they are."""
    return t._array is not None and (
        t.__class__ is Tensor or getattr(t.__class__, "_plain_results", False)
    )


def outline(edges: Sequence, cts: Sequence[Tensor], wanted: Sequence | None) -> Outline | None:
    """The outline of a pass from `edges` that keeps no graph of its own, or None."""
    nodes: list[Node] = []
    index: dict[Node, int] = {}
    leaves: dict[Tensor, int] = {}
    inputs: list[Tensor] = []
    key: list = [dtypes.default_dtype(), len(edges)]
    for (node, number), ct in zip(edges, cts):
        if number < 0 or not is_plain(ct):
            return None
        at = index.get(node)
        if at is None:
            at = index[node] = len(nodes)
            nodes.append(node)
        key += (at, number, ct._spec)
        inputs.append(ct)
    first = nodes[0].sequence
    for node in nodes:  # grows as it is walked
        if not described(node, first, key, inputs):
            return None
        for edge in node.edges:
            if edge is None:
                key.append(None)
                continue
            target, number = edge
            if number < 0:
                at = leaves.get(target)
                if at is None:
                    at = leaves[target] = len(leaves)
                key.append(~at)
                continue
            at = index.get(target)
            if at is None:
                at = index[target] = len(nodes)
                nodes.append(target)
            key += (at, number)
    for leaf in leaves:
        if not leaf_described(leaf, wanted is None, key, inputs):
            return None
    if wanted is not None:
        for edge in wanted:
            key += (None, None) if edge is None else (
                (leaves if edge[1] < 0 else index).get(edge[0]), edge[1])
    shared: dict[int, int] = {}  # which inputs are the same memory is part of the key
    key += [shared.setdefault(id(t._array), len(shared)) for t in inputs]
    return Outline(tuple(key), nodes, list(leaves), inputs)


def described(node: Node, first: int, key: list, inputs: list[Tensor]) -> bool:
    """Append what the node's gradient depends on; False where that cannot be said."""
    if node.hooks is not None or node.tensor_hooks is not None:
        return False
    if node.__class__ is not PrimitiveNode:
        if node.__class__ is not Constant:
            return False
        key += (Constant, first - node.sequence, *node.in_specs, *node.out_specs)
        return True
    if node.saved is None:
        return False
    key += (node.rule, first - node.sequence, *node.in_specs, *node.out_specs)
    if node.params:
        key += node.params.values()
    for saved in node.saved:
        kind = saved.__class__
        if kind is SavedInput:
            t = saved.tensor
            storage = t._storage
            if (
                t._array is not saved.array
                or not is_plain(t)
                or saved.version != (0 if storage is None else storage.version)
            ):
                return False
            key.append(t._spec)
            inputs.append(t)
        elif kind is SavedOutput:
            t = saved.plain
            if t._array is None or saved.version != t._storage.version:
                return False
            inputs.append(t)
        elif kind in (int, float, bool, complex, type(None)):
            key += (kind, saved or repr(saved))  # -0.0 is not 0.0
        else:
            return False
    return True


def leaf_described(leaf: Tensor, accumulates: bool, key: list, inputs: list[Tensor]) -> bool:
    if leaf._extra is not None and has_leaf_hooks(leaf):
        return False
    key.append(leaf._spec)
    if not accumulates:
        return True
    before = leaf._grad
    key.append(None if before is None else before._spec)
    if before is not None:
        if not is_plain(before) or before._requires_grad or not before._spec.is_contiguous:
            return False
        if not before._array.flags.writeable:
            return False
        inputs.append(before)
    return True

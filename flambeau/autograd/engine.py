"""The backward pass: an iterative walk of the recorded graph, latest operation first.

A node runs when every recorded use of its outputs has delivered its cotangent. Cotangents of one
output are summed; the second sum of an output writes in place, because the first made a fresh
tensor. Cotangents of slices of an output wait until all have come (`pieces.py`). Nothing recurses,
so graphs may be as deep as memory allows.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Sequence
from typing import Any

from flambeau.autograd import anomaly
from flambeau.autograd.hooks import (
    accumulator_with_hooks,
    has_leaf_hooks,
    post_accumulate,
    run_leaf_hooks,
    run_node_hooks,
    run_tensor_hooks,
)
from flambeau.autograd.node import Node, PrimitiveNode, gradient_edge
from flambeau.autograd.outline import Outline, outline
from flambeau.autograd.pieces import Piece, Pieces, joined, piece_of
from flambeau.autograd.replay import (
    LARGE,
    NEVER,
    SEEN,
    Recorder,
    Replay,
    held_bytes,
    may_replay,
    replays,
)
from flambeau.core.context import executing, state
from flambeau.core.dtype import COMPLEX
from flambeau.core.errors import AutogradError, complaint
from flambeau.core.spec import Spec
from flambeau.ops import pointwise
from flambeau.ops.casts import convert, copy
from flambeau.ops.reductions import sum as sum_primitive
from flambeau.tensor.tensor import Tensor, alias


class Run:
    """One backward pass.

    buffers  node -> cotangents of its outputs so far
    owned    (node, output) whose buffer this run made and may write to
    cut      nodes one of whose cotangents is in pieces
    waiting  leaf with hooks -> uses still to come and the sum so far: its hooks see the total once
    wanted   what `autograd.grad` asked for: edge -> positions; None when accumulating into leaves
    ran      nodes whose rules have run, where a recorder wants to know
    """

    def __init__(self, wanted: dict | None, keep_graph: bool, create_graph: bool):
        self.buffers: dict[Node, list] = {}
        self.owned: set[tuple[int, int]] = set()
        self.cut: set[Node] = set()
        self.pending: dict[Node, int] = {}
        self.waiting: dict[Tensor, list] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.wanted = wanted
        self.found: dict[tuple[int, int], Tensor] = {}
        self.relevant: set[Node] | None = None
        self.keep_graph, self.create_graph = keep_graph, create_graph
        self.ran: list[Node] | None = None

    def start(self, edges: Sequence, cts: Sequence[Tensor]) -> None:
        roots = [e[0] for e in edges if e is not None and e[1] >= 0]
        self.count_uses(roots)
        if self.wanted is not None:
            self.relevant = relevant_nodes(roots, self.wanted)
        for node, number in edges:
            if number < 0:
                self.count_leaf(node)
        for edge, ct in zip(edges, cts):
            self.deliver(edge, ct)
            if edge[1] < 0 and self.waiting:
                self.leaf_use_done(edge[0])
        for node in dict.fromkeys(roots):
            if self.pending[node] == 0:
                self.push(node)

    def count_uses(self, roots: list[Node]) -> None:
        """How many edges lead to each node that the roots reach."""
        pending = self.pending
        for root in roots:
            pending.setdefault(root, 0)
        stack = list(dict.fromkeys(roots))
        seen = set(stack)
        while stack:
            for edge in stack.pop().edges:
                if edge is None:
                    continue
                node = edge[0]
                if edge[1] < 0:
                    self.count_leaf(node)
                    continue
                pending[node] = pending.get(node, 0) + 1
                if node not in seen:
                    seen.add(node)
                    stack.append(node)

    def count_leaf(self, leaf: Tensor) -> None:
        if leaf._extra is not None and has_leaf_hooks(leaf):
            self.waiting.setdefault(leaf, [0, None])[0] += 1

    def push(self, node: Node) -> None:
        heapq.heappush(self.ready, (-node.sequence, id(node), node))

    def go(self) -> None:
        while self.ready:
            node = heapq.heappop(self.ready)[2]
            cts = self.buffers.pop(node, None)
            if node in self.cut:
                cts = [joined(ct) if type(ct) is Pieces else ct for ct in cts]
            if self.relevant is not None and node not in self.relevant:
                cts = None
            grads = self.step(node, cts) if cts is not None else ()
            for i, edge in enumerate(node.edges):
                if edge is None:
                    continue
                if i < len(grads) and grads[i] is not None:
                    self.deliver(edge, grads[i])
                if edge[1] >= 0:
                    self.pending[edge[0]] -= 1
                    if self.pending[edge[0]] == 0:
                        self.push(edge[0])
                elif self.waiting:
                    self.leaf_use_done(edge[0])
            grads = None

    def step(self, node: Node, cts: list) -> list:
        """Cotangents of the node's operands, in the operands' shapes and dtypes."""
        if node.tensor_hooks is not None:
            cts = run_tensor_hooks(node, cts)
        if self.wanted is not None:
            for number, ct in enumerate(cts):
                if (id(node), number) in self.wanted and ct is not None:
                    self.found[id(node), number] = ct
            if self.relevant is not None and not self.continues(node):
                return []
        if node.hooks is not None:
            cts = run_node_hooks(node, "pre", cts)
        if type(node) is PrimitiveNode and node.rule.cuts and self.may_wait(node):
            piece = piece_of(node, cts[0])
            if piece is not None:
                return [piece]
        grads = node.gradients(cts)
        specs = getattr(node, "in_specs", None)
        if specs is not None:
            grads = [None if g is None or e is None else fitted(g, s)
                     for g, s, e in zip(grads, specs, node.edges)]
        if node.hooks is not None:
            grads = run_node_hooks(node, "post", list(grads), cts)
        if anomaly.enabled:
            anomaly.check_backward(node, grads)
        if self.ran is not None:
            self.ran.append(node)
        if not self.keep_graph:
            node.release()
        return grads

    def may_wait(self, node: PrimitiveNode) -> bool:
        """May the gradient of a slice be put together later? Nobody looks at it alone."""
        edge = node.edges[0]
        return edge is not None and edge[1] >= 0 and node.hooks is None and not anomaly.enabled

    def continues(self, node: Node) -> bool:
        """Does anything that was asked for lie beyond this node?"""
        return any(e is not None and ((e[1] >= 0 and e[0] in self.relevant)
                                      or (id(e[0]), e[1]) in self.wanted) for e in node.edges)

    def deliver(self, edge, ct: Tensor | Piece) -> None:
        node, number = edge
        if number < 0:
            self.deliver_leaf(node, ct)
            return
        if self.relevant is not None and node not in self.relevant:
            return
        buffer = self.buffers.get(node)
        if buffer is None:
            buffer = self.buffers[node] = [None] * len(node.out_specs)
        before = buffer[number]
        if type(ct) is Piece:
            if before is None or type(before) is Pieces:
                buffer[number] = Pieces([*(before or ()), ct])
                self.cut.add(node)
                return
            ct = ct.among_zeros()
        if before is None:
            buffer[number] = ct
            return
        if type(before) is Pieces:
            before = joined(before)
        key = (id(node), number)
        if key in self.owned and not self.create_graph:
            buffer[number] = pointwise.add.inplace(before, before, ct)
        else:
            buffer[number] = pointwise.add(before, ct)
            self.owned.add(key)

    def deliver_leaf(self, leaf: Tensor, ct: Tensor) -> None:
        key = (id(leaf), -1)
        if self.wanted is not None and key not in self.wanted:
            return
        if leaf in self.waiting:
            entry = self.waiting[leaf]
            entry[1] = ct if entry[1] is None else pointwise.add(entry[1], ct)
        elif self.wanted is not None:
            before = self.found.get(key)
            self.found[key] = ct if before is None else pointwise.add(before, ct)
        else:
            accumulate(leaf, ct, self.create_graph)

    def leaf_use_done(self, leaf: Tensor) -> None:
        """After the last use of a leaf with hooks: run them on the total."""
        entry = self.waiting.get(leaf)
        if entry is None:
            return
        entry[0] -= 1
        if entry[0] or entry[1] is None:
            return
        ct = run_leaf_hooks(leaf, entry[1])
        if self.wanted is not None:
            self.found[id(leaf), -1] = ct
            return
        node = accumulator_with_hooks(leaf)
        if node is not None:
            ct = run_node_hooks(node, "pre", [ct])[0]
        # hooks may have kept what they saw: the gradient takes over no memory here
        accumulate(leaf, ct if self.create_graph else alias(ct), self.create_graph)
        post_accumulate(leaf)
        if node is not None:
            run_node_hooks(node, "post", [], [ct])


def relevant_nodes(roots: list[Node], wanted: dict) -> set[Node]:
    """Nodes on a path from a root to something wanted."""
    order: list[Node] = []
    seen: set[Node] = set()
    for root in roots:  # one after the other: a root may lie beyond another
        if root not in seen:
            seen.add(root)
            after_operands(root, seen, order)
    relevant: set[Node] = set()
    for node in order:  # operands before users
        if any((id(node), n) in wanted for n in range(len(node.out_specs))) or any(
                e is not None and ((e[1] >= 0 and e[0] in relevant) or (id(e[0]), e[1]) in wanted)
                for e in node.edges):
            relevant.add(node)
    return relevant


def after_operands(root: Node, seen: set[Node], order: list[Node]) -> None:
    """Append the unseen nodes that `root` reaches, operands before users."""
    stack = [(root, iter(root.edges))]
    while stack:
        node, edges = stack[-1]
        for edge in edges:
            if edge is not None and edge[1] >= 0 and edge[0] not in seen:
                seen.add(edge[0])
                stack.append((edge[0], iter(edge[0].edges)))
                break
        else:
            order.append(node)
            stack.pop()


def fitted(ct: Tensor, s: Spec) -> Tensor:
    """A cotangent reduced to an operand's shape and dtype: broadcasting and casts undone."""
    have = ct._spec
    if have.shape != s.shape:
        ct = summed_to(ct, s.shape)
    if have.dtype is not s.dtype:
        if have.dtype.category == COMPLEX and s.dtype.category != COMPLEX:
            ct = ct.real
        if ct._spec.dtype is not s.dtype:
            ct = convert(ct, dtype=s.dtype)
    return ct


def summed_to(ct: Tensor, shape: tuple) -> Tensor:
    lead = ct._spec.ndim - len(shape)
    dims = tuple(d for d, n in enumerate(ct._spec.shape)
                 if d < lead or (shape[d - lead] == 1 and n != 1))
    fits = lead >= 0 and all(n in (1, ct._spec.shape[d + lead]) for d, n in enumerate(shape))
    if not fits:
        raise AutogradError(complaint(
            "backward", "a gradient must have the shape of what it belongs to, or broadcast it",
            dict(got=list(ct._spec.shape), expected=list(shape))))
    if dims:
        ct = sum_primitive(ct, dim=dims, keepdim=True, dtype=ct._spec.dtype)
    return ct.reshape(tuple(shape)) if lead else ct


def accumulate(leaf: Tensor, ct: Tensor, create_graph: bool) -> None:
    """leaf.grad += ct. A cotangent that nobody else holds becomes the gradient itself."""
    before = leaf._grad
    if before is None:
        leaf._grad = first_gradient(leaf, ct, create_graph)
    elif create_graph:
        leaf._grad = pointwise.add(before, ct)
    else:
        pointwise.add.inplace(before, before, ct)


# References to a cotangent that only the engine's own frames hold: measured once at import.
def _sole_references() -> int:
    def deliver(ct):
        return deliver_leaf(ct)

    def deliver_leaf(ct):
        return accumulate_probe(ct)

    def accumulate_probe(ct):
        return first_probe(ct)

    def first_probe(ct):
        return sys.getrefcount(ct)

    grads = [object()]
    return deliver(grads[0])


SOLE = _sole_references()


def first_gradient(leaf: Tensor, ct: Tensor, create_graph: bool) -> Tensor:
    if create_graph:
        return ct
    held = getattr(state.executor, "holds", 0)  # by the recorder of a pass
    alone = sys.getrefcount(ct) <= SOLE + held and ct._storage is None and type(ct) is Tensor
    if alone and ct._spec.strides == leaf._spec.strides:
        ct._node, ct._requires_grad = None, False
        return ct
    layout = leaf._spec.preserved().strides
    return copy(alias(ct), strides=layout)


def run_backward(tensors: Sequence[Tensor], cts: Sequence[Tensor], keep_graph: bool,
                 create_graph: bool, wanted: Sequence[Any] | None = None) -> Run:
    """Propagate `cts` from `tensors`; `wanted` are edges whose cotangents to return instead."""
    edges = []
    for t in tensors:
        edge = gradient_edge(t)
        if edge is None:
            raise AutogradError(complaint(
                "backward",
                "element 0 of tensors does not require grad and does not have a grad_fn",
                dict(shape=list(t.shape)), "Set requires_grad=True on an input, and make sure that "
                "no_grad() or detach() does not cut the graph."))
        edges.append(edge)
    targets = None if wanted is None else {(id(e[0]), e[1]): None for e in wanted if e is not None}
    run = Run(targets, keep_graph, create_graph)
    if create_graph or anomaly.enabled or not may_replay():
        walk(run, edges, cts)
        return run
    seen = outline(edges, cts, wanted)
    known = NEVER if seen is None else replays.find(seen.key)
    if isinstance(known, Replay):
        settle(run, seen, wanted, known.run(seen, keep_graph))
    elif known is SEEN:
        recorder, run.ran = Recorder(seen.inputs, held_bytes(seen.nodes) < LARGE), []
        with executing(recorder):
            walk(run, edges, cts)
        made = recorder.replay(seen, run.ran, outcome(run, seen, wanted))
        replays.keep(seen.key, made or NEVER)
    else:
        seen = None  # and with it the inputs: the walk lets go of what it has used
        walk(run, edges, cts)
    return run


def walk(run: Run, edges: list, cts: Sequence[Tensor]) -> None:
    before = state.grad_enabled
    state.grad_enabled = run.create_graph
    anomaly.backward_passes += 1
    try:
        run.start(edges, cts)
        cts = ()
        run.go()
    finally:
        anomaly.backward_passes -= 1
        state.grad_enabled = before


def outcome(run: Run, of: Outline, wanted: Sequence[Any] | None) -> list[Tensor | None]:
    """What a pass has left behind: gradients of leaves, or what was asked for."""
    if wanted is None:
        return [leaf._grad for leaf in of.leaves]
    return [None if e is None else run.found.get((id(e[0]), e[1])) for e in wanted]


def settle(run: Run, of: Outline, wanted: Sequence[Any] | None, results: Sequence) -> None:
    """Leave behind what a replay has computed."""
    if wanted is None:
        for leaf, g in zip(of.leaves, results):
            if g is not None:
                leaf._grad = g
        return
    for e, g in zip(wanted, results):
        if g is not None:
            run.found[id(e[0]), e[1]] = g

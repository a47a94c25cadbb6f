"""`Node`: one recorded operation, with what its gradient rule needs and nothing else.

An edge is `(node, output number)`, or `(leaf tensor, -1)` where the gradient is accumulated, or
None where no gradient flows. Which operands are saved follows from the parameter names of the
primitive's rules (see `flambeau.ops.registry`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from flambeau.autograd import anomaly
from flambeau.autograd.decomposed import decomposed_gradients
from flambeau.autograd.saved import restore, save, save_output
from flambeau.autograd.views import refreshed
from flambeau.core.context import state
from flambeau.core.dtype import FLOAT
from flambeau.core.errors import AutogradError, complaint
from flambeau.core.spec import Spec
from flambeau.ops.casts import copy
from flambeau.ops.creation import like
from flambeau.ops.registry import Primitive
from flambeau.tensor.tensor import Tensor, alias

_sequence = itertools.count()
_allocate = object.__new__


class Node:
    """What `grad_fn` shows: an operation of the recorded graph.

    edges      one per operand
    out_specs  one per output
    sequence   order of recording; the engine runs the latest first
    """

    __slots__ = ("edges", "out_specs", "sequence", "hooks", "tensor_hooks", "metadata",
                 "traceback", "__weakref__")

    def __init__(self, edges: list, out_specs: tuple):
        self.edges, self.out_specs = edges, out_specs
        self.sequence = next(_sequence)
        self.hooks = None  # see flambeau.autograd.hooks
        self.tensor_hooks = None
        if anomaly.enabled:
            self.traceback = anomaly.user_traceback()

    @property
    def next_functions(self) -> tuple:
        from flambeau.autograd.hooks import accumulator

        return tuple((None, 0) if e is None else (accumulator(e[0]), 0) if e[1] < 0 else e
                     for e in self.edges)

    def name(self) -> str:
        return type(self).__name__

    def _sequence_nr(self) -> int:
        return self.sequence

    def gradients(self, cts: list) -> tuple:
        """Cotangents of the operands from those of the outputs (None where zero)."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop what was saved; a second backward then says so."""

    def register_hook(self, hook: Callable):
        from flambeau.autograd.hooks import add_node_hook

        return add_node_hook(self, "post", hook)

    def register_prehook(self, hook: Callable):
        from flambeau.autograd.hooks import add_node_hook

        return add_node_hook(self, "pre", hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class Passing(Node):
    """The identity: stands before a leaf whose value another tensor carries."""

    __slots__ = ()

    def __init__(self, edge: tuple, of: Spec):
        super().__init__([edge], (of,))

    def gradients(self, cts: list) -> tuple:
        return tuple(cts)


class Constant(Node):
    """Stands behind a gradient that was computed from values of the forward pass and does not
    change with them, like that of relu: second derivatives are zero, not an error."""

    __slots__ = ("in_specs",)

    def __init__(self, of: PrimitiveNode, gradient: Spec):
        super().__init__(list(of.edges), (gradient,))
        self.in_specs = of.in_specs

    def gradients(self, cts: list) -> tuple:
        return tuple(None if e is None else like(s, 0) for e, s in zip(self.edges, self.in_specs))


class PrimitiveNode(Node):
    """A recorded primitive. `saved` is None once released."""

    __slots__ = ("primitive", "params", "in_specs", "saved", "rule")

    def name(self) -> str:
        words = self.primitive.name.split("_")
        return "".join(w[:1].upper() + w[1:] for w in words) + "Backward0"

    def gradients(self, cts: list) -> tuple:
        if self.saved is None:
            raise AutogradError(complaint(
                "backward", "the saved values of this graph have been freed by an earlier backward",
                dict(node=self.name()), "Pass retain_graph=True to the earlier call."))
        grads = self.rule.apply(self, cts)
        if state.grad_enabled and self.reads_operands():
            return tuple(self._connected(g) for g in grads)
        return grads

    def reads_operands(self) -> bool:
        """Does the rule read a value that itself has a gradient?"""
        return self.primitive.info.get("reads_operands", False) or any(
            self.out_specs[i].dtype.category >= FLOAT if kind == "out" else
            self.edges[i] is not None for kind, i in self.rule.saves)

    def _connected(self, gradient: Tensor | None) -> Tensor | None:
        if isinstance(gradient, Tensor) and not gradient._requires_grad:
            gradient = alias(gradient)
            gradient._node, gradient._output_nr = Constant(self, gradient._spec), 0
            gradient._requires_grad = True
        return gradient

    def release(self) -> None:
        if self.rule.saves:
            self.saved = None


class GradientRule:
    """How one primitive differentiates for one pattern of operands that need it.

    saves   ("in", i) or ("out", i) values that the rules name
    calls   (operand, rule function, argument getters)
    cuts    is the result a part of the operand? See `flambeau.autograd.pieces`
    """

    __slots__ = ("saves", "saved_outputs", "calls", "joint", "needs", "any", "cuts")

    def __init__(self, primitive: Primitive, needs: tuple[bool, ...]):
        self.needs, self.cuts = needs, primitive.info.get("cuts", False)
        self.any = True in needs
        self.saves: list[tuple[str, int]] = []
        self._read(primitive, needs)
        self.saved_outputs = [(n, i) for n, (kind, i) in enumerate(self.saves) if kind == "out"]

    def _read(self, primitive: Primitive, needs: tuple[bool, ...]) -> None:
        rules = primitive.vjp
        if rules == "decompose":
            self.joint = True
            self.calls = [(None, self._decomposed(primitive, len(needs)), None)]
            return
        self.joint = callable(rules)
        if self.joint:
            self.calls = [(None, rules, self._getters(primitive, rules, len(needs)))]
            return
        self.calls = []
        for i, needed in enumerate(needs):
            name = primitive.operands[min(i, len(primitive.operands) - 1)]
            rule = rules.get(name)
            if needed and rule is not None:
                self.calls.append((i, rule, self._getters(primitive, rule, len(needs))))

    def _decomposed(self, primitive: Primitive, count: int) -> Callable:
        slots = [self._slot("in", i) for i in range(count)]

        def rule(node, cts, saved):
            operands = [restore(saved[s], node) for s in slots]
            return decomposed_gradients(primitive, cts, operands, node.params, self.needs)

        return rule

    def _getters(self, primitive: Primitive, rule: Callable, count: int) -> list[Callable]:
        code = rule.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return [self._getter(primitive, name, count) for name in names]

    def _getter(self, primitive: Primitive, name: str, count: int) -> Callable:
        operands = primitive.operands
        if name == "ct":
            return lambda node, cts, saved: cts[0]
        if name == "cts":
            return lambda node, cts, saved: cts
        if name == "needs":
            return lambda node, cts, saved: node.rule.needs
        if name.startswith("out") and (name == "out" or name[3:].isdigit()):
            slot = self._slot("out", int(name[3:] or 0))
            return lambda node, cts, saved: restore(saved[slot], node)
        if name in operands:
            i = operands.index(name)
            if primitive.variadic and i == len(operands) - 1:
                slots = [self._slot("in", k) for k in range(i, count)]
                return lambda node, cts, saved: [restore(saved[s], node) for s in slots]
            slot = self._slot("in", i)
            return lambda node, cts, saved: restore(saved[slot], node)
        if name[:1] == "_" and name[1:] in operands:
            i = operands.index(name[1:])
            if primitive.variadic and i == len(operands) - 1:
                return lambda node, cts, saved: node.in_specs[i:]
            return lambda node, cts, saved: node.in_specs[i]
        return lambda node, cts, saved: node.params[name]

    def _slot(self, kind: str, i: int) -> int:
        if (kind, i) not in self.saves:
            self.saves.append((kind, i))
        return self.saves.index((kind, i))

    def apply(self, node: PrimitiveNode, cts: list) -> tuple:
        saved = node.saved
        if self.joint:
            _, rule, getters = self.calls[0]
            if getters is None:
                return rule(node, cts, saved)
            return rule(*[g(node, cts, saved) for g in getters])
        result: list[Any] = [None] * len(self.needs)
        for i, rule, getters in self.calls:
            result[i] = rule(*[g(node, cts, saved) for g in getters])
        return tuple(result)


def begin_node(primitive: Primitive, args: tuple, params: dict, several: bool,
               overwritten: Tensor | None = None) -> PrimitiveNode:
    """The node of an application, made before its result exists: edges and saved operands.

    An operand that the application is about to overwrite is saved as a copy. Written out, because
    it runs for every operation that is recorded.
    """
    edges: list = []
    specs: list = []
    needs = 0  # a bit for each operand
    bit = 1
    for a in args:
        if isinstance(a, Tensor):
            specs.append(a._spec)
            if a._base is not None:
                refreshed(a)
            before = a._node
            if before is not None:
                edges.append((before, a._output_nr))
                needs |= bit
            elif a._requires_grad:
                edges.append((a, -1))
                needs |= bit
            else:
                edges.append(None)
        else:
            specs.append(None)
            edges.append(None)
        bit += bit
    key = (needs, len(edges), several)
    rule = primitive.gradient_plans.get(key)
    if rule is None:
        rule = primitive.gradient_plans[key] = GradientRule(
            primitive, tuple(e is not None for e in edges))
    node = _allocate(PrimitiveNode)
    node.edges, node.out_specs, node.sequence = edges, (), next(_sequence)
    node.hooks = node.tensor_hooks = None
    node.primitive, node.params, node.in_specs, node.rule = primitive, params, specs, rule
    if overwritten is None:
        node.saved = [None if kind == "out" else save(args[i]) for kind, i in rule.saves]
    else:
        node.saved = [None if kind == "out" else
                      save(old_value(args[i]) if args[i] is overwritten else args[i])
                      for kind, i in rule.saves]
    if anomaly.enabled:
        node.traceback = anomaly.user_traceback()
    return node


def old_value(t: Tensor) -> Tensor:
    """A copy of `t` with the history that `t` has now."""
    old = state.executor.execute(copy, (t,), {})
    old._node, old._output_nr, old._requires_grad = t._node, t._output_nr, t._requires_grad
    return old


def finish_node(node: PrimitiveNode, outs: tuple[Tensor, ...]) -> None:
    """Save the outputs that rules name and note their specs."""
    node.out_specs = (outs[0]._spec,) if len(outs) == 1 else tuple([o._spec for o in outs])
    for slot, i in node.rule.saved_outputs:
        node.saved[slot] = save_output(outs[i], node, i)


def gradient_edge(t: Tensor):
    """Where the gradient of `t` goes."""
    if t._base is not None:
        refreshed(t)
    node = t._node
    if node is not None:
        return (node, t._output_nr)
    return (t, -1) if t._requires_grad else None

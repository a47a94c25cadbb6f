"""Custom operations: a `forward` and a `backward` written by the user.

The context handed to both is the node of the recorded graph itself, as in PyTorch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.autograd.node import Node, gradient_edge
from flambeau.autograd.saved import restore, save, save_output
from flambeau.autograd.views import bump, check_writable, rebase
from flambeau.core.context import state
from flambeau.core.dtype import FLOAT
from flambeau.core.errors import ArgumentError, AutogradError, complaint
from flambeau.core.spec import WEAK
from flambeau.ops import views
from flambeau.ops.creation import like
from flambeau.tensor.tensor import Tensor, alias


class FunctionCtx(Node):
    """What `ctx` offers; attributes of any name may be set on it.

    needs_input_grad  one bool per argument of `apply`
    saved_tensors     what `save_for_backward` was given
    """

    def __init__(self, function: type, arguments: tuple):
        edges = [gradient_edge(a) if isinstance(a, Tensor) else None for a in arguments]
        if not state.grad_enabled:
            edges = [None] * len(edges)
        super().__init__(edges, ())
        self._function = function
        self.needs_input_grad = tuple(e is not None for e in edges)
        self._materialize = True
        self._saving: tuple = ()
        self._saved: list | None = None
        self._dirty: tuple = ()
        self._constant_outputs: tuple = ()
        self._released = False

    def name(self) -> str:
        return f"{self._function.__name__}Backward"

    def save_for_backward(self, *tensors) -> None:
        """Keep tensors (inputs, outputs or others; None too) for `backward`."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise ArgumentError(complaint(
                    "save_for_backward", f"can only save tensors and None, but argument {i} is "
                    f"of type {type(t).__name__}", None, "Set other values as attributes of ctx."))
        self._saving = tensors

    def save_for_forward(self, *tensors) -> None:
        """Accepted for scripts that define `jvp`."""

    @property
    def saved_tensors(self) -> tuple:
        if self._released:
            raise AutogradError(complaint(
                "backward", "Trying to backward through the graph a second time: the saved values "
                "have been freed", dict(node=self.name()), "Pass retain_graph=True."))
        if self._saved is None:
            return self._saving
        return tuple(restore(s, self) for s in self._saved)

    def mark_dirty(self, *tensors) -> None:
        """These inputs were written in place."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """These outputs have no gradient."""
        self._constant_outputs = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """False: `backward` gets None for outputs that received no gradient."""
        self._materialize = value

    def gradients(self, cts: list) -> tuple:
        if self._materialize:
            cts = [like(s, 0) if ct is None else ct for ct, s in zip(cts, self.out_specs)]
        run = self._function.backward
        if run is Function.backward:
            run = self._function.vjp
        got = run(self, *cts)
        got = got if isinstance(got, tuple) else (got,)
        extra = got[len(self.edges):]
        if len(got) < len(self.edges) or any(g is not None for g in extra):
            raise AutogradError(complaint(
                "backward", f"function {self.name()} returned an incorrect number of gradients",
                dict(expected=len(self.edges), got=len(got))))
        return tuple(None if g is None or e is None else self._checked(i, g)
                     for i, (g, e) in enumerate(zip(got, self.edges)))

    def _checked(self, i: int, g) -> Tensor:
        if not isinstance(g, Tensor):
            raise ArgumentError(complaint("backward", f"{self.name()} must return Tensors or None",
                                          dict(got=type(g).__name__)))
        shape = self._in_specs[i].shape
        if g.shape != shape and not reaches(shape, g.shape):
            raise AutogradError(complaint(
                "backward", f"function {self.name()} returned an invalid gradient at index {i}",
                dict(got=list(g.shape), expected=f"a shape compatible with {list(shape)}")))
        return g

    def release(self) -> None:
        self._saved, self._released = None, bool(self._saving)

    @property
    def in_specs(self) -> list:
        return self._in_specs


class _FunctionMeta(type):
    """Gives each Function class a context class of its own name, which `grad_fn` shows."""

    def __init__(cls, name, bases, namespace):
        super().__init__(name, bases, namespace)
        cls._context = type(f"{name}Backward", (FunctionCtx,), {})


class Function(metaclass=_FunctionMeta):
    """Subclass with static `forward(ctx, *args)` (or `forward(*args)` and `setup_context(ctx,
    inputs, output)`) and `backward(ctx, *grads)`; call as `MyFunction.apply(*args)`."""

    generate_vmap_rule = False

    @staticmethod
    def forward(*args, **kwargs) -> Any:
        raise AutogradError(complaint("Function", "You must implement the forward function for "
                                      "custom autograd.Function"))

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        raise AutogradError(complaint("Function", "setup_context is not implemented"))

    @staticmethod
    def backward(ctx, *grad_outputs) -> Any:
        raise AutogradError(complaint("Function", "You must implement either the backward or vjp "
                                      "method for your custom autograd.Function"))

    @staticmethod
    def vjp(ctx, *grad_outputs) -> Any:
        return Function.backward(ctx, *grad_outputs)

    def __init__(self, *args, **kwargs):
        raise AutogradError(complaint(type(self).__name__, "custom Functions are not instantiated",
                                      None, "Call their static method apply."))

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward and record backward."""
        for a in args:
            if isinstance(a, Tensor) and a._array is None and hasattr(a, "_apply_function"):
                return a._apply_function(cls, args, kwargs)  # a stand-in, such as under vmap
        ctx = cls._context(cls, args)
        ctx._in_specs = [a._spec if isinstance(a, Tensor) else None for a in args]
        before = state.grad_enabled
        state.grad_enabled = False
        try:
            if cls.setup_context is Function.setup_context:
                outputs = cls.forward(ctx, *args, **kwargs)
            else:
                outputs = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, outputs)
        finally:
            state.grad_enabled = before
        return connect(ctx, args, outputs)


def reaches(shape: tuple, target: tuple) -> bool:
    """Does `shape` broadcast to `target`?"""
    lead = len(target) - len(shape)
    return lead >= 0 and all(a in (1, b) for a, b in zip(shape, target[lead:]))


def connect(ctx: FunctionCtx, args: tuple, outputs):
    """Attach the node to the outputs and save what was asked for."""
    several = isinstance(outputs, tuple)
    outs = list(outputs) if several else [outputs]
    recorded = any(ctx.needs_input_grad)
    tensors = [o for o in outs if isinstance(o, Tensor)]
    for t in ctx._dirty:
        bump(t)
    if not recorded:
        return outputs
    dirty = {id(t) for t in ctx._dirty}
    given = {id(a) for a in args if isinstance(a, Tensor)}
    plain = {id(t) for t in ctx._constant_outputs}
    position = {}
    ctx.out_specs = tuple(o._spec if isinstance(o, Tensor) else full_spec() for o in outs)
    for number, out in enumerate(outs):
        if not isinstance(out, Tensor):
            continue
        position[id(out)] = number
        if id(out) in dirty:
            check_writable(ctx.name(), out, True)
            rebase(out, ctx)
            out._output_nr = number
        elif id(out) not in plain and out._spec.dtype.category >= FLOAT:
            if id(out) in given or out._node is not None:
                out = outs[number] = alias(out)
            out._node, out._output_nr, out._requires_grad = ctx, number, True
            out._base = None
    ctx._saved = [keep(t, position, ctx, tensors) for t in ctx._saving]
    return tuple(outs) if several else outs[0]


def keep(t, position: dict, ctx: FunctionCtx, outputs: list):
    """Outputs are saved without the cycle through their node; everything else as it is."""
    if isinstance(t, Tensor) and id(t) in position and any(t is o for o in outputs):
        return save_output(t, ctx, position[id(t)]) if t._node is ctx else save(t)
    return save(t)


def full_spec():
    return WEAK[float]


def once_differentiable(f: Callable) -> Callable:
    """Mark a `backward` whose result may not be differentiated again."""

    @functools.wraps(f)
    def once(ctx, *grads):
        before = state.grad_enabled
        state.grad_enabled = False
        try:
            outputs = f(ctx, *grads)
        finally:
            state.grad_enabled = before
        if not before or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return outputs
        several = isinstance(outputs, tuple)
        marked = tuple(_Refuse.apply(o) if isinstance(o, Tensor) else o
                       for o in (outputs if several else (outputs,)))
        return marked if several else marked[0]

    return once


class _Refuse(Function):
    """Identity whose backward says that the derivative stops here."""

    @staticmethod
    def forward(ctx, x):
        return views.view(x, shape=tuple(x.shape)) if x._spec.is_contiguous else alias(x)

    @staticmethod
    def backward(ctx, grad):
        raise AutogradError(complaint(
            "backward", "trying to differentiate twice a function that was marked with "
            "@once_differentiable"))


class InplaceFunction(Function):
    """PyTorch's name for functions that take an `inplace` flag."""

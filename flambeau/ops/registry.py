"""The registry of primitives: one definition per op, from which everything else derives.

A primitive is a name with rules. `meta` says shape and dtype, `ref` computes on ndarrays, `vjp`
gives cotangents in terms of public tensor operations (so they differentiate again), `lower`
writes loop nests, `samples` feeds the contract tests.

Gradient rules name what they need. A rule for operand `x` is a function whose parameters are
looked up by name: `ct` (the cotangent of the output; `cts` for all outputs), `out` (the output;
`out0`, `out1` .. of several), any operand's name, any parameter's name, and `_name` for the Spec
of an operand that is not kept alive. So `mul`'s rule for x, `lambda ct, y: ct * y`, saves y and
nothing else. The engine reduces a returned cotangent to the operand's shape and dtype, so rules
ignore broadcasting and promotion.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flambeau.core import context

REGISTRY: dict[str, Primitive] = {}


class Primitive:
    """One op. Call it with tensors, numbers or None, and keyword parameters that hash.

    name      unique
    meta      (*Spec | None, **params) -> Spec or tuple of Spec; raises the op's errors.
              For a view: -> (shape, strides, offset in elements)
    ref       (*ndarray | number | None, **params) -> ndarray or tuple; None for views
    vjp       {operand: rule} or one function returning a tuple over all operands, which may
              name `needs`, a tuple of bools; None where the result has no derivative
    lower     (*Buf, **params) -> loop nests, or None
    samples   (rng) -> iterable of (operands, params)
    operands  names, from `meta`'s positional parameters; variadic ones have a single name
    kind      "pointwise" | "view" | "general" | "random"
    info      facts for particular layers; `no_gradient` says why floats have none
    write     (target ndarray, *operands, **params): in-place form that touches only what changes
    """

    __slots__ = ("name", "meta", "ref", "vjp", "lower", "samples", "operands", "variadic", "kind",
                 "write", "info", "plans", "differentiable", "gradient_plans")

    def __init__(self, name: str, meta: Callable, ref: Callable | None, vjp, lower, samples,
                 kind: str, write: Callable | None, info: dict):
        self.name, self.meta, self.ref, self.vjp = name, meta, ref, vjp
        self.lower, self.samples, self.kind, self.write = lower, samples, kind, write
        self.info = info  # facts for particular layers: ufunc, promotion rule, autocast class
        self.operands, self.variadic = info.pop("operands", None) or _operand_names(meta)
        self.plans: dict[tuple, Callable] = {}  # the eager executor's cache
        self.gradient_plans: dict[tuple, Any] = {}  # autograd's cache
        self.differentiable = vjp is not None

    def __call__(self, *args, **params):
        return context.bind(self, args, params)

    def inplace(self, target, *args, **params):
        """target <- self(*args); returns target."""
        return context.bind_inplace(self, target, args, params)

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self):
        return (REGISTRY.__getitem__, (self.name,))


def _operand_names(meta: Callable) -> tuple[tuple[str, ...], bool]:
    """Names of `meta`'s positional parameters, and whether the last one is variadic."""
    code = meta.__code__
    names = code.co_varnames[: code.co_argcount]
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    if variadic:
        names += (code.co_varnames[code.co_argcount + code.co_kwonlyargcount],)
    return names, variadic


def primitive(name: str, *, meta: Callable, ref: Callable | None = None,
              vjp: Callable | Mapping[str, Callable] | None = None, lower: Callable | None = None,
              samples: Callable[..., Iterable], kind: str = "general",
              write: Callable | None = None, **info) -> Primitive:
    """Define a primitive; its name must be new."""
    if name in REGISTRY:
        raise ValueError(f"primitive {name!r} is already defined")
    op = REGISTRY[name] = Primitive(name, meta, ref, vjp, lower, samples, kind, write, info)
    return op

"""`vmap`'s tensors and dispatch context: operations on a slice run on all slices at once.

A `BatchedTensor` looks like one slice: `shape` leaves the batch out. Its `value` holds all slices
along dimension 0. A `Batching` context is one level of vmap; it turns each primitive on batched
operands into primitives on their values, by a rule of `flambeau.func.rules` or slice by slice.
Levels nest: a value may itself be batched at an outer level. Below all contexts lies the tape, so
gradients are recorded on the values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flambeau.core.context import pushed, state
from flambeau.core.dtype import can_cast
from flambeau.core.errors import DtypeError, OpError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.eager.executor import specs_of
from flambeau.func.rules import FAMILIES, RULES, padded
from flambeau.ops.casts import copy
from flambeau.ops.creation import full
from flambeau.ops.joining import stack_rows
from flambeau.ops.registry import Primitive
from flambeau.tensor import Tensor

_allocate = object.__new__


class BatchedTensor(Tensor):
    """One slice of `value`, standing for all of them at `level`."""

    level: Batching
    value: Tensor
    __slots__ = ("level", "value")
    _plain_results = True

    def _aliased(self) -> BatchedTensor:
        """The same slices without history."""
        return batched(self.value.detach(), self.level)

    @staticmethod
    def _apply_function(function: Any, args: tuple, kwargs: dict) -> Any:
        """A custom autograd function: by its own `vmap` if it has one, else slice by slice."""
        level = max((x.level for x in args if isinstance(x, BatchedTensor)), key=_depth)
        if hasattr(function, "vmap"):
            return level.by_own_rule(function, args)
        return level.function_by_slices(function, args, kwargs)

    def __repr__(self, **options: Any) -> str:
        return f"BatchedTensor(depth={self.level.depth}, value={self.value!r})"


def _forwarded(name: str) -> property:
    """An attribute of the autograd graph: it is the value's."""
    return property(
        lambda self: getattr(self.value, name),
        lambda self, new: setattr(self.value, name, new),
    )


for _name in ("_requires_grad", "_node", "_output_nr", "_grad"):
    setattr(BatchedTensor, _name, _forwarded(_name))


def batched(value: Tensor, level: Batching) -> BatchedTensor:
    """The tensor whose slices at `level` lie along dimension 0 of `value`."""
    t = _allocate(BatchedTensor)
    t.value, t.level = value, level
    t._array = t._storage = t._base = t._extra = None
    t._spec = slice_spec(value._spec)
    t._offset = 0
    return t


def slice_spec(s: Spec) -> Spec:
    """The spec of one slice along dimension 0."""
    return spec(s.dtype, s.shape[1:], s.strides[1:], s.device)


def _depth(level: Batching) -> int:
    return level.depth


def is_batched(x: Any, level: Batching) -> bool:
    """Whether `x` is batched at `level` itself (not below it)."""
    return type(x) is BatchedTensor and x.level is level


class Info(NamedTuple):
    """What a custom function's `vmap` is told."""

    batch_size: int
    randomness: str


class Batching:
    """One level of vmap over `size` slices, as a dispatch context.

    randomness: "error", "same" (all slices draw the same) or "different".
    """

    def __init__(self, size: int, randomness: str) -> None:
        self.size, self.randomness = size, randomness
        self.depth = sum(isinstance(context, Batching) for context in state.stack) + 1

    def bind(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        if primitive.kind == "random":
            return self.drawn(primitive, args, params)
        if not any(is_batched(x, self) for x in args):
            return primitive(*args, **params)
        return self.wrapped(self.applied(primitive, args, params))

    def bind_inplace(self, primitive: Primitive, target: Tensor, args: tuple, params: dict) -> Any:
        if primitive.kind == "random":
            result = self.drawn(primitive, args, params)
        elif is_batched(target, self) and any(is_batched(x, self) for x in args):
            result = self.bind(primitive, self.before_write(target, args), params)
        elif is_batched(target, self):
            primitive.inplace(target.value, *args, **params)
            return target
        elif any(is_batched(x, self) for x in args):
            must = "a tensor that is not batched cannot be overwritten with batched values"
            hint = "Use the out-of-place form, or make the target from a batched tensor."
            raise OpError(complaint("vmap", must, {"operation": primitive.name}, hint))
        else:
            return primitive.inplace(target, *args, **params)
        self.write(primitive.name, target, result)
        return target

    def before_write(self, target: BatchedTensor, args: tuple) -> tuple:
        """The operands, with a copy for `target` where a gradient will need what it held."""
        if not (
            state.grad_enabled and any(isinstance(x, Tensor) and x.requires_grad for x in args)
        ):
            return args
        return tuple(batched(x.value.clone(), self) if x is target else x for x in args)

    def write(self, name: str, target: Tensor, result: Tensor) -> None:
        """target <- result."""
        if not can_cast(result.dtype, target.dtype) and name != "copy":
            facts = {"result": result.dtype, "target": target.dtype}
            raise DtypeError(complaint(name, "the result must fit the target's dtype", facts))
        if is_batched(result, self):
            target, result = target.value, padded(result.value, target.ndim + 1)
        elif is_batched(target, self):
            target = target.value
        copy.inplace(target, result)

    def drawn(self, primitive: Primitive, args: tuple, params: dict) -> Tensor:
        """A random result, as `randomness` says."""
        if self.randomness == "error":
            must = "random operations need randomness='same' or 'different'"
            raise OpError(complaint("vmap", must, {"operation": primitive.name}))
        over_batch = any(is_batched(x, self) for x in args)
        if self.randomness == "same" and not over_batch:
            return primitive(*args, **params)
        if "shape" in params and not over_batch:
            params = {**params, "shape": (self.size, *params["shape"])}
            if params.get("strides") is not None:
                params["strides"] = (math.prod(params["shape"][1:]), *params["strides"])
            return batched(primitive(**params), self)
        return self.wrapped(slice_by_slice(self, primitive, args, params))

    def applied(self, primitive: Primitive, args: tuple, params: dict) -> Any:
        """The value (or values) of the primitive on operands of which some are batched here."""
        rule = RULES.get(primitive.name) or FAMILIES.get(primitive.kind)
        if rule is not None:
            values = [x.value if is_batched(x, self) else x for x in args]
            here = [is_batched(x, self) for x in args]
            result = rule(self.size, primitive, values, here, params)
            if result is not NotImplemented:
                return result
        decomposition = primitive.info.get("decompose")
        if decomposition is not None:
            with pushed(self):
                result = decomposition(*args, **params)
            results = result if isinstance(result, tuple) else (result,)
            found = tuple(explicit_here(x, self) for x in results)
            return found if isinstance(result, tuple) else found[0]
        return slice_by_slice(self, primitive, args, params)

    def by_own_rule(self, function: Any, args: tuple) -> Any:
        """`function.vmap(info, in_dims, *args)`, which returns (outputs, out_dims)."""
        values = [x.value if is_batched(x, self) else x for x in args]
        in_dims = tuple(0 if is_batched(x, self) else None for x in args)
        outs, dims = function.vmap(Info(self.size, self.randomness), in_dims, *values)
        if not isinstance(outs, tuple):
            return self.at_dim(outs, dims)
        dims = dims if isinstance(dims, tuple) else (dims,) * len(outs)
        return tuple(self.at_dim(x, d) for x, d in zip(outs, dims, strict=True))

    def at_dim(self, value: Any, dim: int | None) -> Any:
        """The tensor whose slices lie along dimension `dim` of `value`; None: not batched."""
        return value if dim is None else batched(value.movedim(dim, 0), self)

    def function_by_slices(self, function: Any, args: tuple, kwargs: dict) -> Any:
        rows = []
        for i in range(self.size):
            row = [x.value.select(0, i) if is_batched(x, self) else x for x in args]
            rows.append(function.apply(*row, **kwargs))
        if not rows:
            facts = {"function": function.__name__}
            raise OpError(complaint("vmap", "a custom function needs at least one slice", facts))
        if not isinstance(rows[0], tuple):
            return self.stacked(rows)
        return tuple(self.stacked(column) for column in zip(*rows, strict=True))

    def stacked(self, rows: Sequence[Any]) -> Any:
        """Tensors of the slices as one batched tensor; anything else from the first slice."""
        return batched(stack_rows(rows), self) if isinstance(rows[0], Tensor) else rows[0]

    def wrapped(self, result: Any) -> Any:
        """Values of results as batched tensors."""
        if isinstance(result, tuple):
            return tuple(batched(x, self) for x in result)
        return batched(result, self)


def explicit_here(x: Tensor, level: Batching) -> Tensor:
    """The value of `x` at `level`; one that is not batched is repeated."""
    return x.value if is_batched(x, level) else x.expand((level.size, *x.shape))


def slice_by_slice(level: Batching, primitive: Primitive, args: tuple, params: dict) -> Any:
    """The primitive on each slice, the results stacked."""
    if level.size == 0:
        return no_slices(level, primitive, args, params)
    rows: list[Any] = []
    for i in range(level.size):
        row = [x.value.select(0, i) if is_batched(x, level) else x for x in args]
        rows.append(primitive(*row, **params))
    if not isinstance(rows[0], tuple):
        return stack_rows(rows)
    return tuple(stack_rows(column) for column in zip(*rows, strict=True))


def no_slices(level: Batching, primitive: Primitive, args: tuple, params: dict) -> Any:
    """The empty stack of results, whose shape the primitive tells."""
    found = primitive.meta(*specs_of(args), **params)
    if primitive.kind == "view":
        found = found[0]
    specs = found if isinstance(found, tuple) else (found,)
    outs = tuple(full(shape=(0, *s.shape), value=0, dtype=s.dtype, device=s.device) for s in specs)
    return outs if isinstance(found, tuple) else outs[0]


def levels() -> list[Batching]:
    """The active levels of vmap, outermost first."""
    return [context for context in state.stack if isinstance(context, Batching)]

"""The eager executor: per signature, a ready closure that allocates the result and computes it.

A signature is the specs of the operands (types for Python numbers) and the parameters. The first
call with a signature runs the op's `meta`, which raises the op's errors; later calls find the
plan by one dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.errors import FlambeauError, OutOfMemoryError, ShapeError, complaint
from flambeau.core.spec import WEAK, Spec
from flambeau.eager import plans
from flambeau.tensor.tensor import Tensor

LIMIT = 20_000  # plans kept per op


def signature(args: tuple, params: dict) -> tuple:
    """What a plan depends on. Written out for the common cases: this runs on every call."""
    if len(args) == 2:
        x, y = args
        key = (x._spec if isinstance(x, Tensor) else x.__class__,
               y._spec if isinstance(y, Tensor) else y.__class__)
    elif len(args) == 1:
        x, = args
        key = (x._spec if isinstance(x, Tensor) else x.__class__,)
    else:
        key = tuple([a._spec if isinstance(a, Tensor) else a.__class__ for a in args])
    return (*key, *params.values()) if params else key


def specs_of(args: tuple) -> list[Spec | None]:
    """The spec of each operand; None stays None."""
    return [a._spec if isinstance(a, Tensor) else None if a is None else weak_spec(a)
            for a in args]


def weak_spec(number) -> Spec:
    found = WEAK.get(type(number))
    if found is None:  # numpy scalars and other subclasses of Python's numbers
        for kind in (bool, int, float, complex):
            if isinstance(number, kind):
                return WEAK[kind]
        raise TypeError(f"a tensor or a number is needed; got {type(number).__name__}.")
    return found


class EagerExecutor:
    """Computes primitives on the spot."""

    holds = 0  # references that it keeps to each tensor it has made

    def execute(self, primitive, args: tuple, params: dict) -> Any:
        key = signature(args, params)
        plan = primitive.plans.get(key)
        if plan is None:
            plan = self.plan(primitive, key, args, params)
        try:
            return plan(*args)
        except (ValueError, MemoryError) as error:
            raise refused(primitive.name, error, args) from None

    def execute_inplace(self, primitive, target: Tensor, args: tuple, params: dict) -> None:
        key = (target._spec, signature(args, params))
        plan = primitive.plans.get(key)
        if plan is None:
            plan = self.inplace_plan(primitive, key, target, args, params)
        try:
            plan(target, *args)
        except (ValueError, MemoryError) as error:
            raise refused(primitive.name, error, (target, *args)) from None

    def plan(self, primitive, key: tuple, args: tuple, params: dict) -> Callable:
        if params.get("generator") is not None:  # a cached plan would keep the generator alive
            return plans.plan(primitive, specs_of(args), params)
        return remember(primitive, key, plans.plan(primitive, specs_of(args), params))

    def inplace_plan(self, primitive, key: tuple, target: Tensor, args: tuple,
                     params: dict) -> Callable:
        made = plans.inplace_plan(primitive, target._spec, specs_of(args), params)
        return remember(primitive, key, made)


def refused(op: str, error: Exception, args: tuple) -> Exception:
    """NumPy's complaint about shapes or memory as PyTorch's class of error; ours as they are."""
    if isinstance(error, FlambeauError):
        return error
    shapes = [list(a.shape) for a in args if isinstance(a, Tensor)]
    if isinstance(error, MemoryError) or "too big" in str(error):
        return OutOfMemoryError(complaint(op, f"memory must suffice: {error}", {"shapes": shapes}))
    return ShapeError(complaint(op, f"operands must fit together: {error}", {"shapes": shapes}))


def remember(primitive, key: tuple, plan: Callable) -> Callable:
    if len(primitive.plans) >= LIMIT:
        primitive.plans.clear()
    primitive.plans[key] = plan
    return plan

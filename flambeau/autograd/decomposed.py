"""The gradient of an op that is defined by its decomposition into other ops.

A fused primitive whose backward pass is itself a fused primitive needs no second formula: its
derivative is that of the composite it stands for, run and differentiated on the spot.
"""

from __future__ import annotations

from flambeau.core.context import state
from flambeau.ops import views
from flambeau.ops.registry import Primitive
from flambeau.tensor.tensor import Tensor, alias


def decomposed_gradients(primitive: Primitive, cts: list, operands: list, params: dict,
                         needs: tuple[bool, ...]) -> tuple:
    """Cotangents of `operands` by differentiating `primitive.info["decompose"]`."""
    from flambeau.autograd.gradients import grad

    again = state.grad_enabled
    state.grad_enabled = True
    try:
        inputs = [entry(x, again) if needed else x for x, needed in zip(operands, needs)]
        outs = primitive.info["decompose"](*inputs, **params)
        outs = outs if isinstance(outs, tuple) else (outs,)
        pairs = [(o, ct) for o, ct in zip(outs, cts) if ct is not None and o.requires_grad]
        wanted = [x for x, needed in zip(inputs, needs) if needed]
        if not pairs:
            return (None,) * len(operands)
        found = iter(grad([o for o, _ in pairs], wanted, [ct for _, ct in pairs],
                          create_graph=again, allow_unused=True))
        return tuple(next(found) if needed else None for needed in needs)
    finally:
        state.grad_enabled = again


def entry(x: Tensor, again: bool) -> Tensor:
    """An operand to differentiate at: connected to x's history when that will be asked for."""
    if again and x.requires_grad:
        return views.expand(x, shape=tuple(x.shape))
    leaf = alias(x)
    leaf._requires_grad = True
    return leaf

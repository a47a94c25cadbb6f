"""Trading memory for time: forward passes that are run again for the backward pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from flambeau.autograd.function import Function
from flambeau.autograd.gradients import backward
from flambeau.autograd.modes import enable_grad
from flambeau.autograd.saved import saved_tensors_hooks
from flambeau.core.context import state
from flambeau.core.errors import AutogradError, ValueRangeError, complaint
from flambeau.random.generator import default_generator
from flambeau.tensor.tensor import Tensor, alias


def checkpoint(
    function: Callable,
    *args,
    use_reentrant: bool | None = None,
    context_fn: Callable | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    preserve_rng_state: bool = True,
    **kwargs,
) -> Any:
    """function(*args, **kwargs) without keeping what its backward pass needs.

    It runs again when the backward pass reaches it, with the random state of the first run.
    """
    if use_reentrant:
        if kwargs or context_fn is not None:
            raise ValueRangeError(
                complaint(
                    "checkpoint",
                    "use_reentrant=True takes neither keyword arguments nor context_fn",
                    dict(keywords=sorted(kwargs)),
                    "Pass use_reentrant=False.",
                )
            )
        return _Reentrant.apply(function, preserve_rng_state, *args)
    return replayed(function, args, kwargs, context_fn, preserve_rng_state)


def random_state() -> Any:
    """From where on the same numbers can be drawn again."""
    return default_generator.engine.get_state()


def exchanged(state: Any) -> Any:
    """Draw from `state` on; the state in which the generator was."""
    before = default_generator.engine.get_state()
    default_generator.engine.set_state(state)
    return before


class DrawingAgain:
    """Within the block, the numbers of the first run are drawn, if its state was kept."""

    def __init__(self, state: Any):
        self.state = state
        self.before: Any = None

    def __enter__(self) -> None:
        if self.state is not None:
            self.before = exchanged(self.state)

    def __exit__(self, *exc: object) -> None:
        if self.state is not None:
            exchanged(self.before)


def replayed(function, args, kwargs, context_fn, preserve: bool):
    """Saved values become their number; the first one asked for runs the function again."""
    saved_state = random_state() if preserve else None
    forward_context, replay_context = (
        context_fn() if context_fn else (contextlib.nullcontext(), contextlib.nullcontext())
    )
    counter = [0]
    values: dict[int, Tensor] = {}

    def pack(t: Tensor) -> int:
        counter[0] += 1
        return counter[0] - 1

    def keep(t: Tensor):
        values[len(values)] = t
        return len(values) - 1

    def unpack(number: int) -> Tensor:
        if number not in values:
            values.clear()
            before = state.grad_enabled
            state.grad_enabled = True
            try:
                with (
                    DrawingAgain(saved_state),
                    replay_context,
                    saved_tensors_hooks(keep, values.__getitem__),
                ):
                    function(*args, **kwargs)
            finally:
                state.grad_enabled = before
        if number not in values:
            raise AutogradError(
                complaint(
                    "checkpoint",
                    "the function saved fewer tensors when it ran again",
                    dict(first=counter[0], again=len(values)),
                    "A checkpointed function must do the same each time it is called.",
                )
            )
        return values.pop(number)

    with forward_context, saved_tensors_hooks(pack, unpack):
        return function(*args, **kwargs)


class _Reentrant(Function):
    """The older form: a graph of its own, made and differentiated inside of backward."""

    @staticmethod
    def forward(ctx, function, preserve, *args):
        ctx.function = function
        ctx.state = random_state() if preserve else None
        ctx.arguments = args
        return function(*args)

    @staticmethod
    def backward(ctx, *grads):
        inputs = [again(a) for a in ctx.arguments]
        with enable_grad(), DrawingAgain(ctx.state):
            outputs = ctx.function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad
        ]
        if not pairs:
            raise AutogradError(
                complaint(
                    "checkpoint",
                    "none of the outputs has "
                    "requires_grad=True, this checkpoint() is not necessary",
                )
            )
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs))


def again(value):
    """A leaf on the memory of an argument."""
    if not isinstance(value, Tensor):
        return value
    leaf = alias(value)
    leaf._requires_grad = value.requires_grad
    return leaf


def checkpoint_sequential(
    functions,
    segments: int,
    input,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
):
    """Checkpoint a sequence of modules in `segments` parts; the last part runs normally."""
    layers = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(layers) // segments

    def run(start: int, stop: int):
        def forward(x):
            for layer in layers[start:stop]:
                x = layer(x)
            return x

        return forward

    end = 0
    for end in range(size, size * (segments - 1) + 1, size):
        input = checkpoint(
            run(end - size, end),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return run(size * (segments - 1), len(layers))(input)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """Accepted: flambeau runs a checkpointed function to its end."""
    yield

"""Recurrent networks as functions of their weights, under PyTorch's names: lstm, gru, rnn_tanh ...

A sequence is rows: those of step 0, then those of step 1, ..., with `sizes[t]` of them at step t,
never more than at the step before (a packed sequence; an ordinary one has `batch` everywhere).
What depends on the input alone is one matrix product over all steps. The rest is one primitive
where all sequences are as long (`ops.recurrence`). Packed sequences and projections are a loop,
which runs on ndarrays where nobody is watching, and on tensors under capture, autocast, transforms
and higher derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flambeau.autograd.function import Function
from flambeau.autograd.gradients import grad
from flambeau.autograd.modes import is_grad_enabled
from flambeau.core import context
from flambeau.core.dtype import float32, float64
from flambeau.nn import functional as F
from flambeau.nn.recurrent_kernels import kernel, row_slices
from flambeau.ops.recurrence import gru_sequence, lstm_sequence, rnn_sequence
from flambeau.tensor import Tensor, cat, from_numpy, stack

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State, "LayerWeights"], State]


class LayerWeights:
    """One direction of one layer: w_ih, w_hh and, if there are any, b_ih, b_hh, w_hr."""

    def __init__(self, weights: Sequence[Tensor], has_biases: bool) -> None:
        self.w_ih, self.w_hh = weights[:2]
        self.b_ih: Any = weights[2] if has_biases else None
        self.b_hh: Any = weights[3] if has_biases else None
        rest = weights[4:] if has_biases else weights[2:]
        self.w_hr: Any = rest[0] if rest else None

    def of_input(self, x: Tensor) -> Tensor:
        """The input's part of the gates, for any number of steps at once."""
        return F.linear(x, self.w_ih, self.b_ih)

    def of_hidden(self, h: Tensor) -> Tensor:
        """The hidden state's part of the gates."""
        return F.linear(h, self.w_hh, self.b_hh)


def lstm_step(gates_x: Tensor, state: State, weights: LayerWeights) -> State:
    """c' = f c + i g, h' = o tanh(c'), from gates in the order i, f, g, o."""
    h, c = state
    gates = gates_x + weights.of_hidden(h)
    size = gates.size(1) // 4
    i, f, g, o = gates.split(size, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    if weights.w_hr is not None:
        h = F.linear(h, weights.w_hr)
    return h, c


def gru_step(gates_x: Tensor, state: State, weights: LayerWeights) -> State:
    """h' = n + z (h - n), n = tanh(x_n + r h_n), from gates in the order r, z, n."""
    (h,) = state
    size = h.size(1)
    x_r, x_z, x_n = gates_x.split(size, 1)
    h_r, h_z, h_n = weights.of_hidden(h).split(size, 1)
    r = (x_r + h_r).sigmoid()
    z = (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return (n + z * (h - n),)


def tanh_step(gates_x: Tensor, state: State, weights: LayerWeights) -> State:
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh)."""
    return ((gates_x + weights.of_hidden(state[0])).tanh(),)


def relu_step(gates_x: Tensor, state: State, weights: LayerWeights) -> State:
    """h' = relu(W_ih x + b_ih + W_hh h + b_hh)."""
    return ((gates_x + weights.of_hidden(state[0])).relu(),)


STEPS: dict[str, Step] = {
    "lstm": lstm_step,
    "gru": gru_step,
    "tanh": tanh_step,
    "relu": relu_step,
}


class Direction(Function):
    """One direction of a layer on ndarrays: (rows, h) or (rows, h, c)."""

    @staticmethod
    def forward(
        ctx: Any,
        kind: str,
        sizes: tuple[int, ...],
        reverse: bool,
        *tensors: Tensor | None,
    ) -> tuple[Tensor, ...]:
        ctx.call = kind, sizes, reverse
        ctx.save_for_backward(*tensors)
        arrays: list[Any] = [None if t is None else t.detach().numpy() for t in tensors]
        gates, h, c, w_hh, b_hh, w_hr = arrays
        ctx.kernel = kernel(kind, row_slices(sizes, reverse), w_hh, b_hh, w_hr)
        return tuple(from_numpy(result) for result in ctx.kernel.run(gates, h, c))

    @staticmethod
    def backward(ctx: Any, *cts: Tensor) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        if is_grad_enabled():
            return None, None, None, *differentiated(ctx.call, tensors, cts)
        arrays = [ct.detach().numpy() for ct in cts]
        found = ctx.kernel.back(*arrays, *[None] * (3 - len(arrays)))
        given = (None if a is None else from_numpy(a) for a in found.values())
        return None, None, None, *given


def differentiated(
    call: tuple[str, tuple[int, ...], bool], tensors: Sequence[Tensor | None], cts: Any
) -> list[Tensor | None]:
    """The gradients of a direction as functions of its operands, for higher derivatives."""
    operands = [None if t is None else t.view_as(t) for t in tensors]
    wanted = [t for t in operands if t is not None and t.requires_grad]
    rows, state = on_tensors(*call, *operands)
    outs = [(o, ct) for o, ct in zip((rows, *state), cts, strict=True) if o.requires_grad]
    found = iter(
        grad(
            [o for o, _ in outs],
            wanted,
            [ct for _, ct in outs],
            create_graph=True,
            allow_unused=True,
        )
    )
    return [next(found) if t is not None and t.requires_grad else None for t in operands]


def on_tensors(
    kind: str,
    sizes: Sequence[int],
    reverse: bool,
    gates: Tensor,
    h: Tensor,
    c: Tensor | None,
    w_hh: Tensor,
    b_hh: Tensor | None,
    w_hr: Tensor | None,
) -> tuple[Tensor, State]:
    """One direction of a layer, step by step with tensor operations."""
    weights = LayerWeights([w for w in (w_hh, w_hh, b_hh, b_hh) if w is not None], b_hh is not None)
    weights.w_hr = w_hr
    steps = gates.split(list(sizes)) if len(sizes) > 1 else (gates,)
    state = (h,) if c is None else (h, c)
    run = run_backward if reverse else run_forward
    outputs, state = run(STEPS[kind], steps, sizes, state, weights)
    return (cat(outputs) if len(outputs) > 1 else outputs[0]), state


def is_plain(*tensors: Tensor | None) -> bool:
    """Whether the tensors hold ordinary floats in memory and no context sees the operations."""
    return context.state.top is None and all(
        t is None or (isinstance(t._array, np.ndarray) and t.dtype in (float32, float64))
        for t in tensors
    )


class Uniform(NamedTuple):
    """The sizes of a batch whose sequences all have `steps` steps; neither need be known yet."""

    batch: int
    steps: int


Sizes = Sequence[int] | Uniform


def is_one_op(sizes: Sizes, operands: Sequence[Tensor | None]) -> bool:
    """Sequences of one length without projection, in one dtype, seen by no context."""
    *states, w_hr = operands
    kind = operands[0].dtype  # type: ignore[union-attr]
    first, last = (sizes.batch,) * 2 if isinstance(sizes, Uniform) else (sizes[0], sizes[-1])
    return context.state.top is None and w_hr is None and kind in (float32, float64) and (
        0 < first == last and all(t is None or t.dtype is kind for t in states))


def whole_sequence(
    kind: str, steps: int, reverse: bool, gates: Tensor, state: State, w: LayerWeights
) -> tuple[Tensor, State]:
    """(output rows, last state) by one primitive."""
    start = [s.contiguous() for s in state]
    weights = [w.w_hh.contiguous(), None if w.b_hh is None else w.b_hh.contiguous()]
    rows = gates.contiguous().view(steps, -1, gates.shape[1])
    operands = (rows, *start, *weights)
    keep = is_grad_enabled() and any(t is not None and t.requires_grad for t in operands)
    if kind == "lstm":
        out, *last = lstm_sequence(*operands, reverse=reverse, keep=keep)
    elif kind == "gru":
        out, *last = gru_sequence(*operands, reverse=reverse, keep=keep)
    else:
        out, *last = rnn_sequence(*operands, reverse=reverse, relu=kind == "relu")
    return out.view(-1, out.shape[2]), tuple(last[: len(state)])


def run_direction(
    kind: str, sizes: Sizes, reverse: bool, rows: Tensor, state: State, w: LayerWeights
) -> tuple[Tensor, State]:
    """(output rows, last state) of one direction of a layer."""
    gates = w.of_input(rows)
    operands = (gates, state[0], state[1] if len(state) > 1 else None, w.w_hh, w.b_hh, w.w_hr)
    if is_one_op(sizes, operands):
        steps = sizes.steps if isinstance(sizes, Uniform) else len(sizes)
        return whole_sequence(kind, steps, reverse, gates, state, w)
    if isinstance(sizes, Uniform):
        sizes = [sizes.batch] * sizes.steps
    if is_plain(*operands):
        out, *last = Direction.apply(kind, tuple(sizes), reverse, *operands)
        return out, tuple(last)
    return on_tensors(kind, sizes, reverse, *operands)


def run_forward(
    step: Step, gates: Sequence[Tensor], sizes: Sequence[int], state: State, w: LayerWeights
) -> tuple[list[Tensor], State]:
    """From the first step to the last; rows whose sequence has ended keep their state."""
    outputs: list[Tensor] = []
    ended: list[State] = []
    for gates_x, size in zip(gates, sizes, strict=True):
        running = state[0].size(0)
        if size < running:
            ended.append(tuple(s[size:] for s in state))
            state = tuple(s[:size] for s in state)
        state = step(gates_x, state, w)
        outputs.append(state[0])
    if ended:
        state = tuple(cat(list(parts)) for parts in zip(state, *reversed(ended), strict=True))
    return outputs, state


def run_backward(
    step: Step, gates: Sequence[Tensor], sizes: Sequence[int], start: State, w: LayerWeights
) -> tuple[list[Tensor], State]:
    """From the last step to the first; rows join, from `start`, where their sequence ends."""
    outputs: list[Tensor] = []
    state: State = tuple(s[: sizes[-1]] for s in start)
    for gates_x, size in zip(reversed(gates), reversed(sizes), strict=True):
        running = state[0].size(0)
        if size > running:
            state = tuple(cat([s, f[running:size]]) for s, f in zip(state, start, strict=True))
        state = step(gates_x, state, w)
        outputs.append(state[0])
    return outputs[::-1], state


def run_layers(
    kind: str,
    rows: Tensor,
    sizes: Sizes,
    start: State,
    layers: Sequence[Sequence[LayerWeights]],
    dropout: float,
    train: bool,
) -> tuple[Tensor, State]:
    """All layers, one after the other, each in one or two directions.

    start and the state returned are (layers * directions, batch, features), layer by layer.
    """
    last: list[State] = []
    for number, directions in enumerate(layers):
        outputs = []
        for reverse, w in enumerate(directions):
            own = tuple(s[len(last)] for s in start)
            out, state = run_direction(kind, sizes, bool(reverse), rows, own, w)
            outputs.append(out)
            last.append(state)
        rows = cat(outputs, 1) if len(outputs) > 1 else outputs[0]
        if dropout and train and number < len(layers) - 1:
            rows = F.dropout(rows, dropout, train)
    return rows, tuple(stack(list(parts)) for parts in zip(*last, strict=True))


def grouped(
    params: Sequence[Tensor], has_biases: bool, num_layers: int, bidirectional: bool
) -> list[list[LayerWeights]]:
    """A flat list of weights by layer and direction."""
    directions = 2 if bidirectional else 1
    count = len(params) // (num_layers * directions)
    cells = [LayerWeights(params[i : i + count], has_biases) for i in range(0, len(params), count)]
    return [cells[i : i + directions] for i in range(0, len(cells), directions)]


def network(kind: str, *args: Any) -> tuple[Tensor, State]:
    """A network from PyTorch's two lists of arguments.

    (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), or
    packed (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional).
    """
    packed = isinstance(args[3], (list, tuple))
    if packed:
        rows, batch_sizes, hx, params, has_biases, num_layers, dropout, train, both = args
        sizes: Sizes = batch_sizes.tolist()
    else:
        x, hx, params, has_biases, num_layers, dropout, train, both, batch_first = args
        x = x.transpose(0, 1) if batch_first else x
        steps, batch = x.shape[:2]
        sizes = Uniform(batch, steps)
        rows = x.reshape(steps * batch, x.shape[2])
    start = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    layers = grouped(params, has_biases, num_layers, both)
    rows, state = run_layers(kind, rows, sizes, start, layers, dropout, train)
    if packed:
        return rows, state
    out = rows.reshape(steps, batch, rows.shape[1])
    return (out.transpose(0, 1) if batch_first else out), state


def lstm(*args: Any) -> tuple[Tensor, Tensor, Tensor]:
    """(output, h_n, c_n) of a long short-term memory network; arguments as for `network`."""
    output, (h, c) = network("lstm", *args)
    return output, h, c


def gru(*args: Any) -> tuple[Tensor, Tensor]:
    """(output, h_n) of a gated recurrent network; arguments as for `network`."""
    output, (h,) = network("gru", *args)
    return output, h


def rnn_tanh(*args: Any) -> tuple[Tensor, Tensor]:
    """(output, h_n) of a recurrent network with tanh; arguments as for `network`."""
    output, (h,) = network("tanh", *args)
    return output, h


def rnn_relu(*args: Any) -> tuple[Tensor, Tensor]:
    """(output, h_n) of a recurrent network with relu; arguments as for `network`."""
    output, (h,) = network("relu", *args)
    return output, h


def cell(
    step: Step,
    input: Tensor,
    state: State,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> State:
    """One step for a batch of rows."""
    biased = b_ih is not None
    weights = LayerWeights([w_ih, w_hh, b_ih, b_hh] if biased else [w_ih, w_hh], biased)
    return step(weights.of_input(input), state, weights)


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(h', c') of one step of an LSTM."""
    h, c = cell(lstm_step, input, tuple(hx), w_ih, w_hh, b_ih, b_hh)
    return h, c


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """h' of one step of a GRU."""
    return cell(gru_step, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """h' of one step of a recurrent network with tanh."""
    return cell(tanh_step, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """h' of one step of a recurrent network with relu."""
    return cell(relu_step, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]

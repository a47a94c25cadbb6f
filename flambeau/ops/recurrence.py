"""One direction of a recurrent layer as one op: lstm_sequence, gru_sequence, rnn_sequence.

Sizes: T steps, B rows, H elements of the state h. `gates` (T, B, k H) are what the input gives to
the cell, W_ih x + b_ih, for all steps; `w` (k H, H) and `b` (k H) are the hidden state's. With
`reverse` the last step comes first. Results are the states h of all steps, the last state, and with
`keep` what the backward pass reads.

A cell is written once, for ndarrays and for tensors: `on` is where its functions come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from flambeau.core.errors import ShapeError, complaint
from flambeau.core.spec import Spec, spec
from flambeau.ops.elementwise import common_device
from flambeau.ops.joining import cat
from flambeau.ops.registry import primitive


class Arrays:
    """Functions of ndarrays."""

    @staticmethod
    def sigmoid(x):
        return 0.5 * np.tanh(0.5 * x) + 0.5  # it cannot overflow

    tanh = staticmethod(np.tanh)
    stack = staticmethod(np.stack)

    @staticmethod
    def relu(x):
        return np.maximum(x, 0)

    @staticmethod
    def cat(parts):
        return np.concatenate(parts, 1)

    @staticmethod
    def zeros(like, shape):
        return np.zeros(shape, like.dtype)


class Tensors:
    """Functions of tensors, which differentiate."""

    @staticmethod
    def sigmoid(x):
        return x.sigmoid()

    @staticmethod
    def tanh(x):
        return x.tanh()

    @staticmethod
    def relu(x):
        return x.relu()

    @staticmethod
    def stack(parts):
        return cat(*[x.unsqueeze(0) for x in parts], dim=0)

    @staticmethod
    def cat(parts):
        return cat(*parts, dim=1)

    @staticmethod
    def zeros(like, shape):
        return like.new_zeros(shape)


def visited(steps: int, reverse: bool) -> list[int]:
    """Steps in the order in which the layer sees them."""
    return list(range(steps))[::-1] if reverse else list(range(steps))


def joined(on, found: dict[int, Any]):
    return on.stack([found[t] for t in range(len(found))])


def parts(x, count: int) -> Iterator:
    """Equal groups of columns."""
    n = x.shape[1] // count
    return (x[:, k * n : (k + 1) * n] for k in range(count))


def hidden_part(h, w, b):
    y = h @ w.T
    return y if b is None else y + b


def sequence_meta(name: str, gates: Spec, h: Spec, w: Spec, b: Spec | None, groups: int) -> tuple:
    """(spec of all states, spec of one); operands must agree in their sizes."""
    size = w.shape[1]
    wanted = [(gates, (*gates.shape[:2], groups * size)), (h, (gates.shape[1], size)),
              (w, (groups * size, size))]  # fmt: skip
    wanted += [] if b is None else [(b, (groups * size,))]
    if gates.ndim != 3 or any(tuple(s.shape) != shape for s, shape in wanted):
        raise ShapeError(complaint(name, "gates (T, B, kH), h (B, H), w (kH, H) and b (kH) must "
                                   "agree", dict(gates=list(gates.shape), h=list(h.shape),
                                                 w=list(w.shape))))
    device = common_device(name, [gates, h, w])
    return (spec(gates.dtype, (*gates.shape[:2], size), None, device),
            spec(gates.dtype, (gates.shape[1], size), None, device))


def kept_spec(out: Spec, groups: int) -> Spec:
    return spec(out.dtype, (*out.shape[:2], groups * out.shape[2]), None, out.device)


def weight_gradients(hidden, h, out, reverse, needs) -> tuple:
    """Those of w and b from the cotangent of w h + b at all steps."""
    rows = hidden.reshape(-1, hidden.shape[2])
    gw = None
    if needs[0]:
        first = h.unsqueeze(0)
        before = cat(out[1:], first, dim=0) if reverse else cat(first, out[:-1], dim=0)
        gw = rows.T @ before.reshape(-1, before.shape[2])
    return gw, rows.sum(0) if needs[1] else None


def dense(cts) -> list:
    return [None if ct is None else ct.contiguous() for ct in cts]


# lstm: c' = f c + i g, h' = o tanh(c'), from gates in the order i, f, g, o --------------------


def lstm_steps(on, gates, h, c, w, b, reverse):
    """(states, h, c, i f g o c' of all steps)."""
    outs, kept = {}, {}
    for t in visited(gates.shape[0], reverse):
        i, f, g, o = parts(gates[t] + hidden_part(h, w, b), 4)
        i, f, g, o = on.sigmoid(i), on.sigmoid(f), on.tanh(g), on.sigmoid(o)
        c = f * c + i * g
        h = o * on.tanh(c)
        outs[t], kept[t] = h, on.cat([i, f, g, o, c])
    return joined(on, outs), h, c, joined(on, kept)


def lstm_steps_back(on, ct_out, ct_h, ct_c, c, w, kept, reverse, ct_kept=None):
    """Cotangents of gates, h and c."""
    n, order, found = w.shape[1], visited(kept.shape[0], reverse), {}
    ct_h = on.zeros(c, c.shape) if ct_h is None else ct_h
    ct_c = on.zeros(c, c.shape) if ct_c is None else ct_c
    for k in reversed(range(len(order))):
        t = order[k]
        i, f, g, o, now = parts(kept[t], 5)
        before = kept[order[k - 1]][:, 4 * n :] if k else c
        ct_h = ct_h if ct_out is None else ct_h + ct_out[t]
        u = on.tanh(now)
        ct_c = ct_c + ct_h * o * (1 - u * u)
        more = (0,) * 5 if ct_kept is None else parts(ct_kept[t], 5)
        more_i, more_f, more_g, more_o, more_c = more
        ct_c = ct_c + more_c
        found[t] = on.cat([
            (ct_c * g + more_i) * (i * (1 - i)), (ct_c * before + more_f) * (f * (1 - f)),
            (ct_c * i + more_g) * (1 - g * g), (ct_h * u + more_o) * (o * (1 - o))])
        ct_c, ct_h = ct_c * f, found[t] @ w
    return joined(on, found), ct_h, ct_c


def lstm_meta(gates: Spec, h: Spec, c: Spec, w: Spec, b: Spec | None, *, reverse, keep):
    out, last = sequence_meta("lstm_sequence", gates, h, w, b, 4)
    return (out, last, last, kept_spec(out, 5)) if keep else (out, last, last)


def lstm_ref(gates, h, c, w, b, *, reverse, keep):
    return lstm_steps(Arrays, gates, h, c, w, b, reverse)[: 3 + keep]


def lstm_vjp(cts, gates, h, c, w, b, out0, out3, reverse, needs):
    ct_out, ct_h, ct_c, ct_kept = dense(cts)
    if ct_kept is not None:  # nobody asks for it but a test
        found = lstm_steps_back(Tensors, ct_out, ct_h, ct_c, c, w, out3, reverse, ct_kept)
    else:
        found = lstm_sequence_backward(ct_out, ct_h, ct_c, gates, h, c, w, b, out0, out3,
                                       reverse=reverse)
    return (*found, *weight_gradients(found[0], h, out0, reverse, needs[3:]))


def drawn(rng, groups: int, cells: bool):
    """(gates, h, c, w, b) of some sizes; the bias may be missing."""
    for steps, rows, size, biased in [(3, 2, 2, True), (1, 3, 1, False), (2, 1, 3, True)]:
        state = [rng.normal(size=(rows, size)) for _ in range(1 + cells)]
        yield (rng.normal(size=(steps, rows, groups * size)), *state,
               rng.normal(size=(groups * size, size)),
               rng.normal(size=groups * size) if biased else None)


def both_ways(rng, groups: int, cells: bool):
    for k, operands in enumerate(drawn(rng, groups, cells)):
        yield operands, dict(reverse=bool(k % 2))


def lstm_samples(rng):
    for operands, how in both_ways(rng, 4, True):
        yield operands, dict(how, keep=True)


lstm_sequence = primitive(
    "lstm_sequence", meta=lstm_meta, ref=lstm_ref, vjp=lstm_vjp, samples=lstm_samples)


def lstm_back_meta(ct_out, ct_h, ct_c, gates: Spec, h: Spec, c: Spec, w: Spec, b, out, kept, *,
                   reverse):
    return tuple(spec(s.dtype, s.shape, None, s.device) for s in (gates, h, c))


def lstm_back(on, ct_out, ct_h, ct_c, gates, h, c, w, b, out, kept, *, reverse):
    """From the operands of the forward pass alone, so that it differentiates again."""
    kept = lstm_steps(on, gates, h, c, w, b, reverse)[3]
    return lstm_steps_back(on, ct_out, ct_h, ct_c, c, w, kept, reverse)


def lstm_remade(ct_out, ct_h, ct_c, gates, h, c, w, b, out, kept, **how):
    """The operands with results of the forward pass that belong to the others."""
    made = lstm_ref(gates, h, c, w, b, **how, keep=True)
    return [ct_out, ct_h, ct_c, gates, h, c, w, b, made[0], made[-1]]


def lstm_back_samples(rng):
    for k, (operands, how) in enumerate(both_ways(rng, 4, True)):
        out, h, c, kept = lstm_ref(*operands, **how, keep=True)
        cts = [rng.normal(size=x.shape) for x in (out, h, c)]
        cts[k] = None
        yield (*cts, *operands, out, kept), how


lstm_sequence_backward = primitive(
    "lstm_sequence_backward", meta=lstm_back_meta, ref=partial(lstm_back, Arrays), vjp="decompose",
    decompose=partial(lstm_back, Tensors), samples=lstm_back_samples, remade=lstm_remade)


# gru: h' = n + z (h - n), n = tanh(x_n + r h_n), from gates in the order r, z, n --------------


def gru_steps(on, gates, h, w, b, reverse):
    """(states, h, r z n h_n of all steps)."""
    outs, kept = {}, {}
    for t in visited(gates.shape[0], reverse):
        x_r, x_z, x_n = parts(gates[t], 3)
        h_r, h_z, h_n = parts(hidden_part(h, w, b), 3)
        r, z = on.sigmoid(x_r + h_r), on.sigmoid(x_z + h_z)
        n = on.tanh(x_n + r * h_n)
        h = n + z * (h - n)
        outs[t], kept[t] = h, on.cat([r, z, n, h_n])
    return joined(on, outs), h, joined(on, kept)


def gru_steps_back(on, ct_out, ct_h, h, w, out, kept, reverse, ct_kept=None):
    """Cotangents of gates, of w h + b at all steps, and of h."""
    order, found, hidden = visited(kept.shape[0], reverse), {}, {}
    ct_h = on.zeros(h, h.shape) if ct_h is None else ct_h
    for k in reversed(range(len(order))):
        t = order[k]
        r, z, n, h_n = parts(kept[t], 4)
        before = out[order[k - 1]] if k else h
        ct_h = ct_h if ct_out is None else ct_h + ct_out[t]
        more_r, more_z, more_n, more_h = (0,) * 4 if ct_kept is None else parts(ct_kept[t], 4)
        ct_n = (ct_h * (1 - z) + more_n) * (1 - n * n)
        ct_r = (ct_n * h_n + more_r) * (r * (1 - r))
        ct_z = (ct_h * (before - n) + more_z) * (z * (1 - z))
        found[t] = on.cat([ct_r, ct_z, ct_n])
        hidden[t] = on.cat([ct_r, ct_z, ct_n * r + more_h])
        ct_h = ct_h * z + hidden[t] @ w
    return joined(on, found), joined(on, hidden), ct_h


def gru_meta(gates: Spec, h: Spec, w: Spec, b: Spec | None, *, reverse, keep):
    out, last = sequence_meta("gru_sequence", gates, h, w, b, 3)
    return (out, last, kept_spec(out, 4)) if keep else (out, last)


def gru_ref(gates, h, w, b, *, reverse, keep):
    return gru_steps(Arrays, gates, h, w, b, reverse)[: 2 + keep]


def gru_vjp(cts, gates, h, w, b, out0, out2, reverse, needs):
    ct_out, ct_h, ct_kept = dense(cts)
    if ct_kept is not None:  # nobody asks for it but a test
        gx, hidden, gh = gru_steps_back(Tensors, ct_out, ct_h, h, w, out0, out2, reverse, ct_kept)
    else:
        gx, hidden, gh = gru_sequence_backward(ct_out, ct_h, gates, h, w, b, out0, out2,
                                               reverse=reverse)
    return (gx, gh, *weight_gradients(hidden, h, out0, reverse, needs[2:]))


def gru_samples(rng):
    for operands, how in both_ways(rng, 3, False):
        yield operands, dict(how, keep=True)


gru_sequence = primitive(
    "gru_sequence", meta=gru_meta, ref=gru_ref, vjp=gru_vjp, samples=gru_samples)


def gru_back_meta(ct_out, ct_h, gates: Spec, h: Spec, w: Spec, b, out, kept, *, reverse):
    return tuple(spec(s.dtype, s.shape, None, s.device) for s in (gates, gates, h))


def gru_back(on, ct_out, ct_h, gates, h, w, b, out, kept, *, reverse):
    """From the operands of the forward pass alone, so that it differentiates again."""
    out, _, kept = gru_steps(on, gates, h, w, b, reverse)
    return gru_steps_back(on, ct_out, ct_h, h, w, out, kept, reverse)


def gru_remade(ct_out, ct_h, gates, h, w, b, out, kept, **how):
    """The operands with results of the forward pass that belong to the others."""
    made = gru_ref(gates, h, w, b, **how, keep=True)
    return [ct_out, ct_h, gates, h, w, b, made[0], made[-1]]


def gru_back_samples(rng):
    for k, (operands, how) in enumerate(both_ways(rng, 3, False)):
        out, h, kept = gru_ref(*operands, **how, keep=True)
        cts = [None if j == k else rng.normal(size=x.shape) for j, x in enumerate((out, h))]
        yield (*cts, *operands, out, kept), how


gru_sequence_backward = primitive(
    "gru_sequence_backward", meta=gru_back_meta, ref=partial(gru_back, Arrays), vjp="decompose",
    decompose=partial(gru_back, Tensors), samples=gru_back_samples, remade=gru_remade)


# rnn: h' = tanh or relu of (gates + w h + b) ---------------------------------------------------


def rnn_steps(on, gates, h, w, b, reverse, relu):
    outs, activation = {}, on.relu if relu else on.tanh
    for t in visited(gates.shape[0], reverse):
        h = outs[t] = activation(gates[t] + hidden_part(h, w, b))
    return joined(on, outs), h


def rnn_steps_back(on, ct_out, ct_h, h, w, out, reverse, relu):
    found = {}
    ct_h = on.zeros(h, h.shape) if ct_h is None else ct_h
    for t in visited(out.shape[0], not reverse):
        ct_h = ct_h if ct_out is None else ct_h + ct_out[t]
        found[t] = ct_h * ((out[t] > 0) if relu else 1 - out[t] * out[t])
        ct_h = found[t] @ w
    return joined(on, found), ct_h


def rnn_meta(gates: Spec, h: Spec, w: Spec, b: Spec | None, *, reverse, relu):
    return sequence_meta("rnn_sequence", gates, h, w, b, 1)


def rnn_ref(gates, h, w, b, *, reverse, relu):
    return rnn_steps(Arrays, gates, h, w, b, reverse, relu)


def rnn_vjp(cts, gates, h, w, b, out0, reverse, relu, needs):
    gx, gh = rnn_sequence_backward(*dense(cts), gates, h, w, b, out0, reverse=reverse, relu=relu)
    return (gx, gh, *weight_gradients(gx, h, out0, reverse, needs[2:]))


def rnn_samples(rng):
    for relu in (False, True):
        for operands, how in both_ways(rng, 1, False):
            yield operands, dict(how, relu=relu)


rnn_sequence = primitive(
    "rnn_sequence", meta=rnn_meta, ref=rnn_ref, vjp=rnn_vjp, samples=rnn_samples)


def rnn_back_meta(ct_out, ct_h, gates: Spec, h: Spec, w: Spec, b, out, *, reverse, relu):
    return tuple(spec(s.dtype, s.shape, None, s.device) for s in (gates, h))


def rnn_back(on, ct_out, ct_h, gates, h, w, b, out, *, reverse, relu):
    """From the operands of the forward pass alone, so that it differentiates again."""
    out, _ = rnn_steps(on, gates, h, w, b, reverse, relu)
    return rnn_steps_back(on, ct_out, ct_h, h, w, out, reverse, relu)


def rnn_remade(ct_out, ct_h, gates, h, w, b, out, **how):
    """The operands with results of the forward pass that belong to the others."""
    made = rnn_ref(gates, h, w, b, **how)
    return [ct_out, ct_h, gates, h, w, b, made[0]]


def rnn_back_samples(rng):
    for k, (operands, how) in enumerate(rnn_samples(rng)):
        out, h = rnn_ref(*operands, **how)
        cts = [None if j == k else rng.normal(size=x.shape) for j, x in enumerate((out, h))]
        yield (*cts, *operands, out), how


rnn_sequence_backward = primitive(
    "rnn_sequence_backward", meta=rnn_back_meta, ref=partial(rnn_back, Arrays), vjp="decompose",
    decompose=partial(rnn_back, Tensors), samples=rnn_back_samples, remade=rnn_remade)

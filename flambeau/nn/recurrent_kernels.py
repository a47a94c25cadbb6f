"""The loops of recurrent layers on ndarrays, forward and backward through time.

A layer is one direction over rows: step t owns `rows[t]`, a slice, whose sequences are the first
ones of the batch (see nn.recurrence). `gates` is the input's part, W_ih x + b_ih. A kernel leaves
what backward needs in itself. Gradients of the weights are one product over all rows at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Array = np.ndarray


def sigmoid_(x: Array) -> Array:
    """1 / (1 + exp(-x)) in place, as (1 + tanh(x / 2)) / 2, which cannot overflow."""
    x *= 0.5
    np.tanh(x, out=x)
    x *= 0.5
    x += 0.5
    return x


def columns(x: Array, n: int) -> list[Array]:
    """Views of n equal groups of columns."""
    width = x.shape[1] // n
    return [x[:, i * width : (i + 1) * width] for i in range(n)]


def row_slices(sizes: Iterable[int], reverse: bool) -> list[slice]:
    """The rows of each step, in the order in which the layer visits them."""
    slices, start = [], 0
    for size in sizes:
        slices.append(slice(start, start + size))
        start += size
    return slices[::-1] if reverse else slices


class Kernel:
    """One direction of one layer. `run` gives (rows, h) or (rows, h, c); `back` the gradients."""

    def __init__(
        self, rows: list[slice], w_hh: Array, b_hh: Array | None, w_hr: Array | None
    ) -> None:
        self.rows = rows
        self.w_hh = w_hh
        self.w_hh_t = np.ascontiguousarray(w_hh.T)  # BLAS is twice as fast on few rows
        self.b_hh = b_hh
        self.w_hr = w_hr
        self.h_before: Any = None

    def run(self, gates: Array, h: Array, c: Array | None) -> tuple[Array, ...]:
        """Outputs of all rows, and the last state of each sequence."""
        out = np.empty((len(gates), h.shape[1]), gates.dtype)
        self.h_before = np.empty_like(out)
        h = h.copy()
        self.begin(gates, h)
        for rows in self.rows:
            running = h[: rows.stop - rows.start]
            self.h_before[rows] = running
            running[...] = out[rows] = self.step(rows, gates[rows], running)
        return out, h

    def begin(self, gates: Array, h: Array) -> None:
        """Make room for what backward needs."""

    def step(self, rows: slice, gates: Array, h: Array) -> Array:
        """The new hidden state of these rows."""
        raise NotImplementedError

    def back(self, ct_out: Array, ct_h: Array, ct_c: Array | None) -> dict[str, Array | None]:
        """Cotangents of gates, h, c, w_hh, b_hh, w_hr from those of the results."""
        ct_h = ct_h.copy()
        ct_gates = np.empty((len(ct_out), self.w_hh.shape[0]), ct_out.dtype)
        self.begin_back(ct_gates, ct_c)
        for rows in reversed(self.rows):
            running = ct_h[: rows.stop - rows.start]
            running += ct_out[rows]
            through = self.step_back(rows, running, ct_gates[rows])
            np.matmul(self.ct_hidden(ct_gates)[rows], self.w_hh, out=running)
            if through is not None:
                running += through
        hidden = self.ct_hidden(ct_gates)
        return {
            "gates": ct_gates,
            "h": ct_h,
            "c": None,
            "w_hh": hidden.T @ self.h_before,
            "b_hh": None if self.b_hh is None else hidden.sum(0),
            "w_hr": None,
        }

    def begin_back(self, ct_gates: Array, ct_c: Array | None) -> None:
        """Make room for what only this cell's backward needs."""

    def step_back(self, rows: slice, ct: Array, ct_gates: Array) -> Array | None:
        """Fill ct_gates from the cotangent of h'; what reaches h past the gates, if anything."""
        raise NotImplementedError

    def ct_hidden(self, ct_gates: Array) -> Array:
        """The cotangent of W_hh h + b_hh: that of the gates where the two are only added."""
        return ct_gates


class SimpleKernel(Kernel):
    """h' = tanh or relu of (gates + W_hh h + b_hh)."""

    def __init__(self, activation: str, *args: Any) -> None:
        super().__init__(*args)
        self.activation = activation
        self.out: Any = None

    def begin(self, gates: Array, h: Array) -> None:
        self.out = gates.copy()
        if self.b_hh is not None:
            self.out += self.b_hh

    def step(self, rows: slice, gates: Array, h: Array) -> Array:
        out = self.out[rows]
        out += h @ self.w_hh_t
        return np.tanh(out, out=out) if self.activation == "tanh" else np.maximum(out, 0, out=out)

    def step_back(self, rows: slice, ct: Array, ct_gates: Array) -> None:
        out = self.out[rows]
        slope = 1 - np.square(out) if self.activation == "tanh" else out > 0
        np.multiply(ct, slope, out=ct_gates)


class GruKernel(Kernel):
    """h' = n + z (h - n), n = tanh(x_n + r h_n); gates r, z, n."""

    r: Array
    z: Array
    n: Array
    h_n: Array
    hidden: Array

    def begin(self, gates: Array, h: Array) -> None:
        shape = (len(gates), h.shape[1])
        self.r, self.z, self.n, self.h_n = (np.empty(shape, gates.dtype) for _ in range(4))

    def step(self, rows: slice, gates: Array, h: Array) -> Array:
        size = h.shape[1]
        hidden = h @ self.w_hh_t
        if self.b_hh is not None:
            hidden += self.b_hh
        self.h_n[rows] = hidden[:, 2 * size :]
        both = sigmoid_(gates[:, : 2 * size] + hidden[:, : 2 * size])
        r = self.r[rows] = both[:, :size]
        z = self.z[rows] = both[:, size:]
        n = self.n[rows] = np.tanh(gates[:, 2 * size :] + r * self.h_n[rows])
        return n + z * (h - n)

    def begin_back(self, ct_gates: Array, ct_c: Array | None) -> None:
        self.hidden = np.empty_like(ct_gates)

    def step_back(self, rows: slice, ct: Array, ct_gates: Array) -> Array:
        size = ct.shape[1]
        r, z, n = self.r[rows], self.z[rows], self.n[rows]
        ct_n = ct * (1 - z) * (1 - np.square(n))
        ct_gates[:, :size] = ct_n * self.h_n[rows] * r * (1 - r)
        ct_gates[:, size : 2 * size] = ct * (self.h_before[rows] - n) * z * (1 - z)
        ct_gates[:, 2 * size :] = ct_n
        hidden = self.hidden[rows]
        hidden[:, : 2 * size] = ct_gates[:, : 2 * size]
        np.multiply(ct_n, r, out=hidden[:, 2 * size :])
        return ct * z

    def ct_hidden(self, ct_gates: Array) -> Array:
        return self.hidden


class LstmKernel(Kernel):
    """c' = f c + i g, h' = o tanh(c'), projected by w_hr if there is one; gates i, f, g, o."""

    gates: Array
    c: Array
    c_before: Array
    tanh_c: Array
    unprojected: Array
    ct_projected: Array
    ct_c: Array

    def run(self, gates: Array, h: Array, c: Array | None) -> tuple[Array, ...]:
        assert c is not None
        self.c = c.copy()
        return (*super().run(gates, h, c), self.c)

    def begin(self, gates: Array, h: Array) -> None:
        self.gates = gates.copy()
        if self.b_hh is not None:
            self.gates += self.b_hh
        shape = (len(gates), self.c.shape[1])
        self.c_before, self.tanh_c = np.empty(shape, gates.dtype), np.empty(shape, gates.dtype)
        if self.w_hr is not None:
            self.unprojected = np.empty(shape, gates.dtype)

    def step(self, rows: slice, gates: Array, h: Array) -> Array:
        i, f, g, o = self.activated(rows, h)
        c = self.c[: len(h)]
        self.c_before[rows] = c
        c *= f
        c += i * g
        out = o * np.tanh(c, out=self.tanh_c[rows])
        if self.w_hr is None:
            return out
        self.unprojected[rows] = out
        return out @ self.w_hr.T

    def activated(self, rows: slice, h: Array) -> list[Array]:
        """The four gates of these rows; tanh of all at once, sigmoid being tanh of the half."""
        gates = self.gates[rows]
        gates += h @ self.w_hh_t
        i, f, g, o = columns(gates, 4)
        halves = gates[:, : 2 * i.shape[1]], o
        for part in halves:
            part *= 0.5
        np.tanh(gates, out=gates)
        for part in halves:
            part *= 0.5
            part += 0.5
        return [i, f, g, o]

    def begin_back(self, ct_gates: Array, ct_c: Array | None) -> None:
        self.ct_c = np.zeros_like(self.c) if ct_c is None else ct_c.copy()
        if self.w_hr is not None:
            self.ct_projected = np.empty((len(ct_gates), len(self.w_hr)), ct_gates.dtype)

    def step_back(self, rows: slice, ct: Array, ct_gates: Array) -> None:
        if self.w_hr is not None:
            self.ct_projected[rows] = ct
            ct = ct @ self.w_hr
        i, f, g, o = columns(self.gates[rows], 4)
        ct_i, ct_f, ct_g, ct_o = columns(ct_gates, 4)
        tanh_c = self.tanh_c[rows]
        np.multiply(ct * tanh_c, o - np.square(o), out=ct_o)
        ct_c = self.ct_c[: len(ct)]
        ct_c += ct * o * (1 - np.square(tanh_c))
        np.multiply(ct_c * g, i - np.square(i), out=ct_i)
        np.multiply(ct_c * self.c_before[rows], f - np.square(f), out=ct_f)
        np.multiply(ct_c * i, 1 - np.square(g), out=ct_g)
        ct_c *= f

    def back(self, ct_out: Array, ct_h: Array, ct_c: Array | None) -> dict[str, Array | None]:
        found = super().back(ct_out, ct_h, ct_c)
        found["c"] = self.ct_c
        if self.w_hr is not None:
            found["w_hr"] = self.ct_projected.T @ self.unprojected
        return found


def kernel(
    kind: str, rows: list[slice], w_hh: Array, b_hh: Array | None, w_hr: Array | None
) -> Kernel:
    """The kernel of a kind of cell: lstm, gru, tanh or relu."""
    if kind == "lstm":
        return LstmKernel(rows, w_hh, b_hh, w_hr)
    if kind == "gru":
        return GruKernel(rows, w_hh, b_hh, w_hr)
    return SimpleKernel(kind, rows, w_hh, b_hh, w_hr)

"""Recurrent networks and their cells."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from flambeau.core.errors import ArgumentError, OpError, ShapeError, ValueRangeError, complaint
from flambeau.nn import init, recurrence
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.nn.utils.rnn import PackedSequence
from flambeau.tensor import Tensor, empty, zeros

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
FUNCTIONS = {
    "LSTM": recurrence.lstm,
    "GRU": recurrence.gru,
    "RNN_TANH": recurrence.rnn_tanh,
    "RNN_RELU": recurrence.rnn_relu,
}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """tensor with its entries along dim in another order."""
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """Weights and argument checks of a recurrent network of several layers and directions.

    Weights weight_ih_l{k}, weight_hh_l{k}, bias_ih_l{k}, bias_hh_l{k}, weight_hr_l{k} (and the
    same with _reverse) are drawn in this order, uniform in +-1/sqrt(hidden_size).
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_sizes(mode, hidden_size, num_layers, proj_size)
        check_dropout(mode, dropout, num_layers)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes = self._shapes(layer)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self.reset_parameters()

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights of one direction of a layer, in order."""
        directions = 2 if self.bidirectional else 1
        out = self.proj_size or self.hidden_size
        rows = GATES[self.mode] * self.hidden_size
        features = self.input_size if layer == 0 else out * directions
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, features),
            "weight_hh": (rows, out),
        }
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights, a list for each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing to do: only cuDNN wants the weights in one block."""

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse inputs with another number of dimensions or features."""
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise ShapeError(
                complaint(
                    type(self).__name__,
                    f"input must have {expected} dimensions",
                    {"shape": tuple(input.shape)},
                )
            )
        if input.size(-1) != self.input_size:
            raise ShapeError(
                complaint(
                    type(self).__name__,
                    "input.size(-1) must be equal to input_size",
                    {"input_size": self.input_size, "shape": tuple(input.shape)},
                )
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """(layers * directions, batch, features of the output) of the hidden state."""
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        directions = 2 if self.bidirectional else 1
        return self.num_layers * directions, batch, self.proj_size or self.hidden_size

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """(layers * directions, batch, hidden_size) of the cell state."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_hidden_size(
        self, hx: Tensor, expected: tuple[int, int, int], what: str = "hidden"
    ) -> None:
        """Refuse a state of another shape."""
        if tuple(hx.shape) != expected:
            raise ShapeError(
                complaint(
                    type(self).__name__,
                    f"expected {what} size {expected}",
                    {"shape": tuple(hx.shape)},
                )
            )

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse inputs and states that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its batch in another order."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    def _start(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        """A state of zeros."""
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return zeros(shape, dtype=input.dtype, device=input.device)

    def _batched_state(self, hx: Any, batched: bool) -> Any:
        """A given state, with a batch dimension."""
        wanted = 3 if batched else 2
        for part in (hx,) if isinstance(hx, Tensor) else hx:
            if part.dim() != wanted:
                raise ShapeError(
                    complaint(
                        type(self).__name__,
                        f"for {'batched 3-D' if batched else 'unbatched 2-D'} input, the state "
                        f"must be {wanted}-D",
                        {"shape": tuple(part.shape)},
                    )
                )
        if batched:
            return hx
        return hx.unsqueeze(1) if isinstance(hx, Tensor) else tuple(h.unsqueeze(1) for h in hx)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """(output, last state); unbatched input (length, features) gives unbatched results."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueRangeError(
                complaint(
                    type(self).__name__,
                    "expected input to be 2D or 3D",
                    {"shape": tuple(input.shape)},
                )
            )
        batched = input.dim() == 3
        dim = 0 if self.batch_first else 1
        x = input if batched else input.unsqueeze(dim)
        state = self._start(x, None) if hx is None else self._batched_state(hx, batched)
        self.check_forward_args(x, state, None)
        output, state = self._run(
            x,
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        if batched:
            return output, state
        if isinstance(state, Tensor):
            return output.squeeze(dim), state.squeeze(1)
        return output.squeeze(dim), tuple(s.squeeze(1) for s in state)

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, sizes, order, back = packed
        state = self._start(data, sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, state, sizes)
        output, state = self._run(
            data,
            sizes,
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        result = PackedSequence(output, sizes, order, back)
        return result, self.permute_hidden(state, back)

    def _run(self, *args: Any) -> tuple[Tensor, Any]:
        return FUNCTIONS[self.mode](*args)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size != 0:
            parts.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        for name, usual in (("bias", True), ("batch_first", False)):
            if getattr(self, name) is not usual:
                parts.append(f"{name}={getattr(self, name)}")
        if self.dropout != 0:
            parts.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            parts.append(f"bidirectional={self.bidirectional}")
        return ", ".join(parts)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for derived in ("_flat_weights", "_flat_weights_names", "_flat_weight_refs"):
            state.pop(derived, None)
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)


def check_sizes(mode: str, hidden_size: Any, num_layers: int, proj_size: int) -> None:
    """Refuse sizes that make no network."""
    if mode not in GATES:
        raise ValueRangeError(
            complaint("RNNBase", f"mode must be one of {list(GATES)}", {"mode": repr(mode)})
        )
    if not isinstance(hidden_size, int):
        raise ArgumentError(
            complaint(mode, "hidden_size must be an int", {"hidden_size": type(hidden_size)})
        )
    for name, value in (("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueRangeError(
                complaint(mode, f"{name} must be greater than zero", {name: value})
            )
    if proj_size < 0:
        raise ValueRangeError(
            complaint(mode, "proj_size must not be negative", {"proj_size": proj_size})
        )
    if proj_size >= hidden_size:
        facts = {"proj_size": proj_size, "hidden_size": hidden_size}
        raise ValueRangeError(complaint(mode, "proj_size must be below hidden_size", facts))


def check_dropout(mode: str, dropout: Any, num_layers: int) -> None:
    """Refuse what is no probability; warn where it has no effect."""
    is_number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not is_number or not 0 <= dropout <= 1:
        raise ValueRangeError(
            complaint(mode, "dropout must be a number in [0, 1]", {"dropout": dropout})
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            f"{mode}: dropout acts between layers; dropout={dropout} does nothing with "
            f"num_layers={num_layers}",
            stacklevel=4,
        )


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu by nonlinearity."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueRangeError(
                complaint("RNN", "proj_size is for LSTM only", {"proj_size": kwargs["proj_size"]})
            )
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueRangeError(
                complaint(
                    "RNN",
                    "nonlinearity must be 'tanh' or 'relu'",
                    {"nonlinearity": repr(self.nonlinearity)},
                )
            )
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)


class GRU(RNNBase):
    """h' = (1 - z) n + z h with gates r, z and candidate n = tanh(x_n + r h_n)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueRangeError(
                complaint("GRU", "proj_size is for LSTM only", {"proj_size": kwargs["proj_size"]})
            )
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """c' = f c + i g, h' = o tanh(c') with gates i, f, g, o; the state is (h, c)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _start(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        cell = zeros(
            self.get_expected_cell_size(input, batch_sizes),
            dtype=input.dtype,
            device=input.device,
        )
        return super()._start(input, batch_sizes), cell

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        hidden_size = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], hidden_size, "hidden[0]")
        cell_size = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], cell_size, "hidden[1]")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def _run(self, *args: Any) -> tuple[Tensor, Any]:
        output, h, c = recurrence.lstm(*args)
        return output, (h, c)


class RNNCellBase(Module):
    """Weights of one step: weight_ih, weight_hh, bias_ih, bias_hh."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        kind = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(empty((rows, input_size), **kind))
        self.weight_hh = Parameter(empty((rows, hidden_size), **kind))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, **kind)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights again, uniform in +-1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _weights(self) -> tuple:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check(self, name: str, value: Tensor) -> None:
        if value.dim() not in (1, 2):
            raise ValueRangeError(
                complaint(
                    type(self).__name__,
                    f"expected {name} to be 1D or 2D",
                    {"shape": tuple(value.shape)},
                )
            )

    def _batched(self, input: Tensor, *states: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """The input and states as matrices of rows; states not given are zeros."""
        self._check("input", input)
        if input.size(-1) != self.input_size:
            raise ShapeError(
                complaint(
                    type(self).__name__,
                    "input.size(-1) must be equal to input_size",
                    {"input_size": self.input_size, "shape": tuple(input.shape)},
                )
            )
        x = input if input.dim() == 2 else input.unsqueeze(0)
        rows = []
        for state in states:
            if state is None:
                shape = (x.size(0), self.hidden_size)
                rows.append(zeros(shape, dtype=x.dtype, device=x.device))
                continue
            self._check("hx", state)
            matrix = state if state.dim() == 2 else state.unsqueeze(0)
            if tuple(matrix.shape) != (x.size(0), self.hidden_size):
                raise ShapeError(
                    complaint(
                        type(self).__name__,
                        f"expected hidden size {(x.size(0), self.hidden_size)}",
                        {"shape": tuple(state.shape)},
                    )
                )
            rows.append(matrix)
        return x, rows

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu by nonlinearity."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,) = self._batched(input, hx)
        functions = {"tanh": recurrence.rnn_tanh_cell, "relu": recurrence.rnn_relu_cell}
        if self.nonlinearity not in functions:
            raise OpError(
                complaint(
                    "RNNCell",
                    "nonlinearity must be 'tanh' or 'relu'",
                    {"nonlinearity": repr(self.nonlinearity)},
                )
            )
        result = functions[self.nonlinearity](x, h, *self._weights())
        return result if input.dim() == 2 else result.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (h', c') from x and (h, c)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        x, state = self._batched(input, *((None, None) if hx is None else hx))
        h, c = recurrence.lstm_cell(x, state, *self._weights())
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a GRU: h' from x and h."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        x, (h,) = self._batched(input, hx)
        result = recurrence.gru_cell(x, h, *self._weights())
        return result if input.dim() == 2 else result.squeeze(0)

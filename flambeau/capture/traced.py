"""Traced tensors: ordinary `Tensor` objects without data, whose operations are recorded.

A traced tensor has a spec and a storage, so views, versions and autograd work on it as on any
other; in place of an array it has `TRACED`, which ends the capture when somebody asks for data. The
recorder takes the place of the executor below autograd and turns every primitive into an equation.
"""

from __future__ import annotations

from typing import Any

from flambeau.autograd.node import Node
from flambeau.capture.breaks import GraphBreak
from flambeau.core import context
from flambeau.core.errors import AutogradError, complaint
from flambeau.core.spec import WEAK, Spec
from flambeau.eager.executor import EagerExecutor
from flambeau.graph.graph import Equation, Graph, Value
from flambeau.ops.casts import copy
from flambeau.tensor.storage import Storage
from flambeau.tensor.tensor import Tensor, make, make_view


class _Flags:
    writeable = True
    c_contiguous = True


class _Traced:
    """Stands where the array would be."""

    flags = _Flags()

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise GraphBreak(
            "the value of a tensor is needed while its program is being captured",
            "Keep the decision in tensor operations (torch.where), or take the value outside.",
        )

    def __getattr__(self, name: str) -> Any:
        return self._refuse()

    __array__ = __int__ = __float__ = __bool__ = __index__ = __len__ = __iter__ = _refuse
    __getitem__ = __setitem__ = __add__ = __radd__ = _refuse


TRACED: Any = _Traced()


class TracedStorage(Storage):
    """Memory that exists only in the graph; `place` is shared by `.data` aliases of it."""

    __slots__ = ("place",)

    def __init__(self, nbytes: int, place: object | None = None):
        super().__init__(None, nbytes)
        self.place = place or object()

    def alias(self) -> TracedStorage:
        return TracedStorage(self.nbytes, self.place)


def traced(spec: Spec, storage: TracedStorage | None = None, cls: type = Tensor) -> Tensor:
    """A new traced tensor."""
    t = make(TRACED, spec, cls)
    t._storage = storage or TracedStorage(spec.nbytes)
    return t


class OutsideNode(Node):
    """The history of an input that was recorded before the frame."""

    __slots__ = ()

    def gradients(self, cts: list) -> tuple:
        raise GraphBreak(
            "backward reaches a graph that was recorded outside of the captured function",
            "Call backward() outside, or compute the whole loss inside.",
        )


class SpentNode(Node):
    """The history of a result whose backward pass has run inside of the captured program."""

    __slots__ = ()

    def gradients(self, cts: list) -> tuple:
        raise AutogradError(
            complaint(
                "backward",
                "the saved values of this graph have been freed by an earlier backward",
                dict(node="captured program"),
                "Pass retain_graph=True to the earlier call.",
            )
        )


LIVE = -1
"""Random numbers come from the generator, not from an earlier draw."""


class Recorder:
    """Executes primitives by writing them down."""

    def __init__(self) -> None:
        self.inputs: list[Value] = []
        self.equations: list[Equation] = []
        self.constants: dict[Value, Tensor] = {}
        self.values: dict[int, Value] = {}
        self.kept: list[Any] = []
        self.places: dict[tuple, list[Tensor]] = {}
        self.eager = EagerExecutor()
        self.scalars: Any = None
        self.line = ""
        self.draws: list[tuple[Any, list[Value], bool]] | None = None
        self.drawing: int = LIVE

    # Values ----------------------------------------------------------------------------------

    def define(self, t: Tensor, value: Value | None = None) -> Value:
        """Make a tensor object known under a value."""
        value = value or Value(t._spec)
        self.values[id(t)] = value
        self.kept.append(t)
        if isinstance(t._storage, TracedStorage):
            self.places.setdefault(self._place(t), []).append(t)
        return value

    def _place(self, t: Tensor) -> tuple:
        return (id(t._storage.place), t._offset, id(t._spec))

    def value_of(self, t: Tensor) -> Value:
        """The value of any tensor that an operation meets."""
        found = self.values.get(id(t))
        if found is not None and found.spec is t._spec:
            return found
        if not isinstance(t._storage, TracedStorage):
            if t._array is TRACED or t._array is None and t.device.type != "meta":
                raise GraphBreak("a traced tensor has lost its memory")
            return self._constant(t)
        for other in self.places.get(self._place(t), ()):
            if other._node is t._node and other._output_nr == t._output_nr:
                return self.define(t, self.values[id(other)])
        for other in self.places.get(self._place(t), ()):
            return self._alias(t, self.values[id(other)])
        raise GraphBreak("a view of a traced tensor was made without an operation")

    def _alias(self, t: Tensor, source: Value) -> Value:
        if t._node is not None:
            return self.define(t, source)
        value = self.define(t)
        self.equations.append(Equation("alias", (source,), {}, (value,), line=self.line))
        return value

    def _constant(self, t: Tensor) -> Value:
        value = self.define(t)
        self.constants[value] = t
        return value

    def is_traced(self, t: Tensor) -> bool:
        return t._array is TRACED

    # Executing -------------------------------------------------------------------------------

    def execute(self, primitive: Any, args: tuple, params: dict) -> Any:
        specs = [self._spec(a) for a in args]
        if any(s is not None and s.device.type == "meta" for s in specs):
            return self.eager.execute(primitive, args, params)
        inputs = self._inputs(args)
        if primitive.kind == "view":
            return self._view(primitive, args[0], specs, inputs, params)
        if primitive.kind == "random" and self._drawn_again(params):
            return self._draw(primitive)
        result = primitive.meta(*specs, **params)
        several = isinstance(result, tuple)
        outs = tuple(traced(s) for s in (result if several else (result,)))
        values = [self.define(t) for t in outs]
        self._append(primitive, inputs, params, values, several=several)
        if primitive.kind == "random":
            self._keep_draw(primitive, values, several)
        return outs if several else outs[0]

    def _inputs(self, args: tuple) -> list[Any]:
        return [self.value_of(a) if isinstance(a, Tensor) else self._number(a) for a in args]

    def _number(self, value: Any) -> Any:
        """Symbolic numbers as values of the graph."""
        if isinstance(value, (int, float)) and self.scalars.is_symbolic(value):
            return self.scalars.value_of(value)
        if isinstance(value, float) and value != value and self.scalars.symbols:
            raise GraphBreak("a number may have been read where it is not known")
        if isinstance(value, tuple) and any(isinstance(v, (float, int)) for v in value):
            made = tuple(map(self._number, value))
            return made if any(a is not b for a, b in zip(made, value)) else value
        return value

    def _append(self, op: Any, inputs: list, params: dict, outputs: list, **rest: Any) -> None:
        mode = context.state.grad_enabled
        params = {k: self._number(v) for k, v in params.items()}
        self.equations.append(
            Equation(op, inputs, params, outputs, grad_mode=mode, line=self.line, **rest)
        )

    def _view(self, primitive: Any, x: Tensor, specs: list, inputs: list, params: dict) -> Tensor:
        of, delta = primitive.meta(*specs, **params)
        if not isinstance(x._storage, TracedStorage):
            x = self.adopt(x)
            inputs = [self.value_of(x), *inputs[1:]]
        scale = specs[0].itemsize // of.itemsize or 1
        shrink = of.itemsize // specs[0].itemsize or 1
        out = make_view(x, of, x._offset * scale // shrink + delta)
        out._array = TRACED
        self._append(primitive, inputs, params, [self.define(out)])
        return out

    def execute_inplace(self, primitive: Any, target: Tensor, args: tuple, params: dict) -> None:
        if not self.is_traced(target):
            if target.device.type == "meta":
                return
            raise GraphBreak("a tensor made from data is written in place", "Clone it first.")
        inputs = self._inputs(args)
        if primitive.write is None:
            primitive.meta(*[self._spec(a) for a in args], **params)
        value = self.value_of(target)
        if primitive.kind == "random" and self._drawn_again(params):
            again = self.value_of(self._draw(primitive))
            self._append(copy, [again], {}, [], target=value)
            return
        self._append(primitive, inputs, params, [], target=value)
        if primitive.kind == "random":
            self._keep_draw(primitive, [value], False)

    # Drawing the same numbers again ----------------------------------------------------------

    def mark(self) -> int:
        """The place of the next draw; from now on copies of what is drawn are kept."""
        if self.draws is None:
            self.draws = []
        return len(self.draws)

    def _keep_draw(self, primitive: Any, values: list[Value], several: bool) -> None:
        if self.draws is not None:
            kept = [Value(v.spec.preserved()) for v in values]
            for value, made in zip(values, kept):
                self.equations.append(Equation(copy, (value,), {}, (made,), line=self.line))
            self.draws.append((primitive, kept, several))

    def _drawn_again(self, params: dict) -> bool:
        return self.drawing != LIVE and params.get("generator") is None

    def _draw(self, primitive: Any) -> Any:
        """Copies of the numbers that were drawn at the place that is up."""
        assert self.draws is not None
        if self.drawing >= len(self.draws) or self.draws[self.drawing][0] is not primitive:
            raise GraphBreak("a function that runs again draws other random numbers")
        _, kept, several = self.draws[self.drawing]
        self.drawing += 1
        outs = []
        for value in kept:
            made = traced(value.spec)
            out = self.define(made)
            self.equations.append(Equation(copy, (value,), {}, (out,), line=self.line))
            outs.append(made)
        return tuple(outs) if several else outs[0]

    def _spec(self, operand: Any) -> Spec | None:
        if isinstance(operand, Tensor):
            return operand._spec
        if operand is None:
            return None
        found = WEAK.get(type(operand))
        if found is None:
            kinds = (k for k in (bool, int, float, complex) if isinstance(operand, k))
            found = WEAK[next(kinds)]
        return found

    def adopt(self, t: Tensor) -> Tensor:
        """A traced copy of a tensor that was made from data while capturing."""
        value = self._constant(t)
        made = traced(t._spec.preserved(), cls=type(t))
        made._requires_grad = t._requires_grad
        out = self.define(made)
        self.equations.append(Equation(copy, (value,), {}, (out,), line=self.line))
        return made

    def graph(self, outputs: list[Value]) -> Graph:
        return Graph(self.inputs, self.equations, outputs, self.constants)

"""A product with its followers as one kernel: the followers as the tail of the product's tiles."""

from __future__ import annotations

from typing import Any

from flambeau.compile.native.calls import REFUSALS, Call, Work, single
from flambeau.compile.native.followers import Followed, layout
from flambeau.core import logs
from flambeau.eager.native import nests
from flambeau.eager.native.providers import tailed_call
from flambeau.graph.graph import Equation, Value
from flambeau.loops.api import broadcast
from flambeau.loops.expr import iterator
from flambeau.loops.nest import Buf, Nest, Store


def keeps_bias(product: Equation) -> bool:
    """Does the product itself add what bias it has? Where results are rounded, it comes first."""
    return product.name != "linear" or product.outputs[0].spec.dtype.itemsize < 4


class Element:
    """A value of the chain at the place where the nest is."""

    __slots__ = ("dtype", "expression", "shape")

    def __init__(self, expression: Any, shape: tuple, dtype: Any):
        self.expression, self.shape, self.dtype = expression, shape, dtype

    def __getitem__(self, place: tuple) -> Any:
        return self.expression


class TailNest:
    """The nest of a Followed, over the product's rows and columns."""

    def __init__(self, part: Followed):
        out = part.product.outputs[0].spec
        self.shape = (out.numel // out.shape[-1], out.shape[-1])
        self.iters = tuple(iterator(f"i{d}", n) for d, n in enumerate(self.shape))
        self.names = part.names
        self.pointers: list[Value] = []
        self.known: dict[Value, Any] = {}
        product = part.product.outputs[0]
        raw = Buf("product", self.shape, None, out.dtype)[self.iters]
        bias = None if keeps_bias(part.product) else part.product.inputs[2]
        self.put(product, raw if bias is None else raw + broadcast(self.operand(bias), self.iters))
        for equation in part.followers:
            self.put(equation.outputs[0], self.computed(equation))
        first, *others = part.stored
        targets = [Buf("c", self.shape, None, out.dtype), *map(self.buffer, others)]
        self.nest = Nest(self.iters, tuple(
            Store(target, self.iters, self.known[value].expression)
            for target, value in zip(targets, part.stored)))

    def put(self, value: Value, expression: Any) -> None:
        self.known[value] = Element(expression, self.shape, value.spec.dtype)

    def buffer(self, value: Value) -> Buf:
        shape = layout(value.spec, *self.shape)
        assert shape is not None
        self.pointers.append(value)
        return Buf(f"p{len(self.pointers) - 1}", shape, None, value.spec.dtype)

    def operand(self, value: Any) -> Any:
        if not isinstance(value, Value):
            return value
        value = self.names.get(value, value)
        if value not in self.known:
            self.known[value] = self.buffer(value)
        return self.known[value]

    def computed(self, equation: Equation) -> Any:
        operands = [self.operand(v) for v in equation.inputs]
        out = Buf("out", self.shape, None, equation.outputs[0].spec.dtype)
        made = nests.written(equation.op, equation.input_specs(), operands, equation.params, (out,))
        return made.stores[0].value

    @property
    def buffers(self) -> tuple[str, ...]:
        return tuple(f"p{k}" for k in range(len(self.pointers)))


def one_kernel(part: Followed) -> list[Work]:
    """The kernel of the product and all that follows, or what each equation has."""
    product = part.product
    try:
        made = TailNest(part)
        specs = product.input_specs()
        if not keeps_bias(product):
            specs[2] = None
        out = product.outputs[0].spec
        found = tailed_call(product.op, specs, dict(product.params), out, made.nest, made.buffers)
    except REFUSALS as error:
        logs.show("breaks", f"{product.name} and what follows run one by one: {error}")
        found = None
    if found is None:
        return [single(e) for e in part.equations]
    tensors = [product.inputs[k] if k >= 0 else part.stored[0] for k in found.arguments]
    return [Call(found.entry, (*tensors, *made.pointers), part.stored, equations=part.equations)]

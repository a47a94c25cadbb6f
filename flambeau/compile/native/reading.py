"""Views inside of a segment: an index map onto the value that is viewed."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.core.dtype import dtype as DType
from flambeau.graph.graph import Equation


class Reader:
    """What a lowering needs of an operand: a shape, a dtype, elements by index."""

    __slots__ = ("dtype", "place", "shape", "source")

    def __init__(self, source, shape: tuple[int, ...], dtype: DType, place: Callable):
        self.source, self.shape, self.dtype, self.place = source, shape, dtype, place

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        return self.source[self.place(index)]


def without_ones(shape) -> list[int]:
    return [n for n in shape if n != 1]


def is_readable(equation: Equation) -> bool:
    """Views whose elements have a plain index in the viewed value."""
    name = equation.name
    if equation.open_params:
        return False
    if name in ("alias", "expand", "permute", "slice", "select"):
        return True
    if name == "view":
        return without_ones(equation.inputs[0].spec.shape) == without_ones(
            equation.params["shape"])
    return False


def reader(equation: Equation, source) -> Reader:
    """The output of a readable view of `source`."""
    out, params = equation.outputs[0].spec, equation.params
    have = tuple(equation.inputs[0].spec.shape)
    place = {"alias": same, "expand": expanded, "permute": permuted, "slice": sliced,
             "select": selected, "view": squeezed}[equation.name]
    return Reader(source, tuple(out.shape), out.dtype, place(have, tuple(out.shape), params))


def same(have: tuple, shape: tuple, params) -> Callable:
    return lambda i: i


def expanded(have: tuple, shape: tuple, params) -> Callable:
    lead = len(shape) - len(have)
    return lambda i: tuple(0 if n == 1 else i[d + lead] for d, n in enumerate(have))


def permuted(have: tuple, shape: tuple, params) -> Callable:
    dims = params["dims"]
    order = sorted(range(len(dims)), key=dims.__getitem__)
    return lambda i: tuple(i[d] for d in order)


def sliced(have: tuple, shape: tuple, params) -> Callable:
    dim, start, step = params["dim"], params["start"], params["step"]
    return lambda i: tuple(k * step + start if d == dim else k for d, k in enumerate(i))


def selected(have: tuple, shape: tuple, params) -> Callable:
    dim, at = params["dim"], params["index"]
    return lambda i: (*i[:dim], at, *i[dim:])


def squeezed(have: tuple, shape: tuple, params) -> Callable:
    """Only dimensions of size one come or go."""
    kept = [d for d, n in enumerate(shape) if n != 1]

    def place(i):
        rest = iter(kept)
        return tuple(0 if n == 1 else i[next(rest)] for n in have)

    return place

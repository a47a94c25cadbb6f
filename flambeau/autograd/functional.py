"""`torch.autograd.functional`: derivatives of a function at given inputs, without transforms.

Each takes `func`, its inputs (a tensor or a tuple) and options. With `create_graph` the results
can be differentiated again; with `strict` an input that does not influence an output is an error
instead of a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.autograd.gradients import grad
from flambeau.autograd.modes import enable_grad
from flambeau.core.errors import ArgumentError, OpError, complaint
from flambeau.tensor import Tensor, eye, stack, zeros_like

Tensors = tuple[Tensor, ...]


def _tuple(value: Any, name: str, what: str) -> tuple[bool, Tensors]:
    """(was it a tuple, as a tuple of tensors)."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (tuple(value) if isinstance(value, list) else (value,))
    for i, x in enumerate(values):
        if not isinstance(x, Tensor):
            facts = {f"{what}[{i}]": type(x).__name__}
            raise ArgumentError(complaint(name, f"{what} must be tensors", facts))
    return isinstance(value, tuple | list), values


def _recorded(inputs: Tensors, create_graph: bool) -> Tensors:
    """Inputs to differentiate with respect to: linked to the caller's graph, or fresh leaves."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else _leaf(x) for x in inputs)
    return tuple(_leaf(x) for x in inputs)


def _leaf(x: Tensor) -> Tensor:
    return x.detach().requires_grad_()


def _results(values: Sequence[Tensor], create_graph: bool) -> Tensors:
    return tuple(values) if create_graph else tuple(x.detach() for x in values)


def _shaped(is_tuple: bool, values: Tensors) -> Any:
    return values if is_tuple else values[0]


def _check_recorded(outputs: Tensors, name: str, strict: bool) -> None:
    if strict and not all(out.requires_grad for out in outputs):
        must = "with strict, every output must depend on the inputs"
        raise OpError(complaint(name, must, {}, "Pass strict=False for zeros."))


def _gradients(
    outputs: Tensors, inputs: Tensors, cotangents: Any, create_graph: bool, name: str, strict: bool
) -> Tensors:
    """Gradients by input, zeros for those without influence (an error under strict)."""
    kept = [i for i, out in enumerate(outputs) if out.requires_grad]
    found: Sequence[Tensor | None] = [None] * len(inputs)
    if kept:
        found = grad(
            [outputs[i] for i in kept],
            inputs,
            None if cotangents is None else [cotangents[i] for i in kept],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    missing = [i for i, g in enumerate(found) if g is None]
    if strict and missing:
        must = "with strict, every input must influence the outputs"
        raise OpError(complaint(name, must, {"inputs": missing}, "Pass strict=False for zeros."))
    return tuple(zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True))


def _check_vector(v: Any, like: Tensors, is_tuple: bool, name: str) -> Tensors:
    """The vector of a product, which must match `like`; ones where one scalar is expected."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            must = "v may be left out for a single scalar only"
            raise OpError(complaint(name, must, {"shapes": [tuple(x.shape) for x in like]}))
        return (like[0].detach().new_ones(like[0].shape),)
    _, vs = _tuple(v, name, "v")
    mine = [tuple(x.shape) for x in vs]
    theirs = [tuple(x.shape) for x in like]
    if mine != theirs:
        must = "v must have the shapes that it is multiplied with"
        raise OpError(complaint(name, must, {"v": mine, "expected": theirs}))
    return vs


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(inputs), v^T J)."""
    with enable_grad():
        is_tuple, inputs = _tuple(inputs, "vjp", "inputs")
        xs = _recorded(inputs, create_graph)
        out_tuple, outs = _tuple(func(*xs), "vjp", "outputs")
        _check_recorded(outs, "vjp", strict)
        vs = _check_vector(v, outs, out_tuple, "vjp")
        found = _gradients(outs, xs, vs, create_graph, "vjp", strict)
    return _shaped(out_tuple, _results(outs, create_graph)), _shaped(
        is_tuple, _results(found, create_graph)
    )


def jvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(inputs), J v), by differentiating u -> u^T J."""
    with enable_grad():
        _, inputs = _tuple(inputs, "jvp", "inputs")
        vs = _check_vector(v, inputs, True, "jvp")
        xs = _recorded(inputs, create_graph)
        out_tuple, outs = _tuple(func(*xs), "jvp", "outputs")
        _check_recorded(outs, "jvp", strict)
        us = tuple(zeros_like(out).requires_grad_() for out in outs)
        pulled = _gradients(outs, xs, us, True, "jvp", strict)
        found = _gradients(pulled, us, vs, create_graph, "jvp", False)
    return _shaped(out_tuple, _results(outs, create_graph)), _shaped(
        out_tuple, _results(found, create_graph)
    )


def _scalar(func: Callable, xs: Tensors, name: str) -> Tensor:
    _, outs = _tuple(func(*xs), name, "outputs")
    if len(outs) != 1 or outs[0].numel() != 1:
        facts = {"shapes": [tuple(x.shape) for x in outs]}
        raise OpError(complaint(name, "func must return one scalar", facts))
    return outs[0]


def vhp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(inputs), v^T H) for a scalar function."""
    with enable_grad():
        is_tuple, inputs = _tuple(inputs, "vhp", "inputs")
        vs = _check_vector(v, inputs, is_tuple, "vhp")
        xs = _recorded(inputs, create_graph)
        out = _scalar(func, xs, "vhp")
        _check_recorded((out,), "vhp", strict)
        first = _gradients((out,), xs, None, True, "vhp", strict)
        found = _gradients(first, xs, vs, create_graph, "vhp", strict)
    return _results((out,), create_graph)[0], _shaped(is_tuple, _results(found, create_graph))


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(inputs), H v) for a scalar function; `vhp` is cheaper, and equal for symmetric H."""
    with enable_grad():
        is_tuple, inputs = _tuple(inputs, "hvp", "inputs")
        vs = _check_vector(v, inputs, is_tuple, "hvp")
        xs = _recorded(inputs, create_graph)
        out = _scalar(func, xs, "hvp")
        _check_recorded((out,), "hvp", strict)
        first = _gradients((out,), xs, None, True, "hvp", strict)
        us = tuple(zeros_like(x).requires_grad_() for x in xs)
        pulled = _gradients(first, xs, us, True, "hvp", strict)
        found = _gradients(pulled, us, vs, create_graph, "hvp", False)
    return _results((out,), create_graph)[0], _shaped(is_tuple, _results(found, create_graph))


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """J[i][j] = d output_i / d input_j, of shape (*output_i.shape, *input_j.shape).

    strategy "forward-mode" takes one product a input element instead of one an output element;
    vectorize is accepted and changes nothing in the result.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        must, facts = "strategy must be 'reverse-mode' or 'forward-mode'", {"strategy": strategy}
        raise AssertionError(complaint("jacobian", must, facts))
    with enable_grad():
        is_tuple, inputs = _tuple(inputs, "jacobian", "inputs")
        xs = _recorded(inputs, create_graph)
        out_tuple, outs = _tuple(func(*xs), "jacobian", "outputs")
        _check_recorded(outs, "jacobian", strict)
        make = _rows if strategy == "reverse-mode" else _columns
        blocks = [make(out, xs, create_graph, strict) for out in outs]
    found = tuple(_shaped(is_tuple, _results(row, create_graph)) for row in blocks)
    return _shaped(out_tuple, found)


def _basis(x: Tensor) -> list[Tensor]:
    """One tensor per element of `x`: one there, zero elsewhere."""
    n = x.numel()
    rows = eye(n, dtype=x.dtype, device=x.device).reshape((n, *x.shape))
    return [rows[i] for i in range(n)]


def _rows(out: Tensor, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    rows = [_gradients((out,), xs, (e,), create_graph, "jacobian", strict) for e in _basis(out)]
    if not rows:
        return tuple(x.new_zeros((*out.shape, *x.shape)) for x in xs)
    return tuple(
        stack(column).reshape((*out.shape, *x.shape))
        for column, x in zip(zip(*rows, strict=True), xs, strict=True)
    )


def _columns(out: Tensor, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    u = zeros_like(out).requires_grad_()
    pulled = _gradients((out,), xs, (u,), True, "jacobian", strict)
    blocks = []
    for x, g in zip(xs, pulled, strict=True):
        columns = [
            _gradients((g,), (u,), (e,), create_graph, "jacobian", False)[0] for e in _basis(x)
        ]
        block = stack(columns, -1) if columns else out.new_zeros((*out.shape, 0))
        blocks.append(block.reshape((*out.shape, *x.shape)))
    return tuple(blocks)


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """H[i][j] = d2 func / d input_i d input_j for a scalar function."""
    is_tuple, inputs = _tuple(inputs, "hessian", "inputs")

    def gradient(*xs: Tensor) -> Tensors:
        xs = tuple(x if x.requires_grad else _leaf(x) for x in xs)
        out = _scalar(func, xs, "hessian")
        return _gradients((out,), xs, None, True, "hessian", strict)

    found = jacobian(
        gradient, inputs, create_graph, strict, vectorize, strategy=outer_jacobian_strategy
    )
    return found if is_tuple else found[0][0]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

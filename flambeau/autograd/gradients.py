"""`backward` and `grad`: the user's ways to start the engine."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.autograd.engine import fitted, run_backward
from flambeau.autograd.node import gradient_edge
from flambeau.core.errors import ArgumentError, AutogradError, complaint
from flambeau.ops.creation import like
from flambeau.tensor.tensor import Tensor


def as_tuple(x) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) or hasattr(x, "__next__") else (x,)


def initial_cotangents(outputs: Sequence[Tensor], given) -> list[Tensor]:
    """The user's cotangents, checked; ones for scalar outputs."""
    given = [None] * len(outputs) if given is None else list(as_tuple(given))
    if len(given) != len(outputs):
        raise AutogradError(complaint("backward", "one gradient per tensor is needed",
                                      dict(tensors=len(outputs), gradients=len(given))))
    return [_initial(out, ct) for out, ct in zip(outputs, given)]


def _initial(out: Tensor, ct) -> Tensor:
    s = out._spec
    if ct is None:
        if s.numel != 1 and out.requires_grad:
            raise AutogradError(complaint(
                "backward", "grad can be implicitly created only for scalar outputs",
                dict(shape=list(s.shape)),
                "Reduce it, for example with .sum(), or pass gradient=."))
        if s.dtype.is_complex:
            raise AutogradError(complaint(
                "backward", "grad can be implicitly created only for real scalar outputs",
                dict(dtype=s.dtype), "Pass gradient=."))
        return like(s, 1)
    if not isinstance(ct, Tensor):
        raise ArgumentError(complaint("backward", "gradients must be Tensors or None",
                                      dict(gradient=type(ct).__name__)))
    if ct.shape != s.shape:
        raise AutogradError(complaint(
            "backward", "Mismatch in shape: the gradient must have the shape of its tensor",
            dict(tensor=list(s.shape), gradient=list(ct.shape))))
    return fitted(ct, s) if ct.dtype.is_complex == s.dtype.is_complex else ct


def backward(tensors, grad_tensors=None, retain_graph: bool | None = None,
             create_graph: bool = False, grad_variables=None, inputs=None) -> None:
    """Accumulate gradients of `tensors` into the `.grad` of leaves (or of `inputs` alone)."""
    tensors = as_tuple(tensors)
    cts = initial_cotangents(tensors, grad_variables if grad_tensors is None else grad_tensors)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        run_backward(tensors, cts, keep, create_graph)
        return
    inputs = as_tuple(inputs)
    if not inputs:
        raise AutogradError(complaint("backward", "'inputs' argument to backward cannot be empty"))
    from flambeau.autograd.engine import accumulate

    for t, g in zip(inputs, grad(tensors, inputs, cts, keep, create_graph, allow_unused=True)):
        if g is not None:
            accumulate(t, g, create_graph)


def grad(outputs, inputs, grad_outputs=None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple:
    """Gradients of the sum of `outputs` with respect to `inputs`, without touching `.grad`."""
    outputs, inputs = as_tuple(outputs), as_tuple(inputs)
    if is_grads_batched:
        return _batched(outputs, inputs, as_tuple(grad_outputs), create_graph, allow_unused)
    if allow_unused is None:
        allow_unused = materialize_grads
    cts = initial_cotangents(outputs, grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    edges = [gradient_edge(t) if isinstance(t, Tensor) else tuple(t) for t in inputs]
    for t, e in zip(inputs, edges):
        if e is None:
            raise AutogradError(complaint(
                "grad", "One of the differentiated Tensors does not require grad",
                dict(shape=list(t.shape)), "Call requires_grad_() on it before the forward pass."))
    run = run_backward(outputs, cts, keep, create_graph, edges)
    result = [run.found.get((id(e[0]), e[1])) for e in edges]
    if None in [r if r is None else 0 for r in result] and not allow_unused:
        raise AutogradError(complaint(
            "grad", "One of the differentiated Tensors appears to not have been used in the graph",
            None, "Set allow_unused=True if this is the desired behavior."))
    if materialize_grads:
        result = [like(t, 0) if r is None else r for t, r in zip(inputs, result)]
    return tuple(r if r is None or create_graph else r.detach() for r in result)


def _batched(outputs, inputs, cts, create_graph: bool, allow_unused) -> tuple:
    """One backward pass per slice of the cotangents' leading dimension."""
    rows = [grad(outputs, inputs, tuple(ct[i] for ct in cts), True, create_graph,
                 allow_unused=allow_unused) for i in range(len(cts[0]))]
    from flambeau.ops.joining import stack_rows

    return tuple(None if column[0] is None else stack_rows(column) for column in zip(*rows))

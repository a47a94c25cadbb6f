"""`grad`, `vjp`, `jvp`, `linearize`: derivatives as functions of functions, on the one tape.

Each transform differentiates with respect to fresh copies of its arguments, so that levels nest:
an inner copy is linked to the outer level's tensor and nothing else. A result keeps a graph only
when something outside of the transform (an outer level, a parameter) can be reached through it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.autograd import enable_grad, is_grad_enabled
from flambeau.autograd import grad as tape_gradients
from flambeau.core.errors import ArgumentError, OpError, ValueRangeError, complaint
from flambeau.core.pytree import flatten, unflatten
from flambeau.func.levels import Stripped, lifted, stripped
from flambeau.tensor import Tensor, zeros_like


class Recording:
    """Differentiable copies of some tensors, and what was computed from them.

    leaves    the copies as the function sees them
    outside   whether results may be differentiated from outside this transform
    """

    def __init__(self, values: Sequence[Tensor]) -> None:
        self.may_link = is_grad_enabled()
        self.copies = [lifted(x, _copy) for x in values]
        self.leaves = [made.tensor for made in self.copies]

    def gradients(
        self,
        outs: Sequence[Tensor],
        cotangents: Sequence[Tensor],
        keep: bool,
        create: bool | None = None,
    ) -> list[Tensor]:
        """Cotangents of the copies, zeros where an output does not depend on one.

        create: whether they are recorded in turn; by default when that can matter outside.
        """
        pairs = [
            (stripped(out, ct), out)
            for out, ct in zip(outs, cotangents, strict=True)
            if out.requires_grad
        ]
        if create is None:
            create = self.linked([out for _, out in pairs], cotangents)
        found: Sequence[Tensor | None] = [None] * len(self.copies)
        if pairs:
            found = tape_gradients(
                [pair.value for pair, _ in pairs],
                [made.value for made in self.copies],
                [pair.cotangent for pair, _ in pairs],
                retain_graph=keep or create,
                create_graph=create,
                allow_unused=True,
            )
        return [
            zeros_like(made.tensor) if g is None else made.dressed(g)
            for g, made in zip(found, self.copies, strict=True)
        ]

    def linked(self, outs: Sequence[Tensor], vectors: Sequence[Tensor]) -> bool:
        """Whether products of the derivatives of `outs` with `vectors` matter outside."""
        return self.may_link and (
            self.outside(outs) or any(vector.requires_grad for vector in vectors)
        )

    def outside(self, outs: Sequence[Tensor]) -> bool:
        """Whether the graph of `outs` reaches a leaf that is none of the copies."""
        mine = {id(made.value) for made in self.copies if made.value.grad_fn is None}
        edges = {id(made.value.grad_fn) for made in self.copies if made.value.grad_fn is not None}
        if edges:
            return True
        return any(id(leaf) not in mine for leaf in graph_leaves(outs))

    def result(self, out: Tensor) -> Tensor:
        """`out` as the caller gets it: without the graph of this level if nothing else needs it."""
        if out.requires_grad and not (self.may_link and self.outside([out])):
            return out.detach()
        return out


def _copy(x: Tensor) -> Tensor:
    if x.requires_grad:
        return x.view_as(x)
    return x.detach().requires_grad_()


def graph_leaves(outs: Sequence[Tensor]) -> list[Tensor]:
    """The leaf tensors that the recorded graphs of `outs` lead to."""
    leaves, seen = [], set()
    stack = [out.grad_fn for out in map(Stripped.base, outs) if out.grad_fn is not None]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for edge in node.edges:
            if edge is None:
                continue
            if edge[1] < 0:
                leaves.append(edge[0])
            else:
                stack.append(edge[0])
    return leaves


def picked(name: str, args: tuple, argnums: int | tuple[int, ...]) -> Any:
    """The arguments to differentiate with respect to, in the form of `argnums`."""
    if isinstance(argnums, int):
        return args[_position(name, args, argnums)]
    if not isinstance(argnums, tuple) or not argnums:
        must = "argnums must be an int or a non-empty tuple of ints"
        raise OpError(complaint(name, must, {"argnums": argnums}))
    places = [_position(name, args, i) for i in argnums]
    if len(set(places)) != len(places):
        must = "argnums must not repeat"
        raise OpError(complaint(name, must, {"argnums": argnums}))
    return tuple(args[i] for i in places)


def _position(name: str, args: tuple, i: int) -> int:
    if not isinstance(i, int) or not -len(args) <= i < len(args):
        must = f"argnums must be in [-{len(args)}, {len(args) - 1}]"
        raise OpError(complaint(name, must, {"argnums": i}))
    return i % len(args)


def exchanged(args: tuple, argnums: int | tuple[int, ...], values: Any) -> tuple:
    """The arguments with those that `argnums` names exchanged."""
    out = list(args)
    pairs = [(argnums, values)] if isinstance(argnums, int) else zip(argnums, values, strict=True)
    for i, value in pairs:
        out[i] = value
    return tuple(out)


def _tensor_leaves(name: str, tree: Any) -> tuple[list[Tensor], Any]:
    leaves, structure = flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            facts = {"got": type(leaf).__name__}
            raise ArgumentError(complaint(name, "arguments must be trees of tensors", facts))
    return leaves, structure


def _split_aux(name: str, output: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        must = "with has_aux, the function must return (output, aux)"
        raise OpError(complaint(name, must, {"returned": type(output).__name__}))
    return output


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """The function that returns d func / d args[argnums]; `func` returns one scalar tensor.

    With has_aux `func` returns (output, aux), and the result is (gradients, aux).
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable:
    """Like `grad`, returning (gradients, output), or (gradients, (output, aux)) with has_aux."""

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = _tensor_leaves("grad", picked("grad", args, argnums))
        recording = Recording(leaves)
        with enable_grad():
            copies = unflatten(recording.leaves, structure)
            output = func(*exchanged(args, argnums, copies), **kwargs)
            output, aux = _split_aux("grad", output, has_aux)
            _check_scalar(output)
            one = output.detach().new_ones(())
            found = recording.gradients([output], [one], keep=False)
        value = recording.result(output)
        if has_aux:
            value = (value, _returned(recording, aux))
        return unflatten(found, structure), value

    return both


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor) or output.dim() != 0:
        got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        must, hint = "the function must return one scalar tensor", "Reduce it, or use vjp."
        raise OpError(complaint("grad", must, {"returned": got}, hint))


def _returned(recording: Recording, tree: Any) -> Any:
    leaves, structure = flatten(tree)
    out = [recording.result(x) if isinstance(x, Tensor) else x for x in leaves]
    return unflatten(out, structure)


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(output, pull) with pull(v) = v^T J, a tuple with one entry per primal.

    With has_aux, `func` returns (output, aux) and the result is (output, pull, aux).
    """
    leaves, structure = _tensor_leaves("vjp", primals)
    recording = Recording(leaves)
    with enable_grad():
        output = func(*unflatten(recording.leaves, structure))
        output, aux = _split_aux("vjp", output, has_aux)
        outs, out_structure = _tensor_leaves("vjp", output)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        cts = _matching("vjp", _single(cotangents), outs, out_structure)
        with enable_grad():
            return unflatten(recording.gradients(outs, cts, keep=retain_graph), structure)

    result = (_returned(recording, output), pull)
    return (*result, _returned(recording, aux)) if has_aux else result


def _single(values: tuple) -> Any:
    return values[0] if len(values) == 1 else values


def _matching(name: str, given: Any, like: Sequence[Tensor], structure: Any) -> list[Tensor]:
    """The tensors of `given`, which must have the structure and shapes of `like`."""
    leaves, own = _tensor_leaves(name, given)
    if own != structure:
        must = "vectors must have the structure of what they are multiplied with"
        raise OpError(complaint(name, must, {"given": own, "expected": structure}))
    for x, y in zip(leaves, like, strict=True):
        if x.shape != y.shape:
            must = "vectors must have the shapes of what they are multiplied with"
            facts = {"given": tuple(x.shape), "expected": tuple(y.shape)}
            raise OpError(complaint(name, must, facts))
    return leaves


class Pushforward:
    """J v for many v: v^T J is recorded once as a function of v, and differentiated."""

    def __init__(self, name: str, func: Callable, primals: tuple, has_aux: bool) -> None:
        self.name, self.primals = name, primals
        leaves, self.structure = _tensor_leaves(name, primals)
        self.recording = Recording(leaves)
        with enable_grad():
            output = func(*unflatten(self.recording.leaves, self.structure))
            output, self.aux = _split_aux(name, output, has_aux)
            self.outs, self.out_structure = _tensor_leaves(name, output)
            self.pull = Recording([zeros_like(out.detach()) for out in self.outs])
            self.pulled = self.recording.gradients(self.outs, self.pull.leaves, True, create=True)
        self.output = _returned(self.recording, output)

    def push(self, tangents: Any) -> Any:
        vs = _matching(self.name, tangents, self.recording.leaves, self.structure)
        linked = self.recording.linked(self.outs, vs)
        with enable_grad():
            found = self.pull.gradients(self.pulled, vs, True, create=linked)
        return unflatten(found, self.out_structure)

    def returned_aux(self) -> Any:
        """The function's second result, as the caller gets it."""
        return _returned(self.recording, self.aux)


def jvp(
    func: Callable,
    primals: tuple,
    tangents: tuple,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple:
    """(func(*primals), J tangents), with has_aux also aux; zeros where nothing depends."""
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple) or not value:
            must, facts = f"{name} must be a non-empty tuple", {name: type(value).__name__}
            raise ValueRangeError(complaint("jvp", must, facts))
    forward = Pushforward("jvp", func, primals, has_aux)
    if strict and not all(out.requires_grad for out in forward.outs):
        raise OpError(complaint("jvp", "with strict, every output must depend on the primals"))
    result = (forward.output, forward.push(tangents))
    return (*result, forward.returned_aux()) if has_aux else result


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """(func(*primals), push) with push(*tangents) = J tangents, which may be called many times."""
    forward = Pushforward("linearize", func, primals, False)
    return forward.output, lambda *tangents: forward.push(tangents)

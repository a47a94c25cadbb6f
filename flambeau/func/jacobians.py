"""Whole Jacobians and Hessians, one product per basis vector, all of them in one `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.core.pytree import flatten, unflatten
from flambeau.func.derivatives import Pushforward, exchanged, picked, vjp
from flambeau.func.vmap import vmap
from flambeau.tensor import Tensor, eye


def jacrev(
    func: Callable,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """d func / d args[argnums] by reverse products, one for each output element.

    Each output becomes a tree like the chosen arguments of shapes (*output.shape, *input.shape).
    """
    _check_chunk("jacrev", chunk_size)

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = picked("jacrev", args, argnums)

        def of_chosen(values: Any) -> Any:
            return func(*exchanged(args, argnums, values), **kwargs)

        output, pull, *aux = vjp(of_chosen, chosen, has_aux=has_aux)
        outs, structure = flatten(output)
        rows = vmap(lambda basis: pull(unflatten(basis, structure))[0], chunk_size=chunk_size)(
            basis_like(outs)
        )
        found, inner = flatten(rows)
        sizes = [out.numel() for out in outs]
        columns = [row.split(sizes, 0) for row in found]
        trees = [
            unflatten(
                [c[i].reshape((*out.shape, *c[i].shape[1:])) for c in columns],
                inner,
            )
            for i, out in enumerate(outs)
        ]
        result = unflatten(trees, structure)
        return (result, aux[0]) if has_aux else result

    return jacobian


def jacfwd(
    func: Callable,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable:
    """Like `jacrev`, by forward products, one for each input element."""

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = picked("jacfwd", args, argnums)

        def of_chosen(values: Any) -> Any:
            return func(*exchanged(args, argnums, values), **kwargs)

        forward = Pushforward("jacfwd", of_chosen, (chosen,), has_aux)
        ins, structure = flatten(chosen)
        columns = vmap(lambda basis: forward.push((unflatten(basis, structure),)))(basis_like(ins))
        found, outer = flatten(columns)
        sizes = [x.numel() for x in ins]
        trees = [unflatten(_blocks(column, ins, sizes), structure) for column in found]
        result = unflatten(trees, outer)
        return (result, forward.returned_aux()) if has_aux else result

    return jacobian


def _blocks(column: Tensor, ins: Sequence[Tensor], sizes: list[int]) -> list[Tensor]:
    """(all input elements, *output.shape) -> one (*output.shape, *input.shape) per input."""
    shape = column.shape[1:]
    parts = column.movedim(0, -1).split(sizes, -1)
    return [part.reshape((*shape, *x.shape)) for part, x in zip(parts, ins, strict=True)]


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """Second derivatives, forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)


def basis_like(tensors: Sequence[Tensor]) -> list[Tensor]:
    """For tensors of n elements in all: (n, *shape) for each, the identity cut to their shapes."""
    total = sum(x.numel() for x in tensors)
    out, start = [], 0
    for x in tensors:
        rows = eye(total, dtype=x.dtype, device=x.device)[:, start : start + x.numel()]
        out.append(rows.reshape((total, *x.shape)))
        start += x.numel()
    return out


def _check_chunk(name: str, chunk_size: int | None) -> None:
    if chunk_size is not None and chunk_size < 1:
        must = "chunk_size must be None or above 0"
        raise ValueRangeError(complaint(name, must, {"chunk_size": chunk_size}))

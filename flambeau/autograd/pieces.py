"""Cotangents of slices of one tensor, joined once all of them have come.

The gradient of a slice is its cotangent among zeros. A tensor that is cut up (`split`, `chunk`,
`unbind`, a loop over x[t]) would add as many tensors of its own size; instead the cotangents wait
as pieces, and pieces that tile the tensor are one `cat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flambeau.autograd.node import PrimitiveNode
from flambeau.ops import pointwise
from flambeau.ops.joining import cat
from flambeau.ops.views import select, slice, slice_scatter_zeros
from flambeau.tensor.tensor import Tensor


class Piece(NamedTuple):
    """The cotangent of x[start:stop] along `dim`, with the dimensions of x."""

    ct: Tensor
    shape: tuple
    dim: int
    start: int
    stop: int

    def among_zeros(self) -> Tensor:
        return slice_scatter_zeros(self.ct, shape=self.shape, dim=self.dim, start=self.start,
                                   stop=self.stop, step=1)


class Pieces(list):
    """All pieces of one cotangent that have come so far."""


def piece_of(node: PrimitiveNode, ct: Tensor) -> Piece | None:
    """What a slice or a selection adds to its operand's cotangent; None for other nodes."""
    params, shape = node.params, tuple(node.in_specs[0].shape)
    if node.primitive is select:
        dim, index = params["dim"], params["index"]
        return Piece(ct.unsqueeze(dim), shape, dim, index, index + 1)
    if node.primitive is slice and params["step"] == 1:
        return Piece(ct, shape, params["dim"], params["start"], params["stop"])
    return None


def joined(pieces: Sequence[Piece]) -> Tensor:
    """The cotangent of the whole tensor: its pieces side by side, or added among zeros."""
    first, *rest = pieces
    if rest and tile(pieces):
        return cat(*[p.ct for p in sorted(pieces, key=lambda p: p.start)], dim=first.dim)
    total = first.among_zeros()
    for piece in rest:
        total = pointwise.add(total, piece.among_zeros())
    return total


def tile(pieces: Sequence[Piece]) -> bool:
    """Do the pieces cover one dimension, each place once?"""
    dim, end = pieces[0].dim, 0
    if any(p.dim != dim for p in pieces):
        return False
    for piece in sorted(pieces, key=lambda p: p.start):
        if piece.start != end or piece.stop == piece.start:
            return False
        end = piece.stop
    return end == pieces[0].shape[dim]

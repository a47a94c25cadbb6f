"""Joining dimensions into one and splitting one into several."""

from __future__ import annotations

from flambeau.core.errors import ArgumentError, complaint
from flambeau.nn.modules.module import Module
from flambeau.tensor import Tensor

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins the dimensions from start_dim to end_dim."""

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension dim into unflattened_size."""

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int, unflattened_size: tuple[int, ...] | list[int]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise ArgumentError(complaint("Unflatten", "dim must be an int", {"dim": repr(dim)}))
        sizes_ok = isinstance(unflattened_size, (tuple, list)) and all(
            isinstance(size, int) for size in unflattened_size
        )
        if not sizes_ok:
            raise ArgumentError(
                complaint(
                    "Unflatten",
                    "unflattened_size must be a tuple of ints",
                    {"unflattened_size": repr(unflattened_size)},
                )
            )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"

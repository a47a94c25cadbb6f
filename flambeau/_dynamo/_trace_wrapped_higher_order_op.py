"""`TransformGetItemToIndex`: a block in which `x[i]` works for indices that `vmap` maps over.

flambeau's indexing does so everywhere, so the block changes nothing.
"""

from __future__ import annotations


class TransformGetItemToIndex:
    """Nothing changes inside."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

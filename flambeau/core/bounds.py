"""What is said about an index out of range: NumPy references and kernels use the same words.

A site names who looks something up: an op, with `.d` after it where the index points into
dimension d of the operand.
"""

from __future__ import annotations

from flambeau.core.errors import FlambeauError, IndexOutOfRange, OpError

RUNTIME = frozenset(("gather", "scatter", "scatter_reduce"))  # PyTorch raises RuntimeError
TEXTS = {
    "embedding": "index out of range in self; got index=%d, size=%d.",
    "nll_loss": "Target %d is out of bounds; got classes=%d.",
}


def site_error(site: str) -> type[FlambeauError]:
    return OpError if site.partition(".")[0] in RUNTIME else IndexOutOfRange


def site_text(site: str) -> str:
    """The message, with places for the index and the size."""
    op, _, dim = site.partition(".")
    if dim:
        return f"{op}: index %d is out of bounds for dimension {dim} with size %d."
    return f"{op}: " + TEXTS.get(op, "indices must be in range; got index=%d, size=%d.")


def out_of_range(site: str, index: int, size: int) -> FlambeauError:
    return site_error(site)(site_text(site) % (index, size))

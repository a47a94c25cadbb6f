"""Seeds: the one draw that starts an epoch, and what a worker makes of it.

Worker i seeds Python and flambeau with `base_seed + i`, and NumPy from the pair, as PyTorch does.
"""

from __future__ import annotations

import random

import numpy as np

from flambeau.core.dtype import int64
from flambeau.random import Generator, manual_seed
from flambeau.tensor import empty


def drawn_seed(generator: Generator | None = None) -> int:
    """63 random bits of `generator`, or of the default one: one draw of two words."""
    return int(empty((), dtype=int64).random_(generator=generator).item())


def seed_process(base_seed: int, worker: int) -> None:
    """Seed every generator of this process for the given worker."""
    random.seed(base_seed + worker)
    manual_seed(base_seed + worker)
    np.random.seed(numpy_seed(base_seed, worker))


def numpy_seed(base_seed: int, worker: int) -> np.ndarray:
    return np.random.SeedSequence([worker, base_seed]).generate_state(4)


class Streams:
    """One worker thread's own generators: threads share the process-wide ones with the program."""

    def __init__(self, base_seed: int, worker: int):
        self.random = random.Random(base_seed + worker)
        self.numpy = np.random.RandomState(numpy_seed(base_seed, worker))
        self.torch = Generator()
        self.torch.manual_seed(base_seed + worker)

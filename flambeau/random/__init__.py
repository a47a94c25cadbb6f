"""Random numbers: generators, the laws as primitives, and PyTorch's functions over them.

`flambeau.random` is also PyTorch's `torch.random`.
"""

from flambeau.random.generator import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed",
           "manual_seed", "seed", "set_rng_state"]

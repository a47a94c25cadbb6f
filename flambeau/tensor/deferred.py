"""Names at the root, and methods of Tensor, whose modules are imported when they are first used.

Each module registers the real methods as it is imported, in place of the ones made here.
"""

from __future__ import annotations

from collections.abc import Callable

from flambeau.tensor.public import FUNCTIONS, LOADERS
from flambeau.tensor.tensor import Tensor

# (key in LOADERS, module) -> functions; those also in METHODS are methods too.
HOMES: dict[tuple[str, str], tuple[str, ...]] = {
    ("linalg", "flambeau.linalg.legacy"): (
        "cholesky", "cholesky_solve", "cholesky_inverse", "qr", "svd", "geqrf", "orgqr", "ormqr",
        "lu", "lu_solve", "triangular_solve", "det", "slogdet", "logdet", "inverse", "pinverse",
        "matrix_power", "matrix_exp"),
    ("linalg", "flambeau.linalg.factoring"): ("lu_unpack",),
    ("linalg", "flambeau.linalg.low_rank"): ("svd_lowrank", "pca_lowrank", "lobpcg"),
    ("fft", "flambeau.fft.spectrograms"): ("stft", "istft"),
    ("signal", "flambeau.signal.lengths"): (
        "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"),
}
METHODS = frozenset(HOMES["linalg", "flambeau.linalg.legacy"]) | {"stft", "istft"}


def late_method(key: str, name: str) -> Callable:
    """A method that imports its module, which replaces it, and hands over."""

    def method(self, *args, **kwargs):
        LOADERS[key]()
        return FUNCTIONS[""][name](self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    return method


for (_key, _), _names in HOMES.items():
    for _name in METHODS.intersection(_names):
        setattr(Tensor, _name, late_method(_key, _name))

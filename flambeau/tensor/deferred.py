"""Names at the root, and methods of Tensor, whose modules are imported when they are first used.

Each module registers the real methods as it is imported, in place of the ones made here.
"""

from __future__ import annotations

import importlib
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
    ("operators", "flambeau.functional.native"): (
        "native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
        "_batch_norm_with_update", "constant_pad_nd", "grid_sampler", "grid_sampler_2d",
        "grid_sampler_3d", "_unsafe_masked_index", "_unsafe_masked_index_put_accumulate",
        "_chunk_cat", "_softmax", "_log_softmax", "_softmax_backward_data",
        "_log_softmax_backward_data", "_safe_softmax", "native_dropout",
        "native_dropout_backward"),
    ("operators", "flambeau.functional.segments"): ("segment_reduce", "_segment_reduce"),
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


# module -> the methods it attaches to Tensor.
LATE = {
    "flambeau.tensor.storages": ("untyped_storage", "storage", "storage_type"),
    "flambeau.tensor.typed": ("type",),
    "flambeau.tensor.sharing": ("share_memory_", "is_shared"),
    "flambeau.tensor.foreign": ("__dlpack__", "__dlpack_device__"),
    "flambeau.tensor.metadata": (
        "squeeze_", "unsqueeze_", "transpose_", "swapaxes_", "swapdims_", "t_", "as_strided_"),
    "flambeau.tensor.attributes": (
        "cuda", "xpu", "mtia", "ipu", "hpu", "new", "dim_order", "is_distributed",
        "const_data_ptr", "record_stream", "reinforce", "module_load"),
}


def attached_later(module: str, name: str) -> Callable:
    """A method that imports its module, which replaces it, and hands over."""

    def method(self, *args, **kwargs):
        importlib.import_module(module)
        return getattr(Tensor, name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    return method


for _module, _names in LATE.items():
    for _name in _names:
        setattr(Tensor, _name, attached_later(_module, _name))

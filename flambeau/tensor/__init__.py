"""Tensors: memory and layout, views, indexing, factories, methods, printing.

`from flambeau.tensor import Tensor, zeros` works for every public function of the layer, except
`tensor` itself, which lives in `flambeau.tensor.interop` (here the name is a module).
"""

from __future__ import annotations


def __getattr__(name: str):
    from flambeau.tensor.public import FUNCTIONS
    from flambeau.tensor.tensor import Tensor

    if name == "Tensor":
        return Tensor
    if name in FUNCTIONS[""]:
        return FUNCTIONS[""][name]
    if name == "linalg":
        from importlib import import_module

        return import_module("flambeau.linalg")
    from flambeau.core import dtype

    if isinstance(getattr(dtype, name, None), dtype.dtype) or name in ("finfo", "iinfo"):
        return getattr(dtype, name)
    raise AttributeError(f"module 'flambeau.tensor' has no attribute {name!r}")

"""Tensor methods that the interpreter does itself, because they leave the world of tensors."""

from __future__ import annotations

from typing import Any

from flambeau.capture.breaks import GraphBreak
from flambeau.capture.interpreter.builtin_calls import handles
from flambeau.tensor.tensor import Tensor


@handles(Tensor.item)
def item(run: Any, tensor: Tensor) -> Any:
    return run.session.tensors.item(tensor)


@handles(Tensor.__float__)
def to_float(run: Any, tensor: Tensor) -> Any:
    return run.session.tensors.number(float, tensor)


@handles(Tensor.__int__)
def to_int(run: Any, tensor: Tensor) -> Any:
    return run.session.tensors.number(int, tensor)


@handles(Tensor.__bool__)
def to_bool(run: Any, tensor: Tensor) -> bool:
    return run.session.tensors.truth(tensor)


@handles(Tensor.tolist)
def to_list(run: Any, tensor: Tensor) -> Any:
    if tensor.ndim == 0:
        return run.session.tensors.item(tensor)
    raise GraphBreak("Tensor.tolist", "Take the values outside of the compiled function.")

"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from flambeau.core.errors import ArgumentError, complaint
from flambeau.tensor import Tensor, cat

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other."""
    parameters = list(parameters)
    check_one_device(parameters)
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters share memory with consecutive parts of a vector."""
    if not isinstance(vec, Tensor):
        raise ArgumentError(
            complaint("vector_to_parameters", "vec must be a Tensor", {"vec": type(vec)})
        )
    parameters = list(parameters)
    check_one_device(parameters)
    start = 0
    for parameter in parameters:
        size = parameter.numel()
        parameter.data = vec[start : start + size].view_as(parameter).data
        start += size


def check_one_device(parameters: list[Tensor]) -> None:
    """Refuse parameters that are on different devices."""
    devices = {parameter.device for parameter in parameters}
    if len(devices) > 1:
        raise ArgumentError(
            complaint(
                "parameters_to_vector",
                "all parameters must be on one device",
                {"devices": sorted(map(str, devices))},
            )
        )

"""Changing the memory order of convolution weights."""

from __future__ import annotations

from typing import Any, TypeVar

from flambeau.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from flambeau.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

Given = TypeVar("Given", bound=Module)


def converted(module: Given, kinds: tuple[type[Module], ...], memory_format: Any) -> Given:
    """module with the weights of all modules of some kinds in a memory format."""
    for part in module.modules():
        if isinstance(part, kinds):
            weight: Any = part.get_parameter("weight")
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Given, memory_format: Any) -> Given:
    """Store the weights of all 2-d convolutions in a memory format, such as channels_last."""
    return converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Given, memory_format: Any) -> Given:
    """Store the weights of all 3-d convolutions in a memory format, such as channels_last_3d."""
    return converted(module, (Conv3d, ConvTranspose3d), memory_format)

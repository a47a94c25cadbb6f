"""Interleaving groups of channels."""

from __future__ import annotations

from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module
from flambeau.tensor import Tensor

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Channel (group, i) of (batch, groups * n, ...) moves to place (i, group)."""

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"

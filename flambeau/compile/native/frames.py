"""Frames: the memory of one run of a program, used again by the next.

A frame holds the contexts of all kernels, then the arena. Runs at the same time have frames of
their own; a run that fails drops its frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flambeau.core.spec import Spec
from flambeau.eager.native.address import address
from flambeau.runtime.allocator import allocate
from flambeau.tensor.tensor import Tensor, make


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """`nbytes` in all; (word, content) of words that never change; (spec, byte) of tensors that
    Python steps see in the arena."""

    nbytes: int
    constants: tuple[tuple[int, int], ...]
    tensors: tuple[tuple[Spec, int], ...]


class Frame:
    """`words` are the contexts; `tensors` are over the arena and must not leave the program."""

    __slots__ = ("address", "tensors", "words")

    address: int
    words: np.ndarray
    tensors: tuple[Tensor, ...]

    def __init__(self, layout: FrameLayout):
        memory = allocate(layout.nbytes)
        self.address = address(memory)
        self.words = memory[: layout.nbytes // 8 * 8].view(np.int64)
        for word, content in layout.constants:
            self.words[word] = content
        self.tensors = tuple(
            make(np.ndarray(s.shape, s.numpy, memory, at, s.byte_strides), s)
            for s, at in layout.tensors)


class Frames:
    """Idle frames; taking and giving back are single operations, so threads may do both."""

    def __init__(self, layout: FrameLayout):
        self.layout = layout
        self.idle: list[Frame] = []

    def take(self) -> Frame:
        try:
            return self.idle.pop()
        except IndexError:
            return Frame(self.layout)

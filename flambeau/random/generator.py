"""Generators: a stream of random numbers that equals PyTorch's CPU generator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from flambeau.core.device import device as Device
from flambeau.core.errors import ArgumentError, UnsupportedError, complaint
from flambeau.runtime.mersenne import Engine
from flambeau.tensor.tensor import Tensor, from_array


class Generator:
    """A pseudorandom number generator with its own state."""

    __slots__ = ("engine", "_device", "__weakref__")

    def __init__(self, device="cpu"):
        self._device = Device(device)
        if self._device.type not in ("cpu", "cuda"):
            raise UnsupportedError(complaint("Generator", "the device must be cpu or cuda",
                                             dict(device=device)))
        self.engine = Engine()

    @property
    def device(self) -> Device:
        return self._device

    def manual_seed(self, seed) -> Generator:
        """Start the stream that belongs to `seed`."""
        self.engine.manual_seed(int(seed))
        return self

    def initial_seed(self) -> int:
        return self.engine.initial_seed()

    def seed(self) -> int:
        """Seed from the operating system; returns the seed."""
        return self.engine.random_seed()

    def get_state(self) -> Tensor:
        """The state as 5056 bytes, in PyTorch's layout."""
        return from_array(self.engine.get_state())

    def set_state(self, new_state) -> Generator:
        if not isinstance(new_state, Tensor):
            raise ArgumentError(complaint("set_state", "the state must be a ByteTensor",
                                          dict(got=type(new_state).__name__)))
        self.engine.set_state(np.ascontiguousarray(new_state._array))
        return self

    def clone_state(self) -> Generator:
        new = Generator()
        new.engine.set_state(self.engine.get_state())
        return new

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"

    def __reduce__(self):
        return (_rebuild, (str(self._device), self.engine.get_state()))


def _rebuild(device: str, state: np.ndarray) -> Generator:
    g = Generator(device)
    g.engine.set_state(state)
    return g


default_generator = Generator()
default_generator.seed()


def manual_seed(seed) -> Generator:
    """Seed the default generator of every device."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system."""
    return default_generator.seed()


def initial_seed() -> int:
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    return default_generator.get_state()


def set_rng_state(new_state) -> None:
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled: bool = True, **ignored) -> Iterator[None]:
    """Restore the default generator's state at the end of the block."""
    if not enabled:
        yield
        return
    state = default_generator.engine.get_state()
    try:
        yield
    finally:
        default_generator.engine.set_state(state)

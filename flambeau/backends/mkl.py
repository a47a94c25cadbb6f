"""`torch.backends.mkl`: there is no MKL."""

from __future__ import annotations

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Is there an MKL? No: matrix products are OpenBLAS's and flambeau's own."""
    return False


class verbose:
    """A block in which MKL reports its calls: it makes none."""

    def __init__(self, enable: int):
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

"""What can be wrong with a file."""

from __future__ import annotations

import pickle

from flambeau.core.errors import FlambeauError


class DamagedFile(FlambeauError, RuntimeError, pickle.UnpicklingError):
    """The bytes are not what a checkpoint must be: cut, changed, or made to do harm."""


class EmptyFile(DamagedFile, EOFError):
    """There is nothing in the file."""


class RefusedFile(FlambeauError, pickle.UnpicklingError):
    """The file asks for a class or function that it may not have."""


class UnwritableFile(FlambeauError, RuntimeError, OSError):
    """The file cannot be written where it was asked for."""

"""The address of an ndarray's first element, in a fifth of a microsecond."""

from __future__ import annotations

import ctypes

import numpy as np

_DATA = object.__basicsize__  # PyArrayObject: the object's head, then `char *data`
_from_address = ctypes.c_void_p.from_address


def _quick(array: np.ndarray) -> int:
    return _from_address(id(array) + _DATA).value or 0


def _plain(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


_probe = [np.zeros(n) for n in (1, 7)]
address = _quick if all(_quick(a) == _plain(a) for a in _probe) else _plain

"""Where storages go when they are loaded: `map_location`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.device import CPU
from flambeau.core.device import device as Device
from flambeau.core.errors import ArgumentError, DeviceError, complaint
from flambeau.tensor.storage import Storage

_WITH_MEMORY = ("cpu", "meta")  # kinds of device that a storage can be put on today


def destination(location: Any, map_location: Any) -> Device:
    """The device for a storage that was saved from `location` (such as "cuda:0")."""
    if not isinstance(location, str):
        raise ArgumentError(complaint("load", "the location of a storage must be a str",
                                      dict(location=location)))
    if map_location is None:
        target: Any = location
    elif isinstance(map_location, str | Device):
        target = map_location
    elif isinstance(map_location, dict):
        target = map_location.get(location, location)
    elif callable(map_location):
        target = _asked(map_location, location)
    else:
        raise ArgumentError(complaint(
            "load", "map_location must be a device, a str, a dict or a function",
            dict(map_location=type(map_location).__name__)))
    return _available(Device(target), location)


def _asked(function: Any, location: str) -> Any:
    """The device of the storage that the user's function gives back; None: its old place."""
    answer = function(Storage(np.empty(0, np.uint8), 0), location)
    return location if answer is None else getattr(answer, "device", CPU)


def _available(target: Device, location: str) -> Device:
    if target.type not in _WITH_MEMORY:
        raise DeviceError(complaint(
            "load", "the device of a storage must be available",
            dict(device=str(target), saved_from=location),
            f"Attempting to deserialize object on a {target.type.upper()} device but none is "
            "available: pass map_location=torch.device('cpu') to load it into the CPU's memory."))
    return target

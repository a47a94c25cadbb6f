"""The format before the zip one (PyTorch up to 1.5): pickles one after the other, then raw bytes.

A magic number, the protocol, facts about the machine, the object, the keys of its storages; then,
key by key, the number of elements and the bytes.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from flambeau.core.device import device as Device
from flambeau.serialization.allowed import Allowed
from flambeau.serialization.kinds import StorageKind
from flambeau.serialization.location import destination
from flambeau.serialization.machine import Machine, damaged
from flambeau.serialization.reading import Options, checked_reference, swapped
from flambeau.serialization.rebuild import LoadedStorage
from flambeau.tensor.storage import Storage

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


def load_legacy(file: BinaryIO, options: Options) -> Any:
    """The object in an old checkpoint; the file stands at its beginning."""
    start = file.tell()
    size = file.seek(0, 2)
    file.seek(start)
    storages = SequentialStorages(options, size)

    def pickled(persistent: Callable[[Any], Any]) -> Any:
        return Machine(file, size - file.tell(), Allowed(not options.weights_only), persistent,
                       options.encoding).load()

    if pickled(_nothing) != _MAGIC:
        raise damaged("the file must be a checkpoint (Invalid magic number)")
    if (protocol := pickled(_nothing)) != _PROTOCOL:
        raise damaged(f"the protocol of an old checkpoint must be {_PROTOCOL}", protocol=protocol)
    facts = pickled(_nothing)
    little = not isinstance(facts, dict) or facts.get("little_endian") is not False
    value = pickled(storages.persistent)
    storages.read(file, size, pickled(_nothing), little)
    return value


def _nothing(reference: Any) -> Any:
    raise damaged("only the object itself may refer to storages", reference=repr(reference)[:80])


class SequentialStorages:
    """Storages that are promised in the pickle and read after it: no more than the file holds."""

    def __init__(self, options: Options, file_size: int):
        self.options = options
        self.left = file_size
        self.promised: dict[str, tuple[StorageKind, int, LoadedStorage]] = {}

    def persistent(self, reference: Any) -> LoadedStorage:
        kind, key, location, count = checked_reference(reference)
        if len(reference) > 5 and reference[5] is not None:
            raise damaged("storages that are views of others are not read; save again with a "
                          "newer PyTorch", storage=key)
        if key not in self.promised:
            where = destination(location, self.options.map_location)
            self.promised[key] = kind, count, self._promise(kind, count, where)
        return self.promised[key][2]

    def _promise(self, kind: StorageKind, count: int, where: Device) -> LoadedStorage:
        nbytes = count * kind.dtype.itemsize
        self.left -= nbytes
        if self.left < 0:
            raise damaged("storages must fit into the file", elements=count, kind=kind)
        flat = None if where.type == "meta" else np.zeros(nbytes, np.uint8)
        return LoadedStorage(Storage(flat, nbytes), kind.dtype, where)

    def read(self, file: BinaryIO, size: int, keys: Any, little: bool) -> None:
        if not isinstance(keys, list) or set(map(str, keys)) != set(self.promised):
            raise damaged("the storages in the file must be those of the object")
        for key in keys:
            kind, count, loaded = self.promised[key]
            header = file.read(8)
            if len(header) != 8 or struct.unpack("<q" if little else ">q", header)[0] != count:
                raise damaged("a storage must have the size that the object says", storage=key)
            flat = loaded.storage.flat
            self._fill(file, kind, count, flat, little != (sys.byteorder == "little"))

    def _fill(self, file: BinaryIO, kind: StorageKind, count: int, flat: np.ndarray | None,
              other_order: bool) -> None:
        nbytes = count * kind.dtype.itemsize
        if flat is None:
            file.seek(nbytes, 1)
            return
        if file.readinto(flat) != nbytes:  # type: ignore[attr-defined]
            raise damaged("a storage must not end early", bytes=nbytes)
        if other_order:
            flat[:] = swapped(flat, kind)

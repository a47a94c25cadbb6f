"""Loading: from the records of an archive, or the sections of an old file, to the object."""

from __future__ import annotations

import io
import mmap
import sys
from typing import Any, BinaryIO

import numpy as np

from flambeau.core.device import device as Device
from flambeau.core.errors import complaint
from flambeau.serialization.allowed import Allowed
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.errors import DamagedFile
from flambeau.serialization.kinds import StorageKind
from flambeau.serialization.location import destination
from flambeau.serialization.machine import Machine, damaged
from flambeau.serialization.rebuild import LoadedStorage
from flambeau.tensor.storage import Storage

_ORDERS = {b"little": "little", b"big": "big"}


class Options:
    """What the user asked for."""

    __slots__ = ("map_location", "weights_only", "mmap", "encoding")

    def __init__(self, map_location: Any, weights_only: bool, mmap: bool, encoding: str):
        self.map_location = map_location
        self.weights_only = weights_only
        self.mmap = mmap
        self.encoding = encoding


def load_archive(file: BinaryIO, options: Options) -> Any:
    """The object in a zip checkpoint."""
    archive = ArchiveReader(file)
    if "constants.pkl" in archive:
        raise DamagedFile(complaint("load", "the file must be a checkpoint",
                                    dict(found="a TorchScript archive"),
                                    "Load it with jit.load."))
    storages = ArchivedStorages(archive, options)
    pickled = archive.read("data.pkl")
    machine = Machine(io.BytesIO(pickled), len(pickled), Allowed(not options.weights_only),
                      storages.persistent, options.encoding)
    return machine.load()


class ArchivedStorages:
    """Reads each storage once, when the pickle first refers to it."""

    def __init__(self, archive: ArchiveReader, options: Options):
        self.archive = archive
        self.options = options
        self.loaded: dict[str, LoadedStorage] = {}
        self.swapped = _byte_order(archive) != sys.byteorder
        self.mapped = _mapping(archive.file) if options.mmap else None

    def persistent(self, reference: Any) -> LoadedStorage:
        kind, key, location, count = checked_reference(reference)
        if key not in self.loaded:
            where = destination(location, self.options.map_location)
            nbytes = self._checked_size(key, kind, count)
            self.loaded[key] = LoadedStorage(self._storage(key, kind, nbytes, where),
                                             kind.dtype, where)
        return self.loaded[key]

    def _checked_size(self, key: str, kind: StorageKind, count: int) -> int:
        """A storage of bytes viewed as a wider type may end in a part of an element."""
        nbytes = self.archive.size(f"data/{key}")
        if nbytes // kind.dtype.itemsize != count:
            raise damaged("a storage must have the bytes that its elements need",
                          storage=key, elements=count, bytes=nbytes)
        return nbytes

    def _storage(self, key: str, kind: StorageKind, nbytes: int, where: Device) -> Storage:
        record = f"data/{key}"
        if where.type == "meta":
            return Storage(None, nbytes)
        if self.mapped is not None and not self.swapped:
            begin = self.archive.offset(record)
            if begin % kind.dtype.itemsize == 0:
                return Storage(self.mapped[begin : begin + nbytes], nbytes)
        flat = self.archive.read_into(record, np.empty(nbytes, np.uint8))
        return Storage(swapped(flat, kind) if self.swapped else flat, nbytes)


def checked_reference(reference: Any) -> tuple[StorageKind, str, str, int]:
    """The parts of ("storage", kind, key, location, count)."""
    if not isinstance(reference, tuple) or len(reference) < 5 or reference[0] != "storage":
        raise damaged("a persistent id must refer to a storage", reference=repr(reference)[:80])
    _, kind, key, location, count = reference[:5]
    facts = dict(kind=kind, key=key, location=location, count=count)
    if not isinstance(kind, StorageKind) or type(key) is not str or type(location) is not str:
        raise damaged("a storage must have a class, a key and a location", **facts)
    if type(count) is not int or count < 0:
        raise damaged("a storage must have a number of elements", **facts)
    return kind, key, location, count


def swapped(flat: np.ndarray, kind: StorageKind) -> np.ndarray:
    """The bytes of every element the other way round; of a complex one, of its parts."""
    width = kind.dtype.itemsize // (2 if kind.dtype.is_complex else 1)
    return flat.reshape(-1, width)[:, ::-1].reshape(-1) if width > 1 else flat


def _byte_order(archive: ArchiveReader) -> str:
    if "byteorder" not in archive:  # older files; big-endian machines wrote none then
        return "little"
    recorded = archive.read("byteorder")
    if recorded not in _ORDERS:
        raise damaged("the byte order must be little or big", byteorder=recorded[:16])
    return _ORDERS[recorded]


def _mapping(file: BinaryIO) -> np.ndarray:
    """The whole file as memory that is read when touched, and copied when written to."""
    return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)

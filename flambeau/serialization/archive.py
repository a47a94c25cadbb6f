"""The container of a checkpoint: a zip file whose records are stored as they are, aligned.

`<name>/data.pkl` is the pickle, `<name>/data/<key>` the bytes of each storage. Nothing is
compressed, so a storage can be mapped, and no file can claim more than it holds.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from flambeau.serialization.errors import DamagedFile
from flambeau.serialization.machine import damaged

ALIGNMENT = 64  # bytes; a storage starts at a multiple of it

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ZIP64_EXTRA = 20  # bytes that zipfile adds to the header of a large record
_CHUNK = 1 << 24  # bytes read, checked and copied at a time


class _Zip(zipfile.ZipFile):
    """Does not try to complete itself when it is dropped: half an archive is worth nothing."""

    def __del__(self) -> None:
        pass


class ArchiveWriter:
    """Writes records one after the other into an open file."""

    def __init__(self, file: Any, name: str):
        self.zip = _Zip(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self.name = name

    def write(self, record: str, data: Any) -> None:
        """`data` is bytes, or an array of them."""
        info = zipfile.ZipInfo(f"{self.name}/{record}")
        view: memoryview = memoryview(data).cast("B") if len(data) else memoryview(b"")
        info.file_size = view.nbytes
        info.extra = _padding(self._position(), len(info.filename.encode()), view.nbytes)
        with self.zip.open(info, "w") as stream:
            for start in range(0, view.nbytes, _CHUNK):
                stream.write(view[start : start + _CHUNK])

    def _position(self) -> int:
        return self.zip.fp.tell()  # type: ignore[union-attr]

    def close(self) -> None:
        self.zip.close()


def _padding(start: int, name_length: int, size: int) -> bytes:
    """An extra field, as long as it takes for the data to begin at a multiple of ALIGNMENT."""
    large = size * 1.05 > zipfile.ZIP64_LIMIT  # zipfile's own rule
    begin = start + _LOCAL_HEADER.size + name_length + (_ZIP64_EXTRA if large else 0) + 4
    return struct.pack("<2sH", b"FB", -begin % ALIGNMENT) + b"Z" * (-begin % ALIGNMENT)


class ArchiveReader:
    """The records of an open, seekable file."""

    def __init__(self, file: BinaryIO):
        self.file = file
        try:
            self.zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OSError,
                UnicodeDecodeError) as error:
            raise damaged("the file must be a zip archive (failed finding central directory)",
                          reason=repr(str(error))) from error
        self.records = {info.filename: info for info in self.zip.infolist()}
        self._check_sizes()
        self.prefix = self._find_prefix()

    def _check_sizes(self) -> None:
        """Stored records that do not overlap are together no larger than the file."""
        entries = self.zip.infolist()
        if len(entries) != len(self.records):
            raise damaged("a record may occur only once", records=len(entries))
        size = self.file.seek(0, 2)
        total = sum(i.file_size for i in entries if i.compress_type == zipfile.ZIP_STORED)
        if total > size:
            raise damaged("records must fit into the file", records_bytes=total, file_bytes=size)

    def _find_prefix(self) -> str:
        for name in self.records:
            folder, _, leaf = name.rpartition("/")
            if leaf == "data.pkl" and "/" not in folder:
                return folder + "/" if folder else ""
        raise damaged("a checkpoint must have the record data.pkl",
                      records=list(self.records)[:5])

    def __contains__(self, record: str) -> bool:
        return self.prefix + record in self.records

    def size(self, record: str) -> int:
        return self._info(record).file_size

    def _info(self, record: str) -> zipfile.ZipInfo:
        info = self.records.get(self.prefix + record)
        if info is None:
            raise damaged("a record that the pickle refers to must be in the file", record=record)
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise DamagedFile(
                f"load: records must be stored without compression or encryption; got "
                f"record={record}. Unpack the archive and save its contents again.")
        return info

    def offset(self, record: str) -> int:
        """Where the bytes of a record begin in the file."""
        info = self._info(record)
        if info.header_offset < 0:
            raise damaged("a record must begin in the file", record=record)
        self.file.seek(info.header_offset)
        header = self.file.read(_LOCAL_HEADER.size)
        if len(header) != _LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
            raise damaged("a record must have a header where the directory says", record=record)
        *_, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        begin = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length
        if begin + info.file_size > self.file.seek(0, 2):
            raise damaged("a record must lie inside the file", record=record)
        return begin

    def read(self, record: str) -> bytes:
        return bytes(self.read_into(record, np.empty(self.size(record), np.uint8)))

    def read_into(self, record: str, target: np.ndarray) -> np.ndarray:
        """Fill `target` with the record's bytes; they must have the checksum they were saved with.

        A recorded checksum of 0 means that none was computed.
        """
        self.file.seek(self.offset(record))
        expected = self._info(record).CRC
        checksum = 0
        for part in _parts(target):
            if self.file.readinto(part) != len(part):  # type: ignore[attr-defined]
                raise damaged("a record must not end early", record=record)
            checksum = zlib.crc32(part, checksum)
        if expected not in (checksum, 0):
            raise damaged("a record must have the checksum it was saved with", record=record,
                          saved=hex(expected), found=hex(checksum))
        return target


def _parts(target: np.ndarray) -> Iterator[memoryview]:
    view = memoryview(target)  # type: ignore[arg-type]
    for start in range(0, len(view), _CHUNK):
        yield view[start : start + _CHUNK]

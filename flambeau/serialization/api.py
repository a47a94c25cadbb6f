"""`save` and `load`: PyTorch's `.pt` files, both ways, without ever running code from a file."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from flambeau.core.errors import ArgumentError, ValueRangeError, complaint
from flambeau.serialization.allowed import Allowed
from flambeau.serialization.archive import ALIGNMENT, ArchiveReader, ArchiveWriter
from flambeau.serialization.atomic import replacing
from flambeau.serialization.errors import DamagedFile, EmptyFile, RefusedFile
from flambeau.serialization.legacy import load_legacy
from flambeau.serialization.machine import damaged
from flambeau.serialization.reading import Options, load_archive
from flambeau.serialization.writing import CheckpointPickler

DEFAULT_PROTOCOL = 2

_ZIP = b"PK\x03\x04"
_FORMAT_VERSION, _ARCHIVE_VERSION = b"1", b"3\n"


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a path or a binary file, in the format that PyTorch reads.

    A path is replaced only when all is written. Tensors that share memory share it in the file,
    and all of the shared memory is written: save `view.clone()` to write a small part of it.
    """
    if pickle_module is not pickle:
        raise ArgumentError(complaint("save", "pickle_module must be pickle",
                                      dict(pickle_module=pickle_module)))
    if not _use_new_zipfile_serialization:
        raise ValueRangeError(complaint("save", "only the zip format is written",
                                        hint="Leave _use_new_zipfile_serialization at True."))
    _check_protocol(pickle_protocol)
    if isinstance(f, str | os.PathLike):
        name = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
        with replacing(f) as file:
            _write(obj, file, name, pickle_protocol, not _disable_byteorder_record)
    elif hasattr(f, "write"):
        _write(obj, f, "archive", pickle_protocol, not _disable_byteorder_record)
    else:
        raise AttributeError(complaint("save", "f must be a path or have a write method",
                                       dict(f=type(f).__name__)))


def _check_protocol(protocol: Any) -> None:
    if not isinstance(protocol, int) or not 2 <= protocol <= pickle.HIGHEST_PROTOCOL:
        raise ValueRangeError(complaint(
            "save", f"pickle_protocol must be an int from 2 to {pickle.HIGHEST_PROTOCOL}",
            dict(pickle_protocol=protocol)))


def _write(obj: object, file: Any, name: str, protocol: int, byteorder: bool) -> None:
    pickled = io.BytesIO()
    pickler = CheckpointPickler(pickled, protocol)
    pickler.dump(obj)
    archive = ArchiveWriter(file, name)
    archive.write("data.pkl", pickled.getvalue())
    archive.write(".format_version", _FORMAT_VERSION)
    archive.write(".storage_alignment", str(ALIGNMENT).encode())
    if byteorder:
        archive.write("byteorder", sys.byteorder.encode())
    for entry in pickler.entries.values():
        archive.write(f"data/{entry.key}", entry.storage.flat)
    archive.write("version", _ARCHIVE_VERSION)
    archive.close()


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read an object that `save` or PyTorch's `torch.save` wrote, from a path or a binary file.

    No code from the file is ever run. By default it may hold tensors, containers, numbers, strings
    and what `add_safe_globals` allows; `weights_only=False` also allows nn.Module objects whose
    classes the program has imported already. `mmap=True` reads storages when they are touched; it
    needs a path. `map_location` is a device, a dict from saved to new places, or a function.
    """
    if pickle_module is not None and pickle_module is not pickle:
        raise ValueRangeError(complaint(
            "load", "pickle_module must be left at None", dict(pickle_module=pickle_module),
            "flambeau reads pickles itself, without running code from them."))
    options = Options(map_location, weights_only is None or bool(weights_only), bool(mmap),
                      pickle_load_args.pop("encoding", "utf-8"))
    if options.mmap and not isinstance(f, str | os.PathLike):
        raise ValueRangeError(complaint("load", "f must be a path when mmap=True",
                                        dict(f=type(f).__name__)))
    with _opened(f) as file:
        return _load(file, options)


def _load(file: BinaryIO, options: Options) -> Any:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EmptyFile(str(damaged("the file must not be empty (Ran out of input)")))
    if head == _ZIP:
        return load_archive(file, options)
    if options.mmap:
        raise DamagedFile(complaint("load", "mmap=True needs a file in the zip format",
                                    hint="Load it without mmap and save it again."))
    return load_legacy(file, options)


@contextlib.contextmanager
def _opened(f: Any) -> Iterator[BinaryIO]:
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            yield file
        return
    missing = [name for name in ("read", "seek", "tell") if not hasattr(f, name)]
    if missing:
        raise AttributeError(complaint(
            "load", "f must be a path or a binary file that can seek",
            dict(f=type(f).__name__, missing=missing),
            "Read it into io.BytesIO first: torch.load(io.BytesIO(f.read()))."))
    yield f if hasattr(f, "readinto") else io.BytesIO(f.read())


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a checkpoint that `load` would refuse by default."""
    with _opened(f) as file:
        pickled = ArchiveReader(file).read("data.pkl")
    allowed = Allowed(modules=False)
    return [f"{module}.{name}" for module, name in _names(pickled)
            if not _is_allowed(allowed, module, name)]


def _is_allowed(allowed: Allowed, module: str, name: str) -> bool:
    try:
        allowed.find(module, name)
    except RefusedFile:
        return False
    return True


def _names(pickled: bytes) -> list[tuple[str, str]]:
    """Every global that a pickle names, in order; strings before STACK_GLOBAL may be memoized."""
    found: dict[tuple[str, str], None] = {}
    strings: list[str] = []
    memo: dict[int, str] = {}
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
            found[module, name] = None
        elif opcode.name == "STACK_GLOBAL" and len(strings) >= 2:
            found[strings[-2], strings[-1]] = None
        elif isinstance(argument, str):
            strings.append(argument)
        elif opcode.name == "MEMOIZE" and strings:
            memo[len(memo)] = strings[-1]
        elif opcode.name in ("BINGET", "LONG_BINGET") and argument in memo:
            strings.append(memo[argument])
    return list(found)

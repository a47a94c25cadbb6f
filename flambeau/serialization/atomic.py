"""Files that are there whole or not at all.

The bytes go to a temporary file beside the target, which replaces it when all of them are on disk.
A full disk, an exception or Ctrl-C leaves the old file as it was.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Any, BinaryIO

from flambeau.core.errors import complaint
from flambeau.serialization.errors import UnwritableFile


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the `with` block ends without an exception.

    What is no regular file (a device, a pipe), or lies in a folder that may not be written to, is
    written in place.
    """
    target = os.path.realpath(os.fspath(path))
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise UnwritableFile(complaint("save", "the folder must exist", dict(folder=repr(folder)),
                                       f"Parent directory {folder} does not exist: make it with "
                                       "os.makedirs."))
    existing = _mode(target)
    in_place = existing is not None and (not stat.S_ISREG(existing)
                                         or not os.access(folder, os.W_OK))
    if in_place:
        with open(target, "wb") as file:
            yield file
        return
    temporary = f"{target}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if existing is not None:
            os.chmod(temporary, stat.S_IMODE(existing))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None

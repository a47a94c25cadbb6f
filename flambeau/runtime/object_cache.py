"""Object code on disk, by content, so that a second process need not compile.

Nothing that this user did not write is ever returned: the directory and its key file must belong to
the user and be closed to others, and every entry carries a keyed hash of its name and bytes.
Damaged or foreign files, a full or read-only disk and concurrent writers all end as a plain miss.
``FLAMBEAU_CACHE`` moves the directory; ``FLAMBEAU_CACHE=off`` disables it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import os
import stat
import tempfile
from collections.abc import Callable

LIMIT_BYTES = 512 * 1024 * 1024
_DIGEST = 32
_SUFFIX = ".o"
_SWEEP_EVERY = 64
_writes = 0


def directory() -> str:
    """Where entries are kept; empty when the cache is off."""
    chosen = os.environ.get("FLAMBEAU_CACHE")
    if chosen is not None:
        return "" if chosen in ("", "off", "0") else os.path.abspath(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "flambeau")


def prepare() -> bool:
    """Make the directory, closed to others; False where it is off, unusable or open to others."""
    return _key(directory()) is not None


def read(name: str) -> bytes | None:
    """The bytes written under `name`, or None."""
    key = _key(directory())
    if key is None:
        return None
    path = os.path.join(directory(), name + _SUFFIX)
    try:
        with open(path, "rb") as file:
            content = file.read()
        digest, image = content[:_DIGEST], content[_DIGEST:]
        if not hmac.compare_digest(digest, _digest(key, name, image)):
            return None
        os.utime(path)
    except OSError:
        return None
    return image


def write(name: str, image: bytes) -> None:
    """Keep `image` under `name`; failures are silent, the cache is only a help."""
    global _writes
    where = directory()
    key = _key(where)
    if key is None:
        return
    with contextlib.suppress(OSError):
        _replace(os.path.join(where, name + _SUFFIX), _digest(key, name, image) + image)
        _writes += 1
        if _writes % _SWEEP_EVERY == 1:
            sweep(where, LIMIT_BYTES)


def sweep(where: str, limit: int) -> None:
    """Remove the entries used longest ago until the rest fits into `limit` bytes."""
    entries = []
    with os.scandir(where) as found:
        for entry in found:
            if entry.name.endswith((_SUFFIX, ".part")):
                facts = entry.stat(follow_symlinks=False)
                entries.append((facts.st_mtime, facts.st_size, entry.path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size


def _digest(key: bytes, name: str, image: bytes) -> bytes:
    return hashlib.blake2b(name.encode() + b"\0" + image, key=key, digest_size=_DIGEST).digest()


def _replace(path: str, content: bytes) -> None:
    """Write a whole file or none: readers never see a part."""
    handle, part = tempfile.mkstemp(suffix=".part", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


@functools.lru_cache(maxsize=8)
def _key(where: str) -> bytes | None:
    """The secret of this cache directory, made on first use; None when the place is not ours."""
    if not where:
        return None
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        if not _is_private(os.lstat(where), stat.S_ISDIR):
            return None
        return _secret(os.path.join(where, "key"))
    except OSError:
        return None


def _is_private(facts: os.stat_result, kind: Callable[[int], bool]) -> bool:
    owned = not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()
    closed = os.name == "nt" or not facts.st_mode & 0o077
    return owned and closed and kind(facts.st_mode)


def _secret(path: str) -> bytes | None:
    if not os.path.lexists(path):
        part = f"{path}.{os.getpid()}.part"
        with open(part, "xb", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            file.write(os.urandom(_DIGEST))
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
        os.unlink(part)
    if not _is_private(os.lstat(path), stat.S_ISREG):
        return None
    with open(path, "rb") as file:
        secret = file.read()
    return secret if len(secret) == _DIGEST else None

"""Permission to use the tile registers of x86 (AMX).

Linux hands out their 8 KiB of state only to processes that ask. Threads started later and forked
children inherit the permission; elsewhere, or where it is refused, the registers do not exist.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys

_ARCH_PRCTL = 158
_REQUEST_PERMISSION = 0x1023
_TILE_DATA = 18


@functools.cache
def permitted() -> bool:
    """Ask the system, once."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        call = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):
        return False
    call.restype = ctypes.c_long
    return call(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0

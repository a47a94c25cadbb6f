"""Which symbols an ELF object leaves undefined.

The linker inside LLVM's JIT resolves a missing symbol to address 0 without a word, so every name is
checked before an object is linked. Layout: System V ABI, ELF-64, little endian.
"""

from __future__ import annotations

import struct

_SYMBOL_TABLE = 2
_UNDEFINED = 0


def is_elf(image: bytes) -> bool:
    return image[:6] == b"\x7fELF\x02\x01"


def undefined_symbols(image: bytes) -> list[str]:
    """Names of the symbols that the object expects from elsewhere, in table order."""
    names: list[str] = []
    for kind, offset, size, link in _sections(image):
        if kind != _SYMBOL_TABLE:
            continue
        strings = list(_sections(image))[link][1]
        for at in range(offset, offset + size, 24):
            name, _, _, section = struct.unpack_from("<IBBH", image, at)
            if section == _UNDEFINED and name:
                end = image.index(b"\0", strings + name)
                names.append(image[strings + name : end].decode())
    return names


def _sections(image: bytes) -> list[tuple[int, int, int, int]]:
    """(type, file offset, size, link) of each section header."""
    (start,) = struct.unpack_from("<Q", image, 40)
    stride, count = struct.unpack_from("<HH", image, 58)
    found = []
    for i in range(count):
        kind = struct.unpack_from("<I", image, start + i * stride + 4)[0]
        offset, size, link = struct.unpack_from("<QQI", image, start + i * stride + 24)
        found.append((kind, offset, size, link))
    return found

"""CRC-32C (Castagnoli), by the compiled accelerator or by tables of 16 bits. Pure."""

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Final, TypeAlias

from etcd_aio.base.accelerator import UnusableError, load_if_usable

Crc: TypeAlias = Callable[[bytes, int], int]
"""`crc(data, before)` continues the checksum of what came before; that of nothing is 0."""

_POLYNOMIAL: Final = 0x82F63B78  # with its bits reversed, as the least significant bit of a byte comes first
_CHECK: Final = (b"123456789", 0xE3069283)  # as published with the polynomial
_ALL: Final = 0xFFFFFFFF


def pure_crc32c(data: bytes, before: int = 0) -> int:
    """Continue a checksum in Python."""
    high, low, single = _tables()
    crc = before ^ _ALL
    whole = len(data) & ~3
    words = memoryview(data)[:whole].cast("I") if sys.byteorder == "little" else _words(data[:whole])
    for word in words:
        crc ^= word
        crc = high[crc & 0xFFFF] ^ low[crc >> 16]
    for byte in data[whole:]:
        crc = single[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _ALL


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


@cache
def _tables() -> tuple[list[int], list[int], list[int]]:
    """Tables for the first and the last 16 bits of a word of 32, and for one byte. Made at the first use: 50 ms."""
    single: list[int] = []
    for number in range(256):
        crc = number
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        single.append(crc)
    low = [single[single[number & 0xFF] & 0xFF ^ number >> 8] ^ single[number & 0xFF] >> 8 for number in range(65536)]
    after = [crc >> 8 ^ single[crc & 0xFF] for crc in low]
    return [crc >> 8 ^ single[crc & 0xFF] for crc in after], low, single


def check(module: ModuleType) -> Crc:
    """The function of the accelerator.

    Raises:
        UnusableError: it computes something else.
        AttributeError: there is none.
    """
    found: Crc = module.crc32c
    data, expected = _CHECK
    if found(data[4:], found(data[:4], 0)) != expected:
        raise UnusableError("it does not fit: it computes another checksum")
    return found


_CHOSEN: Final = load_if_usable("codec", check)
crc32c: Final[Crc] = _CHOSEN[0] or pure_crc32c
"""Continues a checksum, by the fastest way there is."""
BACKEND: Final = _CHOSEN[1]
"""`accelerated`, or `pure Python` with the reason."""

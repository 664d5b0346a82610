"""Functions of `etcd3gw.utils`, also those with an underscore, which programs use to make requests."""

from base64 import b64decode, b64encode
from typing import Any, Final

DEFAULT_TIMEOUT: Final = 30
"""Seconds of a lease."""

LOCK_PREFIX: Final = "/locks/"
"""The keys of locks begin with it."""


def to_bytes(data: Any) -> bytes:
    """Bytes as they are; the text of anything else as Latin-1."""
    return bytes(data) if isinstance(data, bytes | bytearray) else str(data).encode("latin-1")


def _encode(data: Any) -> str:
    """The Base64 of a key or value."""
    return b64encode(to_bytes(data)).decode()


def _decode(data: Any) -> bytes:
    """The bytes that a Base64 stands for."""
    return b64decode(to_bytes(data))


def _increment_last_byte(data: Any) -> str:
    """The end of the range of all keys that begin with a prefix, as text; not for a prefix that ends with 0xff."""
    encoded = data.encode() if isinstance(data, str) else to_bytes(data)
    return (encoded[:-1] + bytes((encoded[-1] + 1,))).decode()

"""Conversions that python-etcd3 has in public: of keys, leases and watch responses."""

from collections.abc import Iterable, Iterator
from typing import Any


def increment_last_byte(byte_string: bytes) -> bytes:
    """The bytes with the last one increased by one: mostly the end of a prefix. See `prefix_range_end`.

    Raises:
        ValueError: the last byte is 0xff.
        IndexError: there is no byte.
    """
    return byte_string[:-1] + bytes((byte_string[-1] + 1,))


def prefix_range_end(prefix: bytes) -> bytes:
    """The `range_end` of the keys that begin with a prefix; a zero byte, for no end, if no key is behind them."""
    stem = prefix.rstrip(b"\xff")
    return increment_last_byte(stem) if stem else b"\0"


def to_bytes(maybe_bytestring: str | bytes) -> bytes:
    """Text as UTF-8; bytes as they are.

    Raises:
        AttributeError: it is neither.
    """
    return maybe_bytestring if isinstance(maybe_bytestring, bytes) else maybe_bytestring.encode()


def lease_to_id(lease: Any) -> int:
    """The id of a lease, which is given as an object with an `id`, as a number, or as None for no lease."""
    if lease is None:
        return 0
    return int(getattr(lease, "id", lease))


def response_to_event_iterator(response_iterator: Iterable[Any]) -> Iterator[Any]:
    """The events of watch responses, one after the other."""
    for response in response_iterator:
        yield from response.events

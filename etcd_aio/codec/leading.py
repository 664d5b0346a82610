"""Leading: what the first bytes of a message tell that was too large to be taken.

Knows: that etcd, as all of Go, writes the fields in the order of their numbers. Never knows: the rest.
"""

from typing import Final

from etcd_aio.codec.wire import Refusal, read_varint

_HEADER: Final = b"\x0a"  # field 1, a message
_WATCH_ID: Final = 0x10  # field 2, a number


def leading_watch_id(beginning: bytes) -> int | None:
    """The watch id of a `WatchResponse`, which stands behind its header; None if the bytes do not reach so far."""
    at = 0
    try:
        if beginning.startswith(_HEADER):
            size, at = read_varint(beginning, 1)
            at += size
        if beginning[at] != _WATCH_ID:
            return 0  # which is not written
        return read_varint(beginning, at + 1)[0]
    except (IndexError, Refusal):
        return None

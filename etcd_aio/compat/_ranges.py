"""Ranges as etcd's messages have them, a key and the end of a range, for calls that take them by forms. Pure."""

from typing import TypedDict

_NO_END = b"\0"


class WatchedKeys(TypedDict, total=False):
    """The arguments of `Store.watch` and of `Key` that name the keys."""

    key: bytes
    range_end: bytes
    from_key: bytes


def named_keys(key: bytes, range_end: bytes | None) -> WatchedKeys:
    r"""The arguments for a range: without an end the key alone, with b"\0" every key from it on."""
    if not range_end:
        return {"key": key}
    if range_end == _NO_END:
        return {"from_key": key}
    return {"key": key, "range_end": range_end}

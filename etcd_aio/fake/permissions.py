"""Permissions: whether intervals of keys cover an interval. Pure."""

from collections.abc import Iterable
from typing import Final, TypeAlias

Interval: TypeAlias = tuple[bytes, bytes | None]
"""The first key, and the key behind the last one; None for no end."""

FROM_KEY: Final = b"\x00"  # the end that means: all keys from the first one on


def interval(key: bytes, end: bytes) -> Interval:
    """The interval of a request or of a permission; an empty end means the key alone."""
    if not end:
        return key, key + b"\x00"
    return key, None if end == FROM_KEY else end


def covers(granted: Iterable[Interval], wanted: Interval) -> bool:
    """Whether the union of the granted intervals contains the wanted one."""
    begin, end = wanted
    for first, last in sorted(granted, key=lambda one: one[0]):
        if first > begin:
            return False
        if last is None:
            return True
        if last > begin:
            begin = last
            if end is not None and begin >= end:  # not before: even an interval without keys needs a permission
                return True
    return False


def is_valid(key: bytes, end: bytes) -> bool:
    """Whether a permission may have this interval."""
    return bool(key) and (not end or end == FROM_KEY or key < end)

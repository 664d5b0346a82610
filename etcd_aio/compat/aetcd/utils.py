"""Functions of `aetcd.utils`."""

from typing import Any


def to_bytes(maybe_bytes: bytes | str) -> bytes:
    """Bytes as they are, text as UTF-8."""
    return maybe_bytes if isinstance(maybe_bytes, bytes) else maybe_bytes.encode()


def prefix_range_end(prefix: bytes) -> bytes:
    """The end of the range of all keys that begin with a prefix, as aetcd writes it: trailing 0xff bytes stay."""
    stem = prefix.rstrip(b"\xff")
    if not stem:
        return prefix
    return stem[:-1] + bytes((stem[-1] + 1,)) + prefix[len(stem) :]


def lease_to_id(lease: Any) -> int:
    """The id of a lease, which is given as an object or as a number; 0 if there is none."""
    if hasattr(lease, "id"):
        return int(lease.id)
    return 0 if lease is None else int(lease)

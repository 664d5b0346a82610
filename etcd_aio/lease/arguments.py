"""Checks of the arguments of leases: their TTLs and their ids."""

from typing import Final

from etcd_aio.arguments import MIN_INT64, whole_number
from etcd_aio.errors import InvalidRequestError, LeaseTTLTooLargeError

MAX_TTL: Final = 9_000_000_000  # seconds; etcd's own limit


def checked_ttl(ttl: int) -> int:
    """Return a TTL, checked."""
    if whole_number(ttl, "ttl") < 1:
        raise InvalidRequestError(f"ttl must be at least 1 second, got {ttl}")
    if ttl > MAX_TTL:
        raise LeaseTTLTooLargeError(f"ttl must be at most {MAX_TTL} seconds, got {ttl}")
    return ttl


def checked_id(id: int) -> int:
    """Return the id for a new lease, checked: 0 is no lease."""
    if whole_number(id, "id", minimum=MIN_INT64) == 0:
        raise InvalidRequestError("id must not be 0, which stands for no lease")
    return id

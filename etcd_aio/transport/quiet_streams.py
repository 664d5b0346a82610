"""Quiet streams, whose silence means nothing: only for connections with room for them.

The server allows a number of streams on a connection (`--max-concurrent-streams` of etcd). Where there are few, calls
would wait for one that a quiet stream takes.
"""

from typing import Final

from etcd_aio.errors import AttemptFailure, Delivery, StatusCode

FEWEST: Final = 10
"""Streams that the server must allow: one for watches, one for leases, and some calls."""


def check_room(most_streams: int) -> None:
    """Check that a connection has room for a quiet stream.

    Args:
        most_streams: how many the server allows.

    Raises:
        AttemptFailure: it has not.
    """
    if most_streams < FEWEST:
        text = f"the server allows only {most_streams} streams on a connection"
        raise AttemptFailure(StatusCode.RESOURCE_EXHAUSTED, text, Delivery.UNSENT)

"""Quiet streams, whose silence means nothing: they are opened only where the server allows many streams.

etcd limits the streams of a connection (`--max-concurrent-streams`). With a low limit, calls would have to wait until a
quiet stream ends.
"""

from typing import Final

from etcd_aio.errors import AttemptFailure, Delivery, StatusCode

FEWEST: Final = 10
"""Streams that the server must allow: one for watches, one for leases, and some calls."""


def check_limit(most_streams: int) -> None:
    """Check that the server allows enough streams for one of them to be quiet.

    Args:
        most_streams: how many streams the server allows on the connection.

    Raises:
        AttemptFailure: it allows too few.
    """
    if most_streams < FEWEST:
        text = f"the server allows only {most_streams} streams on a connection"
        raise AttemptFailure(StatusCode.RESOURCE_EXHAUSTED, text, Delivery.UNSENT)

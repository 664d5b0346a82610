"""The part of `http2` that a compiled accelerator may do: the usual path of unary calls. Pure."""

from collections.abc import Iterable
from typing import Any, Protocol


class CallsAccelerator(Protocol):
    """Does exactly what `Outgoing` and `Http2Connection` do with usual calls and frames, and stops before any other.

    `Any` stands for the streams, whose classes only the transport knows.
    """

    def start(
        self,
        queue: Iterable[Any],
        streams: dict[int, Any],
        most: int,
        next_id: int,
        generation: int,
        stream_window: int,
        send_window: int,
        largest_frame: int,
        /,
    ) -> tuple[bytes, int, int]:
        """Start at most `most` calls from the head of the queue.

        Returns:
            The bytes to write, how many calls were started, and how many bytes of the send window they used.
        """
        ...

    def advance(
        self, data: bytes, at: int, streams: dict[int, Any], known: dict[bytes, Any], room: int, /
    ) -> tuple[int, int, int]:
        """Process frames of answers from a position on.

        Args:
            data: received bytes.
            at: where a frame begins.
            streams: by id; those that end are removed.
            known: header blocks that were decoded before.
            room: bytes of DATA that may come before the connection's window needs attention.

        Returns:
            Where the first frame begins that was not processed, the bytes of DATA that were, and the number of frames.
        """
        ...

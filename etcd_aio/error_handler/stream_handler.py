"""Stream handler: the interface between the supervisor of a stream and the owner of the stream.

The supervisor has the stream: it opens it, judges its failures, waits, opens it elsewhere, closes it. The handler knows
the meaning: which requests are still to be sent, what a reply changes, when a silence is too long. A handler is a pure
state machine: it never waits, it gets the time as an argument, and its methods are called from the loop, one at a time.
Every change of a handler from outside (a new watch, a lease that is due) must be followed by `StreamSupervisor.wake()`.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from etcd_aio.errors import EtcdError

Request_co = TypeVar("Request_co", covariant=True)
Reply_contra = TypeVar("Reply_contra", contravariant=True)


class StreamHandler(Protocol[Request_co, Reply_contra]):
    """Sends the requests of a stream that outlives its connections, and gets its replies."""

    @property
    def is_needed(self) -> bool:
        """Whether the stream is needed; a stream that is not needed is closed until it is needed again."""
        ...

    @property
    def due(self) -> float:
        """The instant at which to call `on_time`; infinity for never."""
        ...

    def requests(self, now: float) -> Iterable[Request_co]:
        """Return the requests to send now, in order; each request is returned once for each stream."""
        ...

    def on_open(self, endpoint: str, now: float) -> None:
        """A new stream is open at `endpoint`. The server knows nothing of earlier ones: all requests are due again."""

    def on_reply(self, reply: Reply_contra, now: float) -> None:
        """The server sent a reply."""

    def on_time(self, now: float) -> str | None:
        """`due` has come. Returning a text ends this stream for that reason, and another one is opened elsewhere."""
        ...

    def on_lost(self, error: EtcdError, now: float) -> bool:
        """The stream is gone, and another one will be opened. Called once for each `on_open`.

        Returns:
            bool: whether the handler will change the requests that brought a reply which this side rejects, or send the
                one that the server rejected later. If not, another stream would end as this one did, and there will be
                none. The server's rejection of one request is no failure of the member: the next stream is opened at
                once. So the handler returns True for it only as often as it is worth a stream.
        """
        ...

    def on_refused(self, error: EtcdError, now: float) -> bool:
        """Another stream would be refused too: the server rejects a request, or there is no token.

        Returns:
            bool: whether to try again all the same, after a wait. If not, there will be no further stream.
        """
        ...

    def on_end(self, error: EtcdError) -> None:
        """No further stream is opened, for this final reason. No method is called afterwards until `on_open`."""

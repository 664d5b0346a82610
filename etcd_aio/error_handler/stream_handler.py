"""StreamHandler: what the owner of a supervised stream says, and hears.

Knows: the words between a stream's supervisor and its owner. Never knows: what is said, how it travels.

The division of labour. The supervisor has the stream: it opens it, judges its failures, waits, opens it elsewhere,
closes it. The conversation has the meaning: what is still to be said, what an answer changes, when silence is too long.
A conversation is a pure machine: it never waits, it is told the time, and each method is called from the loop, one at
a time. Whatever changes what it wants (a new watch, a lease that is due) is followed by `StreamSupervisor.wake()`.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from etcd_aio.errors import EtcdError

Request_co = TypeVar("Request_co", covariant=True)
Reply_contra = TypeVar("Reply_contra", contravariant=True)


class StreamHandler(Protocol[Request_co, Reply_contra]):
    """One side of a stream that outlives its connections."""

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to talk about; a stream that nobody needs is closed, until there is again."""
        ...

    @property
    def due(self) -> float:
        """The instant at which `on_time` is to be called; infinity for never."""
        ...

    def requests(self, now: float) -> Iterable[Request_co]:
        """What is to be sent now, in order; each request is handed out once for each stream."""
        ...

    def on_open(self, endpoint: str, now: float) -> None:
        """A new stream is open at `endpoint`, and knows nothing: everything is to be said again."""
        ...

    def on_reply(self, reply: Reply_contra, now: float) -> None:
        """The server said something."""
        ...

    def on_time(self, now: float) -> str | None:
        """`due` has come. A text says that this stream is to be given up, and why: another one is opened elsewhere."""
        ...

    def on_lost(self, error: EtcdError, now: float) -> bool:
        """The stream is gone, and another one will be opened. Called once for each `on_open`.

        Returns:
            bool: whether it will be said in another way what brought an answer that this side does not take; if not,
                another stream would end as this one did, and there will be none.
        """
        ...

    def on_refused(self, error: EtcdError, now: float) -> bool:
        """Another stream would be refused too: for what is said on it, or since no token is given.

        Returns:
            bool: whether to try again all the same, after a wait. If not, there will be no further stream.
        """
        ...

    def on_end(self, error: EtcdError) -> None:
        """There will be no further stream, for this final reason. Nothing is called afterwards until `on_open`."""
        ...

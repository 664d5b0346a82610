"""Observer: the base class of objects that are notified of calls, streams and members: `Client(observers=[...])`."""

from typing import Protocol, TypeAlias

from etcd_aio.observing.records import (
    AttemptEnded,
    CallOutcome,
    CallStarted,
    EndpointChange,
    LeaseChange,
    LoginEnded,
    StreamChange,
    WatchAdvance,
)
from etcd_aio.types import EndpointStatistics, StreamStatistics

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""Names in lower case, and values of printable ASCII."""


class ObservedClient(Protocol):
    """A client, as its observers see it. It is the `Client` itself; an observer needs no more of it than this.

    It can be hashed and referred to weakly. Call the methods in its event loop.
    """

    @property
    def name(self) -> str:
        """Name of the client; empty if it has none."""
        ...

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints that it uses."""
        ...

    def statistics(self) -> tuple[EndpointStatistics, ...]:
        """State, health and traffic of each endpoint."""
        ...

    def streams(self) -> tuple[StreamStatistics, ...]:
        """The streams in use."""
        ...


class CallObserver:
    """Observes one call; made by `Observer.call_started`.

    Override the methods of interest in a class of your own; for the others nothing is made.

    Attributes:
        metadata: headers that are sent with each attempt, such as a trace context. They never enter a compression
            table. Read once, when the call begins.
    """

    __slots__ = ()

    metadata: Headers = ()

    def attempt_started(self, endpoint: str) -> None:
        """An attempt begins at this endpoint. A read that is hedged has two at a time."""

    def attempt_ended(self, attempt: AttemptEnded) -> None:
        """An attempt has ended. Each that was started ends once, before the call does."""

    def ended(self, outcome: CallOutcome) -> None:
        """The call has ended: by its result, an error, or a cancellation. Called exactly once."""


class Observer:
    """Notified of what a client does. Override the methods of interest; the others cost nothing.

    The methods are called in the client's event loop, in the task that does the work. They must return without waiting,
    and they cannot change anything. An exception is logged, at most once a minute for each observer, and the client
    continues.
    """

    def client_started(self, client: ObservedClient) -> None:
        """A client with this observer is used for the first time.

        It may be asked until it is closed. A reference to it should be weak: for a client that is dropped without
        `aclose()`, `client_closed` is never called.
        """

    def client_closed(self, client: ObservedClient) -> None:
        """A client that was used is being closed: called once. The ends of its streams and connections follow."""

    def call_started(self, call: CallStarted) -> CallObserver | None:
        """A call begins. Returns the observer of this call; None if it is of no interest."""
        return None

    def endpoint_changed(self, change: EndpointChange) -> None:
        """The connection to an endpoint, or the health of its member, has changed."""

    def stream_changed(self, change: StreamChange) -> None:
        """A stream of watches or leases was opened, lost, resumed or ended."""

    def watch_advanced(self, advance: WatchAdvance) -> None:
        """A watch got events: called for each batch."""

    def lease_changed(self, change: LeaseChange) -> None:
        """A lease was granted, renewed, lost or ended."""

    def login_ended(self, login: LoginEnded) -> None:
        """A login has succeeded or failed."""

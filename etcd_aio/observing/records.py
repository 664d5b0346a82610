"""Records: the arguments of the methods of observers.

They hold no keys and no values, except that the text of an error may name keys. They never hold passwords or tokens.
"""

from typing import Literal, TypeAlias

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import Delivery, EtcdError, StatusCode

StreamEvent: TypeAlias = Literal["opened", "lost", "resumed", "ended"]
"""The event of a stream; see `StreamChange`."""

LeaseEvent: TypeAlias = Literal["granted", "renewed", "lost", "ended"]
"""The event of a lease; see `LeaseChange`."""


@dataclass(frozen=True, slots=True, eq=False)
class CallStarted:
    """A call began. For a reply that the server streams, each message that is read counts as a call.

    Attributes:
        method: name of the RPC, such as "KV/Range".
        path: the RPC as gRPC names it, such as "/etcdserverpb.KV/Range".
        endpoints: where the call may go.
        timeout: seconds that the call may take with all its attempts; infinity for no limit.
        is_continued: whether it reads a further message of a reply that the server streams, on the stream of the last.
        client: name of the client; empty if it has none.
    """

    method: str
    path: str
    endpoints: tuple[str, ...]
    timeout: float
    is_continued: bool = False
    client: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class AttemptEnded:
    """An attempt of a call has ended.

    Attributes:
        endpoint: where it was made.
        status: the gRPC status; `CANCELLED` if the attempt was given up, as by the cancellation of the call.
        delivery: what is known about the server having got it.
        seconds: how long it took.
        message: the text of a failure.
    """

    endpoint: str
    status: StatusCode
    delivery: Delivery
    seconds: float
    message: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CallOutcome:
    """How a call ended. There is exactly one for each call that an observer was interested in.

    Attributes:
        status: the gRPC status: `OK`, that of the error, or `CANCELLED`.
        error: the exception; None if the call returned. For a cancellation it is an `asyncio.CancelledError`.
        attempts: how many attempts were begun.
        endpoint: of the last attempt; empty if there was none.
        seconds: how long the call took, with all attempts.
        is_cancelled: whether the task was cancelled that made the call.
        maybe_applied: whether a write that failed may have been applied. A cancelled one that was sent may have been.
    """

    status: StatusCode
    error: BaseException | None
    attempts: int
    endpoint: str
    seconds: float
    is_cancelled: bool
    maybe_applied: bool


@dataclass(frozen=True, slots=True, eq=False)
class EndpointChange:
    """The connection to an endpoint, or what is known of its member's health, has changed.

    Attributes:
        endpoint: its name.
        state: of the connection, as in `EndpointStatistics.state`: "IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE",
            or "SHUTDOWN" when the endpoint is not used any more.
        health: of the member, as in `EndpointStatistics.health`: its name.
        reason: why it is not healthy, or not connected; empty if it is, or for no known reason.
        client: name of the client; empty if it has none.
    """

    endpoint: str
    state: str
    health: str
    reason: str
    client: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class StreamChange:
    """A stream that watches, or leases, of a client share has changed.

    Attributes:
        event: "opened": it is open at an endpoint; "resumed": the server there has answered, after a loss; "lost": it
            was lost or left at an endpoint, or could not be opened there, and the client tries again; "ended": there is
            none until it is needed again.
        method: name of the RPC.
        name: of the stream: a client may have several for the same RPC.
        endpoint: where; empty if it has ended.
        error: why it was lost, or why there will be no further stream; else None.
        client: name of the client; empty if it has none.
    """

    event: StreamEvent
    method: str
    name: str
    endpoint: str
    error: EtcdError | None = None
    client: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class WatchAdvance:
    """A watch got events, which its consumer has yet to take.

    Attributes:
        events: how many came at once.
        revision: that of the last one.
        pending: how many wait for the consumer now.
        client: name of the client; empty if it has none.
    """

    events: int
    revision: int
    pending: int
    client: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class LeaseChange:
    """A lease that the client keeps alive has changed.

    Attributes:
        event: "granted": it is kept alive from now on; "renewed"; "lost": it is gone although its holder needs it;
            "ended": its holder does not need it any more, and revokes it or leaves it to its TTL.
        lease: its id.
        ttl: its TTL in seconds.
        error: why it was lost; else None.
        client: name of the client; empty if it has none.
    """

    event: LeaseEvent
    lease: int
    ttl: int
    error: EtcdError | None = None
    client: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class LoginEnded:
    """The client has a new token, or could not get one.

    Attributes:
        seconds: how long it took.
        error: the reason if there is no token; else None.
        client: name of the client; empty if it has none.
    """

    seconds: float
    error: EtcdError | None
    client: str = ""

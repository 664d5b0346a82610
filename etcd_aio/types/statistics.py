"""Statistics: the records in `client.statistics()` and `client.streams()`."""

from enum import Enum

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import EtcdError


class ConnectivityState(Enum):
    """The state of one sub-connection, as gRPC names it."""

    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    TRANSIENT_FAILURE = "transient_failure"
    SHUTDOWN = "shutdown"


class Health(Enum):
    """The health of a member's service."""

    HEALTHY = "healthy"
    SILENT = "silent"
    FAILING = "failing"
    NO_LEADER = "no leader"
    LEARNER = "learner"
    NOT_SERVING = "not serving"  # the member says so, as while it defragments
    NOT_CONNECTED = "not connected"  # only in statistics: without a connection there is no evidence


@dataclass(frozen=True, slots=True)
class EndpointStatistics:
    """The state, health and traffic of one endpoint.

    Several members may be behind it. What is said of its member is about the one that the connection leads to now; the
    counts are those of the endpoint.

    Attributes:
        endpoint: the endpoint's name.
        state: its connectivity state.
        since: seconds in that state.
        health: the member's health for calls that need the cluster. An unhealthy member is used last. Without a
            connection it is `Health.NOT_CONNECTED`.
        local_health: the member's health for serializable reads, which it serves alone.
        health_reason: the reason, in words; empty if it is healthy, or not connected for no known reason.
        health_since: seconds since the health last changed.
        is_leader: whether its member leads the cluster; only known with the policy `leader_first`.
        in_flight: attempts under way.
        streams: open streams.
        latency: moving average of the latency of successful attempts, in seconds.
        attempts: attempts that have ended, with any outcome, including cancelled ones.
        failures: attempts that ended without an answer.
        connects: how many connections of it came into use: each time that it became READY, or moved to another one.
        last_error: the last error of a dial or a connection; None if there was none.
        client: name of the client; empty if it has none.
        engine: the engine of its connection, such as "native" or "gateway"; empty without a connection.
    """

    endpoint: str
    state: ConnectivityState = ConnectivityState.IDLE
    since: float = 0.0
    health: Health = Health.NOT_CONNECTED
    local_health: Health = Health.NOT_CONNECTED
    health_reason: str = ""
    health_since: float = 0.0
    is_leader: bool = False
    in_flight: int = 0
    streams: int = 0
    latency: float = 0.0
    attempts: int = 0
    failures: int = 0
    connects: int = 0
    last_error: BaseException | None = None
    client: str = ""
    engine: str = ""


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """A stream that outlives its connections. All leases of a client share one; all watches, unless they name another.

    Attributes:
        method: name of the RPC.
        endpoint: where the stream is open; empty if it is not.
        is_open: whether it is open. If not, no member could be reached for it yet.
        since: seconds for which it has been open, or has been needed without being open.
        opened: how often it was opened.
        last_error: why it was moved or lost the last time; None if it never was.
        client: name of the client; empty if it has none.
    """

    method: str
    endpoint: str
    is_open: bool
    since: float
    opened: int
    last_error: EtcdError | None
    client: str = ""

"""The record of one endpoint in `client.statistics()`."""

from dataclasses import dataclass

from etcd_aio.balancer.connectivity import ConnectivityState
from etcd_aio.balancer.health_verdicts import Health
from etcd_aio.errors import printable


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


def reason_of(error: BaseException | None) -> str:
    """The reason why there is no connection, in words; empty if unknown."""
    return "" if error is None else printable(f"{type(error).__name__}: {error}")


def unused(endpoint: str, last_error: BaseException | None, client: str = "") -> EndpointStatistics:
    """The record of an endpoint that the policy does not connect."""
    return EndpointStatistics(endpoint, health_reason=reason_of(last_error), last_error=last_error, client=client)

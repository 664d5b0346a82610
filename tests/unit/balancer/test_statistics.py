"""balancer/statistics.py, types/statistics.py: the record of an endpoint that is not used says so, and keeps why."""

from etcd_aio.balancer.statistics import unused
from etcd_aio.types import ConnectivityState, Health


def test_an_endpoint_without_a_connection() -> None:
    reason = ConnectionRefusedError(111, "gone")
    record = unused("m1:2379", reason)
    assert (record.endpoint, record.state, record.health) == ("m1:2379", ConnectivityState.IDLE, Health.NOT_CONNECTED)
    assert record.local_health is Health.NOT_CONNECTED
    assert record.health_reason == "ConnectionRefusedError: [Errno 111] gone"
    assert unused("m1:2379", None).health_reason == ""
    assert record.last_error is reason
    assert (record.attempts, record.connects, record.in_flight, record.streams) == (0, 0, 0, 0)

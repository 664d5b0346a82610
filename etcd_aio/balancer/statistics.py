"""The statistics of an endpoint without a connection."""

from etcd_aio.errors import printable
from etcd_aio.types import EndpointStatistics


def reason_of(error: BaseException | None) -> str:
    """The reason why there is no connection, in words; empty if unknown."""
    return "" if error is None else printable(f"{type(error).__name__}: {error}")


def unused(endpoint: str, last_error: BaseException | None, client: str = "") -> EndpointStatistics:
    """The record of an endpoint that the policy does not connect."""
    return EndpointStatistics(endpoint, health_reason=reason_of(last_error), last_error=last_error, client=client)

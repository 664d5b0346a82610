"""EndpointReporter: from snapshots of the endpoints to their changes, for observers."""

from collections.abc import Callable, Iterable
from typing import Final

from etcd_aio.observing import EndpointChange
from etcd_aio.types import ConnectivityState, EndpointStatistics, Health

_NEW: Final = (ConnectivityState.IDLE, Health.NOT_CONNECTED)  # what each endpoint begins as is no change


class EndpointReporter:
    """Reports each endpoint whose state or health differs from its last report.

    Args:
        on_change: called with each change.
        client: name of the client; empty if it has none.
    """

    def __init__(self, on_change: Callable[[EndpointChange], None], client: str = "") -> None:
        self._on_change = on_change
        self._client = client
        self._told: dict[str, tuple[ConnectivityState, Health]] = {}

    def report(self, endpoints: Iterable[EndpointStatistics]) -> None:
        """Compare with what was reported before. An endpoint that is missing is not used any more."""
        current = {one.endpoint: one for one in endpoints}
        for name in [name for name in self._told if name not in current]:
            del self._told[name]
            change = EndpointChange(name, ConnectivityState.SHUTDOWN.name, Health.NOT_CONNECTED.name, "", self._client)
            self._on_change(change)
        for name, one in current.items():
            before, self._told[name] = self._told.get(name, _NEW), (one.state, one.health)
            if self._told[name] != before:
                change = EndpointChange(name, one.state.name, one.health.name, one.health_reason, self._client)
                self._on_change(change)

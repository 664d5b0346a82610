"""Proxy: a `FaultProxy` with calls that block instead of a loop of its own."""

from typing import Literal

from anyio.from_thread import BlockingPortal

from etcd_aio.testing import CutKind, Direction, Directions, FaultProxy, FaultProxyStatistics


class Proxy:
    """A TCP proxy before the server of the test: the fixture `etcd_proxy`. Its faults are those of `FaultProxy`."""

    def __init__(self, portal: BlockingPortal, proxy: FaultProxy) -> None:
        self._portal = portal
        self._proxy = proxy

    def __repr__(self) -> str:
        return repr(self._proxy)

    @property
    def endpoint(self) -> str:
        """The URL for clients."""
        return self._proxy.endpoint

    def statistics(self) -> FaultProxyStatistics:
        """The counters so far."""
        return self._portal.call(self._proxy.statistics)

    def refuse(self) -> None:
        """Refuse new connections; open ones go on."""
        self._portal.call(self._proxy.refuse)

    def accept(self) -> None:
        """Accept connections again."""
        self._portal.call(self._proxy.accept)

    def cut(self) -> None:
        """End all open connections with FIN."""
        self._portal.call(self._proxy.cut)

    def reset(self) -> None:
        """End all open connections with RST."""
        self._portal.call(self._proxy.reset)

    def black_hole(self, direction: Directions = "both") -> None:
        """Let nothing pass in a direction, until `heal`."""
        self._portal.call(self._proxy.black_hole, direction)

    def delay(self, seconds: float, direction: Directions = "both") -> None:
        """Pass every byte on so much later; 0 ends it."""
        self._portal.call(self._proxy.delay, seconds, direction)

    def throttle(self, bytes_per_second: float | None, direction: Directions = "both") -> None:
        """Pass on at most so many bytes a second; None ends it."""
        self._portal.call(self._proxy.throttle, bytes_per_second, direction)

    def cut_after(
        self,
        n_bytes: int,
        direction: Direction = "to_client",
        how: CutKind = "rst",
        *,
        connection: Literal["next", "open"] = "next",
    ) -> None:
        """Pass on exactly `n_bytes` more bytes in a direction, then end the connection. See `FaultProxy.cut_after`."""
        self._portal.call(lambda: self._proxy.cut_after(n_bytes, direction, how, connection=connection))

    def heal(self) -> None:
        """End all faults."""
        self._portal.call(self._proxy.heal)

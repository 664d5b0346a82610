"""Readiness: can this worker serve requests that need etcd? Probes within a second share one answer.

Liveness is not asked here: it must not depend on etcd, or an outage of etcd would restart every worker.
"""

import asyncio
from dataclasses import dataclass
from typing import Final, TypeAlias

from etcd_aio import Client, EtcdError
from etcd_aio.base import start_background_task
from etcd_aio.types import ConnectivityState, EndpointStatistics

READ_TIMEOUT: Final = 1.0  # seconds; kubelet's probes wait one second by default
SHARED_FOR: Final = 1.0  # seconds from the start of a check

Document: TypeAlias = dict[str, bool | str | list[dict[str, str]]]
"""The body of an answer, for JSON."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """The outcome of a check.

    Attributes:
        is_ready: whether requests that need etcd can be served.
        reason: why not, without addresses; empty if it is ready.
        endpoints: state and health of each endpoint.
        error: why the read failed; None if it did not, or was not made.
    """

    is_ready: bool
    reason: str
    endpoints: tuple[EndpointStatistics, ...]
    error: EtcdError | None = None

    @property
    def status(self) -> int:
        """The status of the HTTP response."""
        return 200 if self.is_ready else 503

    def document(self, *, details: bool = False) -> Document:
        """The body of the HTTP response.

        Args:
            details: also the addresses of the endpoints, and the texts of errors, which may name them.
        """
        shown: list[dict[str, str]] = []
        for endpoint in self.endpoints:
            entry = {"state": endpoint.state.name, "health": endpoint.health.name}
            if details:
                entry |= {"endpoint": endpoint.endpoint, "reason": endpoint.health_reason}
            shown.append(entry)
        found: Document = {"ready": self.is_ready, "endpoints": shown}
        if self.reason:
            found["reason"] = self.reason
        if details and self.error is not None:
            found["error"] = str(self.error)
        return found


class ReadinessCheck:
    """Checks a client, at most once a second however many ask.

    Args:
        client: the client.
        read: whether a linearizable read must be answered, besides a connection.
    """

    def __init__(self, client: Client, *, read: bool) -> None:
        self._client = client
        self._reads = read
        self._checking: asyncio.Task[Readiness] | None = None
        self._began = 0.0

    async def ask(self) -> Readiness:
        """The answer of a check that began less than a second ago, or of one that begins now.

        Cancellation: the check goes on, since others may wait for it.
        """
        now = asyncio.get_running_loop().time()
        checking = self._checking
        if checking is None or (checking.done() and now - self._began >= SHARED_FOR):
            checking = self._checking = start_background_task(self._check(), name="etcd_aio readiness")
            self._began = now
        await asyncio.wait([checking])
        if checking.cancelled():
            return Readiness(is_ready=False, reason="the application stops", endpoints=())
        return checking.result()

    async def _check(self) -> Readiness:
        endpoints = self._client.statistics()
        if not any(endpoint.state is ConnectivityState.READY for endpoint in endpoints):
            return Readiness(is_ready=False, reason="no member is connected", endpoints=endpoints)
        if not self._reads:
            return Readiness(is_ready=True, reason="", endpoints=endpoints)
        try:
            await self._client.ping(timeout=READ_TIMEOUT)
        except EtcdError as error:
            reason = f"a read failed: {type(error).__name__}"
            return Readiness(is_ready=False, reason=reason, endpoints=self._client.statistics(), error=error)
        return Readiness(is_ready=True, reason="", endpoints=self._client.statistics())

    async def aclose(self) -> None:
        """End a check that is under way; its answer is that the application stops."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.wait([self._checking])

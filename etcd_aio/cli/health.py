"""The verb health: whether the cluster is healthy, for scripts and for jobs that wait for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from etcd_aio import EtcdError
from etcd_aio.cli.arguments import exactly
from etcd_aio.cli.endpoint import endpoints_of, health_of, of_cluster, verbose
from etcd_aio.cli.grammar import Switch, value, verb
from etcd_aio.cli.lock import seconds
from etcd_aio.cli.outcome import ExitCode, Failure
from etcd_aio.cli.results import ClusterHealth, EndpointHealth
from etcd_aio.cli.session import Session

_PAUSE: Final = 0.5  # seconds between two checks


@verb(
    "health",
    "",
    of_cluster(),
    verbose(),
    Switch("--quorum", help="one endpoint that reads with quorum is enough"),
    value("--wait", default="", help="wait this long for the cluster to become healthy, such as 30s"),
)
async def health(
    session: Session, words: tuple[str, ...], *, cluster: bool, verbose: bool, quorum: bool, wait: str
) -> None:
    """Tells whether the cluster is healthy: exit code 0, else 5, with the reasons by endpoint on stderr.

    An endpoint is healthy if it answers a read with quorum, and there is no alarm.
    """
    exactly(words, 0, "health accepts no arguments")
    session.check_format()

    async def look() -> ClusterHealth:
        return await _look(session, cluster, quorum, with_words=verbose)

    found = await _waited(look, seconds(wait, "--wait")) if wait else None
    found = found or await look()
    session.show(found)
    for row in found.endpoints:
        if not row.is_healthy:
            session.complain(f"{row.endpoint}: {row.error.strip()}")
    if not found.is_healthy:
        raise Failure(ExitCode.INTERRUPTED)


async def _look(session: Session, cluster: bool, quorum: bool, *, with_words: bool) -> ClusterHealth:
    """Ask every endpoint once; those that were given, if the members cannot be listed."""
    endpoints = session.connection.endpoints
    try:
        endpoints = await endpoints_of(session, cluster)
    except EtcdError as error:
        return ClusterHealth(
            False, tuple(EndpointHealth(one, is_healthy=False, took="", error=f"{error}") for one in endpoints)
        )
    rows = await health_of(session, endpoints, with_words=with_words)
    return ClusterHealth((any if quorum else all)(row.is_healthy for row in rows), rows)


async def _waited(look: Callable[[], Awaitable[ClusterHealth]], limit: float) -> ClusterHealth | None:
    """Ask until the cluster is healthy; the last answer after so many seconds, None if there was none."""
    found = None
    try:
        async with asyncio.timeout(limit):
            while True:
                found = await look()
                if found.is_healthy:
                    return found
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        return found

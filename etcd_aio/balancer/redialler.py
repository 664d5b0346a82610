"""Dials an endpoint anew, beside its connection, and moves there if the new peer serves: see `redial_schedule`.

Whether the new peer is another member does not matter. It may be one that is cut off as well, and to move there would
gain nothing; if it serves, it is the better one in any case. A dial that brings nothing better is closed at once, so
there are never more than two connections to an endpoint, besides those that drain.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from etcd_aio.balancer.probe import probe_cluster_id
from etcd_aio.balancer.redial_schedule import RedialSchedule
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.base.aio import start_background_task
from etcd_aio.base.closing import TwoPartClose, Unwinding
from etcd_aio.transport import Connection

if TYPE_CHECKING:
    import asyncio

    from etcd_aio.balancer.connection_record import ConnectionRecord


class Redialler(TwoPartClose):
    """Owner of the one dial that is under way.

    Args:
        check_cluster: raises if an id is not that of the cluster; called with the id and the endpoint.
        on_moved: called after a move.
        random: returns a number in [0, 1), for jitter.
    """

    def __init__(
        self, check_cluster: Callable[[int, str], None], on_moved: Callable[[], None], random: Callable[[], float]
    ) -> None:
        self._check_cluster = check_cluster
        self._on_moved = on_moved
        self._schedule = RedialSchedule(random)
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def consider(self, ready: tuple[SubConnection, ...], now: float) -> None:
        """Dial if it is time to; one endpoint after the other.

        Args:
            ready: the READY sub-connections.
            now: the instant.
        """
        if not ready or self._is_closed or (self._task is not None and not self._task.done()):
            return
        unserved_since = max(sub_connection.quorum_health.unserved_since for sub_connection in ready)
        if self._schedule.is_due(unserved_since, now):
            chosen = ready[(self._schedule.dials - 1) % len(ready)]
            name = f"etcd_aio dial {chosen.endpoint_name} anew"
            self._task = start_background_task(self._redial(chosen), name=name)

    def close(self) -> Unwinding:
        """End the dial."""
        task = self._task
        if task is not None and not self._is_closed:
            task.cancel()
        self._is_closed = True
        return () if task is None else (task,)

    async def _redial(self, sub_connection: SubConnection) -> None:
        endpoint = sub_connection.endpoint_name
        record: ConnectionRecord | None = None
        has_moved = False
        reason = "the peer does not serve either, or the old one serves again"
        try:
            record = await sub_connection.dial_beside()
            has_moved = await self._serves(record.connection, endpoint) and sub_connection.move(record)
        except Exception as error:  # whatever it is, the connection that there is stays in use
            reason = f"{type(error).__name__}: {error}"
        finally:
            if record is not None and not has_moved:
                record.discard()
        if has_moved:
            self._on_moved()
        else:
            text, fields = "endpoint %s: dialled anew in vain: %s", {"endpoint": endpoint}
            sub_connection.log.debug(text, endpoint, reason, extra=fields)

    async def _serves(self, connection: Connection | None, endpoint: str) -> bool:
        if connection is None:
            return False
        cluster_id = await probe_cluster_id(connection)
        if cluster_id is not None:
            self._check_cluster(cluster_id, endpoint)
        return cluster_id is not None

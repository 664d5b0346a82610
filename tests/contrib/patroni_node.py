"""A node of Patroni without Postgres: its store, and a loop that uses it as Patroni's does."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from patroni.exceptions import DCSError
from patroni.postgresql.mpp import get_mpp

from etcd_aio.contrib.patroni.etcd3aio import Etcd3Aio

SCOPE = "batman"
PATH = f"/service/{SCOPE}/"
LIMITS = {"ttl": 30, "loop_wait": 10, "retry_timeout": 10}


def section(endpoints: str | Iterable[str], **more: Any) -> dict[str, Any]:
    """The section of the configuration, as Patroni gives it to a store."""
    hosts = [endpoints] if isinstance(endpoints, str) else [*endpoints]
    return {"hosts": [host.partition("://")[2] for host in hosts], "scope": SCOPE, "name": "n1", **LIMITS, **more}


@asynccontextmanager
async def node(
    endpoints: str | Iterable[str], groups: dict[str, Any] | None = None, **more: Any
) -> AsyncIterator[Etcd3Aio]:
    """The store of a node. Its methods block: use them in a thread."""
    dcs = await asyncio.to_thread(Etcd3Aio, section(endpoints, **more), get_mpp(groups or {}))
    try:
        yield dcs
    finally:
        await asyncio.to_thread(dcs.close)


class Loop:
    """A primary: a thread that runs Patroni's loop.

    Attributes:
        demotions: why a primary of Patroni would have been demoted.
        longest: seconds of the longest call, by method.
        rounds: how often the loop has run.
    """

    def __init__(self, dcs: Etcd3Aio, period: float) -> None:
        self._dcs = dcs
        self._period = period
        self._is_over = False
        self.demotions: list[str] = []
        self.longest: dict[str, float] = {}
        self.rounds = 0
        self._thread = threading.Thread(target=self._run, name="loop of a primary")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._is_over = True
            await asyncio.to_thread(self._thread.join)

    def _timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        began = time.monotonic()
        try:
            return call(*arguments)
        finally:
            name = call.__name__
            self.longest[name] = max(self.longest.get(name, 0.0), time.monotonic() - began)

    def _run(self) -> None:
        while not self._is_over:
            try:
                self._round()
            except DCSError as error:
                self.demotions.append(f"{type(error).__name__}: {error.value}")
            self.rounds += 1
            self._dcs.watch(1, self._period)

    def _round(self) -> None:
        dcs = self._dcs
        cluster = self._timed(dcs.get_cluster)
        self._timed(dcs.touch_member, {"state": "running", "role": "primary", "round": self.rounds})
        if cluster.leader is not None:
            if not self._timed(dcs.update_leader, cluster, self.rounds + 1, None, {"n1": "http://n1"}):
                self.demotions.append("the leader key is not ours")
            return
        if self.rounds:
            self.demotions.append("there is no leader key")
        self._timed(dcs.attempt_to_acquire_leader)

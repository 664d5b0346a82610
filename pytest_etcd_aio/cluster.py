"""Cluster: a cluster of real servers as the fixtures give it, with calls that block instead of coroutines."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal

from etcd_aio.testing import EtcdCluster, EtcdServer
from pytest_etcd_aio.access import Access
from pytest_etcd_aio.server import Server

_T = TypeVar("_T")


class Cluster:
    """A cluster of real servers: the fixture `etcd_cluster`.

    After each test it is healed: members are connected, resumed and started again. Calls block, and may come from any
    thread.
    """

    def __init__(self, portal: BlockingPortal, cluster: EtcdCluster, access: Access, *, is_private: bool) -> None:
        self._portal = portal
        self._cluster = cluster
        self._access = access
        self._is_private = is_private
        self._has_network_faults = False
        self._members = {
            id(member): Server(portal, member, access, is_private=is_private) for member in cluster.members
        }

    def __repr__(self) -> str:
        return repr(self._cluster)

    @property
    def access(self) -> Access:
        """How clients reach it: endpoints, TLS, user."""
        return self._access

    @property
    def is_private(self) -> bool:
        """Whether no other test uses it."""
        return self._is_private

    @property
    def members(self) -> tuple[Server, ...]:
        """The members, always in the same order."""
        return tuple(self._members.values())

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Every member's client URL, in the order of the members."""
        return self._cluster.endpoints

    @property
    def version(self) -> str:
        """The version of etcd, such as "3.6.16"."""
        return self.members[0].version

    def leader(self, timeout: float = 10.0, *, other_than: Server | None = None) -> Server:
        """The member that leads, once a majority agrees on it.

        Args:
            timeout: seconds to wait for an election.
            other_than: wait until it is not this one.

        Raises:
            TimeoutError: no leader that a majority agrees on.
        """
        other = None if other_than is None else other_than._server
        found = self.run(lambda: self._cluster.leader(timeout, other_than=other))
        return self._members[id(found)]

    def followers(self, timeout: float = 10.0) -> tuple[Server, ...]:
        """Every member but the leader, those that do not run included.

        Raises:
            TimeoutError: as `leader`.
        """
        leader = self.leader(timeout)
        return tuple(member for member in self.members if member is not leader)

    def isolate(self, member: Server) -> None:
        """Cut a member off from its peers, both ways; clients still reach it. Linux only.

        Raises:
            RuntimeError: this is not Linux.
        """
        self._has_network_faults = True
        self._portal.call(self._cluster.isolate, member._server)

    def reconnect(self, member: Server) -> None:
        """End what `isolate` began."""
        self._portal.call(self._cluster.reconnect, member._server)

    def lag(self, member: Server, seconds: float) -> None:
        """Let a member follow the others so many seconds late; 0 ends it. Linux only.

        Raises:
            RuntimeError: this is not Linux.
        """
        self._has_network_faults = True
        self._portal.call(self._cluster.lag, member._server, seconds)

    def restart(self) -> None:
        """Kill all members and start them again with their data, on the same ports."""
        self.run(self._cluster.restart)

    def wait_healthy(self, timeout: float | None = None) -> None:
        """Wait until every member that runs and is not paused is healthy, and a majority agrees on a leader.

        Args:
            timeout: seconds; 20 by default.

        Raises:
            TimeoutError: not healthy in time.
        """
        self.run(self._cluster.wait_healthy, timeout)

    def is_healthy(self) -> bool:
        """Whether nothing has to be healed."""
        return not self._has_network_faults and all(member.is_healthy() for member in self.members)

    def heal(self) -> None:
        """Connect the members again, and let all of them run."""
        if self.is_healthy():
            return
        if self._has_network_faults:
            for member in self.members:
                self.reconnect(member)
                self.lag(member, 0)
            self._has_network_faults = False
        self.run(_heal_members, [member._server for member in self.members])
        self.wait_healthy()

    def run(self, function: Callable[..., Coroutine[Any, Any, _T]], *arguments: object) -> _T:
        """Run a coroutine function in the loop of the members."""
        result: _T = self._portal.call(function, *arguments)
        return result

    def close(self) -> None:
        """End all members."""
        self.run(self._cluster.aclose)


async def _heal_members(members: list[EtcdServer]) -> None:
    """Let all members run; those that have ended at once, since none is ready without a quorum."""
    for member in members:
        if member.is_paused:
            member.resume()
    async with asyncio.TaskGroup() as group:
        for member in members:
            if not member.is_running:
                group.create_task(member.restart(), name=f"restart {member.name}")

"""The members, the proxies to them, the faults of both, and their restoration.

However this process ends, no member stays frozen: the kernel kills the members with it.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy, ProbeError

Who: TypeAlias = Literal["leader", "follower", "none", "all"]

_HEALTHY_SECONDS: Final = 60.0
# Of each 0.1 s: like a container with a limit of a fifth of a core.
_STARVED_FOR: Final = 0.08
_FED_FOR: Final = 0.02


class Stage:
    """Three members with etcd's default times.

    Args:
        peer_proxies: whether members can be cut off from each other, which costs CPU.
    """

    def __init__(self, *, peer_proxies: bool) -> None:
        # Without fsync, because a slow disk looks like a slow member.
        flags = (
            "--quota-backend-bytes=8589934592",
            "--auto-compaction-retention=1000",
            "--auto-compaction-mode=revision",
        )
        self.cluster = EtcdCluster(size=3, fsync=False, peer_proxies=peer_proxies, flags=flags)
        self._proxies: dict[str, FaultProxy] = {}
        self._starving: asyncio.Task[None] | None = None
        self._isolated: set[str] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.cluster)
            for member in self.cluster.members:
                self._proxies[member.name] = await stack.enter_async_context(FaultProxy(member.endpoint))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_starving()
        await self._stack.__aexit__(kind, error, trace)

    @property
    def members(self) -> tuple[EtcdServer, ...]:
        """All members."""
        return self.cluster.members

    @property
    def version(self) -> str:
        """etcd's version."""
        return self.members[0].version

    def endpoints(self, *, via_proxies: bool) -> tuple[str, ...]:
        """The endpoints for clients."""
        return tuple(self.proxy(member).endpoint if via_proxies else member.endpoint for member in self.members)

    def proxy(self, member: EtcdServer) -> FaultProxy:
        """The proxy between clients and one member."""
        return self._proxies[member.name]

    async def choose(self, who: Who) -> tuple[EtcdServer, ...]:
        """The members that a fault affects."""
        if who == "all":
            return self.members
        if who == "none":
            return ()
        leader = await self.cluster.leader()
        if who == "leader":
            return (leader,)
        return (next(member for member in self.members if member is not leader),)

    def isolate(self, member: EtcdServer) -> None:
        """Cut a member off from its peers, but not from clients."""
        self._isolated.add(member.name)
        self.cluster.isolate(member)

    def reconnect(self, member: EtcdServer) -> None:
        """Connect it to its peers again."""
        self._isolated.discard(member.name)
        self.cluster.reconnect(member)

    def starve(self, member: EtcdServer) -> None:
        """Let a member run a fifth of the time, in short slices, until `feed`."""
        self._stop_starving()
        self._starving = asyncio.create_task(self._starve(member), name="starving")

    def feed(self, member: EtcdServer) -> None:
        """Let it run all the time again."""
        self._stop_starving()
        member.resume()

    async def restore(self) -> None:
        """End all faults, and wait until all members are healthy."""
        self._stop_starving()
        for member in self.members:
            if member.is_paused:
                member.resume()
            self.proxy(member).heal()
            if member.name in self._isolated:
                self.reconnect(member)
        await asyncio.gather(*(member.restart() for member in self.members if not member.is_running))
        await self.cluster.wait_healthy(_HEALTHY_SECONDS)
        await self._wait_for_unity()

    async def _starve(self, member: EtcdServer) -> None:
        try:
            while member.is_running:
                member.pause()
                await asyncio.sleep(_STARVED_FOR)
                member.resume()
                await asyncio.sleep(_FED_FOR)
        finally:
            with suppress(RuntimeError):
                member.resume()

    def _stop_starving(self) -> None:
        task, self._starving = self._starving, None
        if task is not None:
            task.cancel()

    async def _wait_for_unity(self) -> None:
        """Wait until all members, not only a majority, agree on the leader and the term."""
        async with asyncio.timeout(_HEALTHY_SECONDS):
            while True:
                with suppress(ProbeError):
                    opinions = await asyncio.gather(*(member.raft_status() for member in self.members))
                    if len({(opinion.leader_id, opinion.term) for opinion in opinions}) == 1 and opinions[0].leader_id:
                        return
                await asyncio.sleep(0.05)

"""The members, the roads to them, and everything that can be done to both; and putting it all back.

Knows: one cluster, a proxy before each member's clients. Never knows: who calls, or why something is done.

Whatever happens to this process, no member stays stopped: the kit has the kernel kill them.
"""

import asyncio
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy, ProbeError

Who: TypeAlias = Literal["leader", "follower", "nobody", "all"]

_HEALTHY_SECONDS: Final = 60.0
# Of each tenth of a second: what a container gets that may use a fifth of a core.
_STARVED_FOR: Final = 0.08
_FED_FOR: Final = 0.02


class Stage:
    """Three members with etcd's default times.

    Args:
        peer_proxies: whether members can be cut off from each other; it costs them CPU.
    """

    def __init__(self, *, peer_proxies: bool) -> None:
        # Without fsync: a slow disk looks like a slow member, and this is not about disks.
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
        """All of them."""
        return self.cluster.members

    @property
    def version(self) -> str:
        """etcd's version."""
        return self.members[0].version

    def endpoints(self, *, via_proxies: bool) -> tuple[str, ...]:
        """Where clients find the members."""
        return tuple(self.road(member).endpoint if via_proxies else member.endpoint for member in self.members)

    def road(self, member: EtcdServer) -> FaultProxy:
        """The proxy before one member's clients."""
        return self._proxies[member.name]

    async def choose(self, who: Who) -> tuple[EtcdServer, ...]:
        """The members that something is to be done to."""
        if who == "all":
            return self.members
        if who == "nobody":
            return ()
        leader = await self.cluster.leader()
        if who == "leader":
            return (leader,)
        return (next(member for member in self.members if member is not leader),)

    def isolate(self, member: EtcdServer) -> None:
        """Cut it off from its peers, not from us."""
        self._isolated.add(member.name)
        self.cluster.isolate(member)

    def reconnect(self, member: EtcdServer) -> None:
        """End that."""
        self._isolated.discard(member.name)
        self.cluster.reconnect(member)

    def starve(self, member: EtcdServer) -> None:
        """Let it run a fifth of the time, in small pieces, until `feed`."""
        self._stop_starving()
        self._starving = asyncio.create_task(self._starve(member), name="starving")

    def feed(self, member: EtcdServer) -> None:
        """Let it run all the time."""
        self._stop_starving()
        member.resume()

    async def restore(self) -> None:
        """Take back whatever was done, and wait until all members are healthy again."""
        self._stop_starving()
        for member in self.members:
            if member.is_paused:
                member.resume()
            self.road(member).heal()
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
        """Until all members have one leader in one term: a majority is not enough to begin something new with."""
        async with asyncio.timeout(_HEALTHY_SECONDS):
            while True:
                with suppress(ProbeError):
                    opinions = await asyncio.gather(*(member.raft_status() for member in self.members))
                    if len({(opinion.leader_id, opinion.term) for opinion in opinions}) == 1 and opinions[0].leader_id:
                        return
                await asyncio.sleep(0.05)

"""EtcdCluster: several real members that form one cluster."""

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Self, Unpack

from etcd_aio.testing.errors import EtcdStartError
from etcd_aio.testing.health_probe import ProbeError, RaftStatus, ask, is_healthy
from etcd_aio.testing.options import Membership, ServerOptions, ServerSettings
from etcd_aio.testing.partition import PeerNetwork
from etcd_aio.testing.ports import free_ports, url_host
from etcd_aio.testing.server import EtcdServer

_POLL_SECONDS = 0.05
_PORT_TRIES = 5


class EtcdCluster:
    """A cluster of real servers.

    `async with EtcdCluster() as cluster:` starts all members at once, waits until they are healthy, and leaves nothing
    behind, as `EtcdServer` does. Kill, pause, resume and restart members through `cluster.members`.

    Args:
        size: how many members.
        peer_proxies: put a proxy before every member's peer port, so that `isolate` can cut one off, and `lag` slow one
            down (Linux only).
        options: see `ServerSettings`; they hold for every member.
    """

    def __init__(self, size: int = 3, *, peer_proxies: bool = False, **options: Unpack[ServerOptions]) -> None:
        if size < 1:
            raise ValueError(f"a cluster has at least one member, not {size}")
        self._size = size
        self._options = options
        self._settings = ServerSettings(**options)
        self._has_peer_proxies = peer_proxies
        self._members: tuple[EtcdServer, ...] = ()
        self._network: PeerNetwork | None = None
        self._peer_urls: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<EtcdCluster {', '.join(repr(member) for member in self._members) or 'not started'}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def members(self) -> tuple[EtcdServer, ...]:
        """The members, always in the same order; none before the start."""
        return self._members

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Every member's client URL, in the order of the members."""
        return tuple(member.endpoint for member in self._members)

    async def start(self) -> None:
        """Start all members and wait until the cluster is healthy. Cancellation kills what was started.

        Raises:
            EtcdNotFoundError: there is no fitting binary.
            EtcdStartError: a member ended, or was not ready within `start_timeout`.
            TimeoutError: the members did not agree on a leader in time.
            RuntimeError: it runs already.
        """
        if self._members:
            raise RuntimeError("the cluster was started already")
        for tries_left in reversed(range(_PORT_TRIES)):
            try:
                await self._create_members()
                await _all(*(member.start() for member in self._members))
                await self.wait_healthy()
                break
            except EtcdStartError as error:
                await self.aclose()
                # Every member is started with all peer ports, so one taken port means new ports for all.
                if not error.is_port_taken or not tries_left:
                    raise
            except BaseException:  # a cancellation too: no member may stay behind
                await self.aclose()
                raise

    async def aclose(self) -> None:
        """Kill all members and remove what is temporary; may be repeated. Cancellation does not stop it."""
        members, self._members = self._members, ()
        network, self._network = self._network, None
        try:
            for member in members:
                await member.aclose()
            if network is not None:
                await network.aclose()
        finally:
            # Cancelled on the way: the rest is closed without waiting.
            for member in members:
                member.close_now()
            if network is not None:
                network.close_now()

    async def leader(self, timeout: float = 10.0, *, other_than: EtcdServer | None = None) -> EtcdServer:
        """The member that leads, once a majority agrees on it in the latest term.

        A member that does not run, or is paused, is not returned. One that was just cut off by `isolate` may be, until
        the others elect another: use `other_than` for that.

        Args:
            other_than: wait until it is not this one.
            timeout: seconds to wait for an election, ten times etcd's election timeout by default.

        Raises:
            TimeoutError: no leader that a majority agrees on.
        """
        until = time.monotonic() + timeout
        while True:
            leader = _agreed_leader(await self._opinions(), len(self._members))
            found = next((member for member in self._members if member.name == leader), None)
            if found is not None and found is not other_than:
                return found
            if time.monotonic() >= until:
                raise TimeoutError(f"no majority agreed on a leader within {timeout} seconds")
            await asyncio.sleep(_POLL_SECONDS)

    async def followers(self, timeout: float = 10.0) -> tuple[EtcdServer, ...]:
        """Every member but the leader, those that do not run included.

        Raises:
            TimeoutError: as `leader`.
        """
        leader = await self.leader(timeout)
        return tuple(member for member in self._members if member is not leader)

    async def wait_healthy(self, timeout: float | None = None) -> None:
        """Wait until every member that runs and is not paused is healthy, and a majority agrees on a leader.

        Args:
            timeout: seconds; None takes `start_timeout`.

        Raises:
            TimeoutError: not healthy in time.
        """
        seconds = self._settings.start_timeout if timeout is None else timeout
        until = time.monotonic() + seconds
        while True:
            awake = [member for member in self._members if member.is_running and not member.is_paused]
            healthy = await asyncio.gather(*(is_healthy(member.endpoint, member.probe_tls) for member in awake))
            if all(healthy) and _agreed_leader(await self._opinions(), len(self._members)) is not None:
                return
            if time.monotonic() >= until:
                sick = [member.name for member, is_well in zip(awake, healthy, strict=True) if not is_well]
                raise TimeoutError(f"not healthy within {seconds} seconds: {', '.join(sick) or 'no leader'}")
            await asyncio.sleep(_POLL_SECONDS)

    async def restart(self) -> None:
        """Kill all members and start them again with their data, on the same ports.

        Raises:
            EtcdStartError: a member did not come up again.
        """
        await _all(*(member.kill() for member in self._members))
        await _all(*(member.restart() for member in self._members))
        await self.wait_healthy()

    async def replace(self, member: EtcdServer, timeout: float = 30.0) -> None:
        """Wipe a member the way etcd asks for: remove it from the cluster, add it as a new one, start it empty.

        It keeps name, ports and place in `members`, and has a new member id. The other members must have a quorum. With
        authentication on this does not work: the kit has no user.

        Args:
            member: one of `members`, in whatever condition.
            timeout: seconds for removing and adding; etcd refuses both until its members have been connected for five.

        Raises:
            EtcdStartError: it did not come up again.
            ProbeError: the others did not agree to the change in time.
            ValueError: it is not a member of this cluster, or it is the only one.
        """
        others = [other for other in self._members if other is not member]
        if len(others) != self._size - 1 or not others:
            raise ValueError("replace() needs a member of this cluster, and another one")
        await member.kill()
        until = time.monotonic() + timeout
        peer = next((other for other in others if other.is_running and not other.is_paused), others[0])
        await _swap_member(peer, self._peer_urls[member.name], until)
        await member.rejoin(Membership(self._peer_urls, is_joining=True))
        await self.wait_healthy()

    def isolate(self, member: EtcdServer) -> None:
        """Cut a member off from all its peers, both ways; clients still reach it. Until `reconnect`.

        What the two sides send each other vanishes without an error, as in a network partition. The connections between
        the other members are made again, within some 100 ms.

        Raises:
            RuntimeError: the cluster was made without `peer_proxies`.
        """
        self._peer_network().isolate(member.name)

    def reconnect(self, member: EtcdServer) -> None:
        """End what `isolate` began.

        Raises:
            RuntimeError: the cluster was made without `peer_proxies`.
        """
        self._peer_network().reconnect(member.name)

    def lag(self, member: EtcdServer, seconds: float) -> None:
        """Let a member follow the others late: what they send to it comes so many seconds later. 0 ends it.

        So it answers serializable reads from an older state, as a slow member does. The connections between all members
        are made again, within some 100 ms. A leader that lags hears the others late, which slows all writes down.

        Raises:
            ValueError: `seconds` is negative.
            RuntimeError: the cluster was made without `peer_proxies`.
        """
        if seconds < 0:
            raise ValueError(f"a lag is not negative: {seconds!r}")
        self._peer_network().lag(member.name, seconds)

    def _peer_network(self) -> PeerNetwork:
        if self._network is None:
            raise RuntimeError("faults between members need a started EtcdCluster(peer_proxies=True)")
        return self._network

    async def _create_members(self) -> None:
        host = self._settings.host
        names = [f"m{number}" for number in range(self._size)]
        ports = free_ports(2 * self._size, host)
        listening = {name: f"http://{url_host(host)}:{port}" for name, port in zip(names, ports[1::2], strict=True)}
        if self._has_peer_proxies:
            self._network = PeerNetwork(listening, self._pids, host=host)
            await self._network.start()
            self._peer_urls = dict(self._network.urls)
        else:
            self._peer_urls = listening
        membership = Membership(self._peer_urls)
        pairs = zip(names, zip(ports[::2], ports[1::2], strict=True), strict=True)
        self._members = tuple(
            EtcdServer(name, ports=pair, membership=membership, **self._options) for name, pair in pairs
        )

    def _pids(self) -> Mapping[str, int]:
        return {member.name: member.pid for member in self._members if member.is_running}

    async def _opinions(self) -> dict[str, RaftStatus]:
        async def ask_one(member: EtcdServer) -> RaftStatus | None:
            try:
                return await member.raft_status()
            except ProbeError:
                return None

        awake = [member for member in self._members if member.is_running and not member.is_paused]
        answers = await asyncio.gather(*(ask_one(member) for member in awake))
        return {member.name: answer for member, answer in zip(awake, answers, strict=True) if answer is not None}


def _agreed_leader(opinions: Mapping[str, RaftStatus], size: int) -> str | None:
    """The name of the member that a majority of `size` takes for the leader of the latest term, if there is one."""
    if not opinions:
        return None
    latest = max(opinion.term for opinion in opinions.values())
    votes = [opinion.leader_id for opinion in opinions.values() if opinion.term == latest and opinion.leader_id]
    for name, opinion in opinions.items():
        if opinion.term == latest and opinion.leader_id == opinion.member_id:
            return name if votes.count(opinion.member_id) > size // 2 else None
    return None


async def _swap_member(peer: EtcdServer, peer_url: str, until: float) -> None:
    """Remove the member of `peer_url` and add it as a new one.

    Looks before each step, since a step whose answer was lost must not be taken twice; and tries again, since etcd
    refuses changes as long as its members are not well connected.
    """

    async def send(step: str, body: dict[str, object]) -> dict[str, object]:
        return await ask(peer.endpoint, f"/v3/cluster/member/{step}", body=body, tls=peer.probe_tls, timeout=5.0)

    removed: str | None = None
    while True:
        try:
            current = _member_id(await send("list", {}), peer_url)
            if current is None:
                await send("add", {"peerURLs": [peer_url]})
            elif removed is None or current == removed:
                removed = current
                await send("remove", {"ID": current})
            else:
                return
        except ProbeError:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(_POLL_SECONDS)


def _member_id(listing: Mapping[str, object], peer_url: str) -> str | None:
    members = listing.get("members")
    for entry in members if isinstance(members, list) else ():
        if isinstance(entry, dict) and peer_url in entry.get("peerURLs", ()):
            return str(entry["ID"])
    return None


async def _all(*starts: Coroutine[None, None, None]) -> None:
    """Run them at once; the first failure cancels the others and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            for start in starts:
                group.create_task(start)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None

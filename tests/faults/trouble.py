"""The faults of a run: what happens to members, connections, client processes and keys, one after the other."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from etcd_aio import Client, EtcdError
from etcd_aio.testing import Directions, EtcdCluster, EtcdServer, FaultProxy
from tests.faults.account import Standstill
from tests.faults.ownership import RULES
from tests.faults.store import ROOT

_LONGEST: Final = 4.0
_PAUSE: Final = 1.0

Fault: TypeAlias = Callable[["Trouble"], Awaitable[None]]


@dataclass(slots=True)
class Process:
    """A client process and the proxies through which it reaches each member."""

    name: str
    child: asyncio.subprocess.Process
    proxies: Sequence[FaultProxy]


@dataclass(slots=True)
class Trouble:
    """Makes trouble. Everything is as before when `go_on` returns, except for the processes that were killed.

    Args:
        cluster: with peer proxies.
        client: for what operators do; it reaches the members directly.
        processes: the clients; replaced ones are taken from here each time.
        replace: kills a process and starts another one in its place.
        recorded: the last revision that the history has; what is later must not be compacted.
        ttl: seconds of every lease.
        random: chooses.

    Attributes:
        counts: how often each fault was made.
        standstills: the times in which processes were stopped.
        meddled: the keys that were deleted.
        revoked: the leases that were revoked. Blocks have a lease in turn, so other keys may go with it than
            the key that it was chosen by.
    """

    cluster: EtcdCluster
    client: Client
    processes: list[Process]
    replace: Callable[[Process], Awaitable[None]]
    recorded: Callable[[], int]
    ttl: int
    random: random.Random
    counts: dict[str, int] = field(default_factory=dict)
    standstills: list[Standstill] = field(default_factory=list)
    meddled: set[str] = field(default_factory=set)
    revoked: set[int] = field(default_factory=set)

    async def go_on(self, until: float, chosen: Mapping[str, Fault]) -> None:
        """Make one fault after the other until an instant of the monotonic clock."""
        while time.monotonic() < until and chosen:
            name = self.random.choice(tuple(chosen))
            with suppress(EtcdError):  # an operator's call may fail in the trouble of before
                await chosen[name](self)
            self.counts[name] = self.counts.get(name, 0) + 1
            await self.cluster.wait_healthy(60.0)
            await asyncio.sleep(self.random.random() * _PAUSE)
        await asyncio.sleep(max(0.0, until - time.monotonic()))

    def seconds(self, longest: float = _LONGEST) -> float:
        """How long this fault lasts."""
        return self.random.uniform(0.1, longest)

    def member(self) -> EtcdServer:
        """One of the members."""
        return self.random.choice(self.cluster.members)

    def process(self) -> Process:
        """One of the clients."""
        return self.random.choice(self.processes)

    async def key(self, is_oldest: bool) -> tuple[bytes, int] | None:
        """A key of a line, and its lease."""
        kind = self.random.choice(tuple(RULES))
        found = await self.client.range(prefix=f"{ROOT}{kind}/", sort_by="create_revision")
        if not found:
            return None
        kv = found[0] if is_oldest else self.random.choice(found.kvs)
        self.meddled.add(kv.key_text())
        return kv.key, kv.lease


async def kill_member(trouble: Trouble) -> None:
    """Kill a member, and start it again."""
    member = trouble.member()
    await member.kill()
    await asyncio.sleep(trouble.seconds())
    await member.restart()


async def kill_all(trouble: Trouble) -> None:
    """Kill all members, and start them again."""
    for member in trouble.cluster.members:
        await member.kill()
    await asyncio.sleep(trouble.seconds(1.5 * trouble.ttl))
    await asyncio.gather(*(member.restart() for member in trouble.cluster.members))


async def freeze_member(trouble: Trouble) -> None:
    """Stop the process of a member for a while; what it has received is applied afterwards."""
    member = trouble.member()
    member.pause()
    try:
        await asyncio.sleep(trouble.seconds())
    finally:
        member.resume()


async def isolate_member(trouble: Trouble) -> None:
    """Cut a member off from the others; clients reach it."""
    member = trouble.member()
    trouble.cluster.isolate(member)
    try:
        await asyncio.sleep(trouble.seconds())
    finally:
        trouble.cluster.reconnect(member)


async def move_leader(trouble: Trouble) -> None:
    """Let another member lead."""
    leader = await trouble.cluster.leader()
    statuses = {member: await member.raft_status() for member in trouble.cluster.members if member is not leader}
    target = trouble.random.choice(list(statuses.values()))
    await trouble.client.maintenance.move_leader(int(target.member_id))


async def cut_connections(trouble: Trouble) -> None:
    """Break the connections of a client, some in the middle of an answer."""
    process = trouble.process()
    for _ in range(10):
        for proxy in process.proxies:
            proxy.cut_after(trouble.random.randrange(300), "to_client", connection="open")
        await asyncio.sleep(trouble.random.random() * 0.3)
    for proxy in process.proxies:
        proxy.heal()


async def cut_requests(trouble: Trouble) -> None:
    """Break the connections of a client in the middle of its requests."""
    process = trouble.process()
    for _ in range(10):
        for proxy in process.proxies:
            proxy.cut_after(trouble.random.randrange(300), "to_server", connection="open")
        await asyncio.sleep(trouble.random.random() * 0.3)
    for proxy in process.proxies:
        proxy.heal()


async def cut_off_client(trouble: Trouble) -> None:
    """Let nothing through to or from a client, for up to twice the TTL; what it has sent arrives afterwards."""
    process = trouble.process()
    direction: Directions = trouble.random.choice(("both", "to_server", "to_client"))
    for proxy in process.proxies:
        proxy.black_hole(direction)
    await asyncio.sleep(trouble.seconds(2.0 * trouble.ttl))
    for proxy in process.proxies:
        proxy.heal()


async def outlast_leases(trouble: Trouble) -> None:
    """Let nothing through from a client for longer than its leases last, so that others own what it believes to own."""
    process = trouble.process()
    direction: Directions = trouble.random.choice(("both", "to_server"))
    for proxy in process.proxies:
        proxy.black_hole(direction)
    await asyncio.sleep(trouble.random.uniform(1.5, 3.0) * trouble.ttl)
    for proxy in process.proxies:
        proxy.heal()


async def slow_client(trouble: Trouble) -> None:
    """Delay all that a client sends and gets."""
    process = trouble.process()
    for proxy in process.proxies:
        proxy.delay(trouble.random.uniform(0.01, 0.3))
    await asyncio.sleep(trouble.seconds())
    for proxy in process.proxies:
        proxy.heal()


async def stop_client(trouble: Trouble) -> None:
    """Stop a client process (SIGSTOP), for a half to three times the TTL."""
    process = trouble.process()
    began = time.monotonic()
    os.kill(process.child.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(trouble.random.uniform(0.5, 3.0) * trouble.ttl)
    finally:
        os.kill(process.child.pid, signal.SIGCONT)
        trouble.standstills.append(Standstill(process.name, began, time.monotonic()))


async def kill_client(trouble: Trouble) -> None:
    """Kill a client process; another one takes its place."""
    await trouble.replace(trouble.process())


async def delete_key(trouble: Trouble) -> None:
    """Delete a key of a line, as an operator may do."""
    found = await trouble.key(is_oldest=trouble.random.random() < 0.5)
    if found is not None:
        await trouble.client.delete(found[0])


async def revoke_lease(trouble: Trouble) -> None:
    """Revoke a lease, as an operator may do."""
    found = await trouble.key(is_oldest=trouble.random.random() < 0.5)
    if found is not None:
        trouble.revoked.add(found[1])
        await trouble.client.leases.revoke(found[1])


async def compact(trouble: Trouble) -> None:
    """Drop the history."""
    await trouble.client.compact(trouble.recorded())


FAULTS: Final[Mapping[str, Fault]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(kill_member, kill_all, freeze_member, isolate_member, move_leader),
        *(cut_connections, cut_requests, cut_off_client, outlast_leases, slow_client, stop_client, kill_client),
        *(delete_key, revoke_lease, compact),
    )
}

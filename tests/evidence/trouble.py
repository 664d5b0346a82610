"""The faults of a report: what happens to members and connections, one after the other."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final, Literal, TypeAlias

from etcd_aio import Client, EtcdError
from etcd_aio.testing import EtcdCluster, EtcdServer, FaultProxy

_LONGEST: Final = 3.0
_HEALTHY_SECONDS: Final = 60.0
_MOST_TO_CATCH_UP: Final = 2500
"""Revisions: a new member that has 5000 entries to apply refuses its own requests, and needs minutes to start."""

Fault: TypeAlias = Callable[["Trouble"], Awaitable[None]]


@dataclass(slots=True)
class Trouble:
    """Makes trouble. Everything is as before when `go_on` returns.

    Args:
        cluster: with peer proxies.
        operator: a client that reaches the members directly.
        proxies: before the members, between them and half of the clients.
        folder: of the report; gets what is left of members that are replaced.
        random: chooses.
        rest: seconds between two faults, at most.
        revision: of the store, as far as the clients have seen it.

    Attributes:
        counts: how often each fault was made.
    """

    cluster: EtcdCluster
    operator: Client
    proxies: Sequence[FaultProxy]
    folder: Path
    random: Random
    rest: float
    revision: Callable[[], int]
    counts: Counter[str] = field(default_factory=Counter)

    async def go_on(self, chosen: Sequence[str], is_over: Callable[[], bool]) -> None:
        """Make one fault after the other until it is over."""
        while chosen and not is_over():
            await asyncio.sleep(self.random.uniform(0.2, 1.0) * self.rest)
            name = self.random.choice(chosen)
            if name == "replace" and self.revision() > _MOST_TO_CATCH_UP:
                name = "kill"
            with suppress(EtcdError):  # an operator's call may fail in the trouble of before
                await FAULTS[name](self)
            self.counts[name] += 1
            await self.cluster.wait_healthy(_HEALTHY_SECONDS)

    def seconds(self) -> float:
        """How long this fault lasts."""
        return self.random.uniform(0.1, _LONGEST)

    def member(self) -> EtcdServer:
        """One of the members."""
        return self.random.choice(self.cluster.members)


async def kill(trouble: Trouble) -> None:
    """Kill a member, and start it again."""
    member = trouble.member()
    await member.kill()
    await asyncio.sleep(trouble.seconds() / 3)
    await member.restart()


async def freeze(trouble: Trouble) -> None:
    """Stop the process of a member for a while; what it has received is applied afterwards."""
    member = trouble.member()
    member.pause()
    try:
        await asyncio.sleep(trouble.seconds())
    finally:
        member.resume()


async def isolate(trouble: Trouble) -> None:
    """Cut a member off from the others; clients reach it."""
    member = trouble.member()
    trouble.cluster.isolate(member)
    try:
        await asyncio.sleep(trouble.seconds())
    finally:
        trouble.cluster.reconnect(member)


async def lag(trouble: Trouble) -> None:
    """Let a member follow the others late."""
    member = trouble.member()
    trouble.cluster.lag(member, trouble.random.uniform(0.02, 0.2))
    try:
        await asyncio.sleep(trouble.seconds())
    finally:
        trouble.cluster.lag(member, 0)


async def move_leader(trouble: Trouble) -> None:
    """Let another member lead."""
    leader = await trouble.cluster.leader()
    target = trouble.random.choice([member for member in trouble.cluster.members if member is not leader])
    await trouble.operator.maintenance.move_leader(int((await target.raft_status()).member_id))


async def replace(trouble: Trouble) -> None:
    """Replace a member by an empty one, under another id. Its log stays in the report."""
    member = trouble.member()
    await member.kill()
    member.data_dir.rename(trouble.folder / f"server-{member.name}-before-{trouble.counts['replace']}")
    await trouble.cluster.replace(member)


async def cut(trouble: Trouble) -> None:
    """Break connections, in the middle of what the client gets or sends."""
    for _ in range(trouble.random.randrange(2, 10)):
        proxy = trouble.random.choice(trouble.proxies)
        way: Literal["to_client", "to_server"] = trouble.random.choice(("to_client", "to_client", "to_server"))
        how: Literal["rst", "fin"] = trouble.random.choice(("rst", "fin"))
        proxy.cut_after(trouble.random.randrange(300), way, how, connection="open")
        await asyncio.sleep(trouble.random.uniform(0.01, 0.2))
    for proxy in trouble.proxies:
        proxy.heal()


async def slow(trouble: Trouble) -> None:
    """Delay all that passes between clients and a member, or let little of it through."""
    proxy = trouble.random.choice(trouble.proxies)
    if trouble.random.random() < 0.5:
        proxy.delay(trouble.random.uniform(0.01, 0.3))
    else:
        proxy.throttle(trouble.random.uniform(2_000, 50_000))
    await asyncio.sleep(trouble.seconds())
    proxy.heal()


async def silence(trouble: Trouble) -> None:
    """Let nothing through to or from a member; what was sent arrives afterwards."""
    proxy = trouble.random.choice(trouble.proxies)
    proxy.black_hole(trouble.random.choice(("both", "to_server", "to_client")))
    await asyncio.sleep(trouble.seconds())
    proxy.heal()


FAULTS: Final[Mapping[str, Fault]] = {
    function.__name__.replace("_", "-"): function
    for function in (kill, freeze, isolate, lag, move_leader, replace, cut, slow, silence)
}

"""The faults: what happens to members, networks, calls, clients and keys. Each draws what it does, and heals itself."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Final, TypeAlias

from etcd_aio import EtcdError
from etcd_aio.fake.member import FakeMember
from etcd_aio.fake.network import Network
from etcd_aio.fake.refusals import Refusal
from tests.faults.ownership import RULES
from tests.faults.store import ROOT
from tests.simulation.plan import PlannedFault
from tests.simulation.world import World

Play: TypeAlias = Callable[[World, Random], Awaitable[None]]

_LONGEST: Final = 4.0  # seconds of most faults
_MUTATIONS: Final = ("KV/Put", "KV/Txn", "KV/DeleteRange", "Lease/LeaseGrant", "Lease/LeaseRevoke")
_CALLS: Final = (*_MUTATIONS, "KV/Range", "Lease/LeaseTimeToLive")
_STREAMS: Final = ("Watch/Watch", "Lease/LeaseKeepAlive")
_REFUSALS: Final = ("UNAVAILABLE", "TIMEOUT", "LEADER_CHANGED")
"""Statuses of calls that may have run."""
_EARLY_REFUSALS: Final = ("NO_LEADER", "TOO_MANY_REQUESTS")
"""Statuses of calls that did not run, and are repeated."""


def _member(world: World, chance: Random) -> FakeMember:
    return chance.choice(world.fake.members)


def _network(world: World, chance: Random) -> Network:
    return chance.choice(world.networks)


async def stop_member(world: World, chance: Random) -> None:
    """Kill a member, and start it again."""
    member = _member(world, chance)
    member.stop()
    await asyncio.sleep(chance.uniform(0.1, _LONGEST))
    member.start()


async def stop_all(world: World, chance: Random) -> None:
    """Kill all members, and start them again."""
    for member in world.fake.members:
        member.stop()
    await asyncio.sleep(chance.uniform(0.1, 1.5 * world.plan.ttl))
    for member in world.fake.members:
        member.start()


async def pause_member(world: World, chance: Random) -> None:
    """Freeze a member for a while."""
    member = _member(world, chance)
    member.pause()
    await asyncio.sleep(chance.uniform(0.1, _LONGEST))
    member.resume()


async def isolate_member(world: World, chance: Random) -> None:
    """Cut a member off from the others for a while."""
    member = _member(world, chance)
    member.isolate()
    await asyncio.sleep(chance.uniform(0.1, _LONGEST))
    member.heal()


async def move_leader(world: World, chance: Random) -> None:
    """Let another member lead."""
    available = [member for member in world.fake.members if member.node.is_available]
    if 2 * len(available) > len(world.fake.members):
        world.fake.elect(chance.choice(available))


async def cut_connections(world: World, chance: Random) -> None:
    """Break connections of a client."""
    network = _network(world, chance)
    for link in chance.sample(network.links, chance.randint(1, len(network.links))):
        link.reset()


async def cut_off_client(world: World, chance: Random) -> None:
    """Refuse a client, or swallow what it sends and gets, on some of its links or on all."""
    network = _network(world, chance)
    links = chance.sample(network.links, chance.randint(1, len(network.links)))
    is_refused = chance.random() < 0.3
    for link in links:
        link.refuse() if is_refused else link.black_hole()
    await asyncio.sleep(chance.uniform(0.1, _LONGEST))
    for link in links:
        link.heal()


async def outlast_leases(world: World, chance: Random) -> None:
    """Cut clients off for longer than their leases last, at once or when their renewals have become slow."""
    networks = chance.sample(world.networks, chance.randint(1, len(world.networks)))
    if chance.random() < 0.5:
        for link in (link for network in networks for link in network.links):
            link.latency = chance.choice((0.1, 0.2))
        await asyncio.sleep(chance.uniform(0.5, 1.0) * world.plan.ttl)
    for network in networks:
        network.black_hole()
    await asyncio.sleep(chance.uniform(1.0, 2.5) * world.plan.ttl)
    for network in networks:
        world.heal(network)


async def slow_client(world: World, chance: Random) -> None:
    """Slow a client's network down, some links more than others."""
    network = _network(world, chance)
    for link in network.links:
        link.latency = chance.choice((0.0, 0.02, 0.1, 0.5))
    await asyncio.sleep(chance.uniform(0.5, _LONGEST))
    world.quicken(network)


async def lose_answers(world: World, chance: Random) -> None:
    """Apply calls, and tell the client something else, break its connection, or say nothing."""
    method, times = chance.choice(_MUTATIONS), chance.randint(1, 4)
    match chance.randrange(3):
        case 0:
            fault = world.fake.fault(method, status=chance.choice(_REFUSALS), after_apply=True, times=times)
        case 1:
            fault = world.fake.fault(method, reset=True, after_apply=True, times=times)
        case _:
            fault = world.fake.fault(method, hang=True, times=times)
    with fault:
        await asyncio.sleep(chance.uniform(0.1, _LONGEST))


async def refuse_calls(world: World, chance: Random) -> None:
    """Refuse calls before they run, or break their connections."""
    method, times = chance.choice(_CALLS), chance.randint(1, 6)
    if chance.random() < 0.7:
        fault = world.fake.fault(method, status=chance.choice(_EARLY_REFUSALS), times=times)
    else:
        fault = world.fake.fault(method, reset=True, times=times)
    with fault:
        await asyncio.sleep(chance.uniform(0.1, _LONGEST))


async def delay_answers(world: World, chance: Random) -> None:
    """Let answers come late."""
    with world.fake.fault(chance.choice(_CALLS), delay=chance.uniform(0.01, 2.0), times=chance.randint(1, 10)):
        await asyncio.sleep(chance.uniform(0.1, _LONGEST))


async def go_away(world: World, chance: Random) -> None:
    """Let members announce that they take no more calls on a connection."""
    with world.fake.fault(chance.choice(_CALLS), goaway=True, times=chance.randint(1, 4)):
        await asyncio.sleep(chance.uniform(0.1, _LONGEST))


async def cut_streams(world: World, chance: Random) -> None:
    """Break streams after some messages."""
    method = chance.choice(_STREAMS)
    for link in _network(world, chance).links:
        link.reset()  # new streams are opened
    with world.fake.fault(method, cut_after=chance.randint(0, 5), times=chance.randint(1, 4)):
        await asyncio.sleep(chance.uniform(0.1, _LONGEST))


async def _key(world: World, chance: Random) -> tuple[bytes, int] | None:
    """A key of a line, often the oldest, and its lease."""
    kind = chance.choice(tuple(RULES))
    found = await world.operator.range(prefix=f"{ROOT}{kind}/", sort_by="create_revision")
    if not found:
        return None
    kv = found[0] if chance.random() < 0.5 else chance.choice(found.kvs)
    world.meddled.add(kv.key_text())
    return kv.key, kv.lease


async def delete_key(world: World, chance: Random) -> None:
    """Delete a key of a line, as an operator may do."""
    found = await _key(world, chance)
    if found is not None:
        await world.operator.delete(found[0])


async def revoke_lease(world: World, chance: Random) -> None:
    """Revoke a lease, as an operator may do."""
    found = await _key(world, chance)
    if found is not None:
        await world.operator.leases.revoke(found[1])


async def compact(world: World, chance: Random) -> None:
    """Drop a part of the history, or all of it."""
    current = world.fake.revision
    with suppress(Refusal):  # it is dropped already
        world.compact(current if chance.random() < 0.5 else chance.randint(max(1, current - 50), current))


async def kill_client(world: World, chance: Random) -> None:
    """End a client process without a goodbye; another one takes its place."""
    if world.killable:
        chance.choice(world.killable).replace()


FAULTS: Final[Mapping[str, Play]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(stop_member, stop_all, pause_member, isolate_member, move_leader),
        *(cut_connections, cut_off_client, outlast_leases, slow_client),
        *(lose_answers, refuse_calls, delay_answers, go_away, cut_streams),
        *(delete_key, revoke_lease, compact, kill_client),
    )
}


async def play(world: World, fault: PlannedFault) -> None:
    """Wait until a fault is due, and let it happen."""
    await asyncio.sleep(fault.at)
    world.trace.add(f"fault {fault.name}")
    world.faults[fault.name] += 1
    with suppress(EtcdError):  # an operator's call may fail in the trouble of before
        await FAULTS[fault.name](world, Random(fault.seed))
    world.trace.add(f"fault {fault.name} is over")

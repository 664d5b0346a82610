"""One election for all: candidates and observers of this library, the Go client, etcdctl, and etcd's own service."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from etcd_aio import Client
from etcd_aio.concurrency import Leaders
from etcd_aio.errors import LeadershipLostError
from etcd_aio.testing import EtcdServer
from tests.support.recipes import etcdctl, go_member, token_of
from tests.support.services import services
from tests.support.until import PATIENCE, until_keys

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def text(leaders: Leaders) -> str | None:
    async with asyncio.timeout(PATIENCE):
        leader = await anext(leaders)
    return None if leader is None else leader.text()


async def test_all_kinds_of_candidates_lead_in_turn(client: Client, shared_server: EtcdServer, prefix: str) -> None:
    """One at a time, in the order of arrival, each seen by observers of every kind."""
    name, endpoint = f"{prefix}e", shared_server.endpoint
    election = client.election(name)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        raw = await enter(services(endpoint))
        leaders = await enter(election.changes())
        listening = await enter(etcdctl(endpoint, "elect", "-l", name, says="ours 1"))
        theirs = await enter(raw.observe(name))
        assert await text(leaders) is None
        first = await enter(election.lead("ours 1"))
        tokens = [first.fencing_token]
        go = await enter(go_member(endpoint, "election", name, "go"))
        await until_keys(client, f"{name}/", 2)
        ctl = await enter(etcdctl(endpoint, "elect", name, "etcdctl", says="etcdctl"))
        await until_keys(client, f"{name}/", 3)
        lease = await enter(client.lease(10))
        campaigning = asyncio.create_task(raw.campaign(name, lease.id, "service"))
        await until_keys(client, f"{name}/", 4)
        last = election.lead("ours 2")
        standing = asyncio.create_task(last.__aenter__())
        await until_keys(client, f"{name}/", 5)

        assert await text(leaders) == "ours 1"
        await listening.holds()
        assert (await anext(theirs)).value == b"ours 1"
        await first.resign()
        tokens.append(token_of(await go.holds()))
        assert await text(leaders) == "go"
        assert (await anext(theirs)).value == b"go"
        assert not campaigning.done()
        await go.let_go()
        await ctl.holds()
        assert await text(leaders) == "etcdctl"
        leader = await election.leader()
        assert leader is not None
        tokens.append(leader.fencing_token)
        await ctl.let_go()
        key = await campaigning
        assert await text(leaders) == "service"
        assert (await raw.leader(name)).value == b"service"
        await raw.proclaim(key, "service, ready")
        assert await text(leaders) == "service, ready"
        assert not standing.done()
        tokens.append((await raw.leader(name)).create_revision)
        await raw.resign(key)
        await standing
        assert await text(leaders) == "ours 2"
        tokens.append(last.fencing_token)
        await last.proclaim("ours 2, ready")
        async with asyncio.timeout(PATIENCE):
            async for kv in theirs:
                if kv.value == b"ours 2, ready":
                    break
        assert (await raw.leader(name)).create_revision == last.fencing_token
        assert await text(leaders) == "ours 2, ready"
        await last.resign()
        assert await text(leaders) is None
        assert tokens == sorted(set(tokens))
        assert await election.leader() is None


async def test_a_go_candidate_that_is_killed_gives_way(client: Client, shared_server: EtcdServer, prefix: str) -> None:
    name = f"{prefix}e"
    async with go_member(shared_server.endpoint, "election", name, "go", ttl=2) as go:
        await go.holds()
        standing = asyncio.create_task(client.election(name).lead("ours").__aenter__())
        await until_keys(client, f"{name}/", 2)
        go.kill()
        async with asyncio.timeout(PATIENCE):
            await (await standing).resign()


async def test_etcd_9921_our_key_taken_by_the_service_ends_the_block(
    client: Client, shared_server: EtcdServer, prefix: str
) -> None:
    """v3lock releases a key without a check of its owner: then another may hold, so the block is over."""
    name = f"{prefix}e"

    async def block() -> None:
        async with services(shared_server.endpoint) as raw, client.election(name, ttl=60).lead("ours") as leadership:
            await asyncio.sleep(1)  # short blocks do not watch their key
            await raw.unlock(leadership.key)
            await asyncio.sleep(PATIENCE)

    with pytest.raises(LeadershipLostError):
        await block()

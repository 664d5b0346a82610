"""Members of a real cluster: listed, added, promoted, moved and removed."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import pytest

from etcd_aio import Client
from etcd_aio.admin import Member, MemberPromoteResult
from etcd_aio.errors import (
    LearnerNotReadyError,
    MemberNotFoundError,
    MemberNotLearnerError,
    NotSupportedForLearnerError,
    PeerURLExistsError,
    TooManyLearnersError,
    UnhealthyClusterError,
)
from etcd_aio.testing import EtcdCluster, EtcdServer
from etcd_aio.testing.options import Membership
from etcd_aio.testing.ports import free_ports

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@asynccontextmanager
async def fourth(peer_urls: Mapping[str, str], ports: tuple[int, int]) -> AsyncIterator[EtcdServer]:
    """A fresh member that was added before."""
    async with EtcdServer("m3", ports=ports, membership=Membership(peer_urls, is_joining=True)) as server:
        yield server


def new_ports() -> tuple[int, int]:
    client, peer = free_ports(2, "127.0.0.1")
    return client, peer


async def until_changes_are_allowed(client: Client) -> None:
    """etcd refuses changes until its members have been connected for five seconds."""
    async with asyncio.timeout(30):
        while True:
            try:
                added = await client.cluster.add_learner("http://127.0.0.1:2")
            except UnhealthyClusterError:
                await asyncio.sleep(0.2)
            else:
                await client.cluster.remove(added.member)
                return


async def promote(client: Client, learner: Member) -> MemberPromoteResult:
    """Promote it once it has caught up."""
    async with asyncio.timeout(20):
        while True:
            with suppress(LearnerNotReadyError):
                return await client.cluster.promote(learner.id)
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("each_engine")
async def test_listing_members(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client:
        listing = await client.cluster.members()
        assert {member.name: member.client_urls for member in listing} == {
            one.name: (one.endpoint,) for one in cluster.members
        }
        assert {member.peer_urls for member in listing} == {(one.peer_url,) for one in cluster.members}
        assert all(member.is_started and not member.is_learner for member in listing)
        assert len({member.id for member in listing}) == 3
        assert listing.header.cluster_id
        one, two, three = cluster.members
        await two.kill()
        await three.kill()
        async with Client(one.endpoint) as alone:
            old = await alone.cluster.members(serializable=True)
            assert set(old) == set(listing), "one member knows them without a quorum"


@pytest.mark.slow
async def test_a_fourth_member_is_added_as_a_learner_promoted_and_removed(cluster: EtcdCluster) -> None:
    ports = new_ports()
    peer_url = f"http://127.0.0.1:{ports[1]}"
    async with Client(cluster.endpoints, timeout=10) as client:
        await client.put("k", "v")
        await until_changes_are_allowed(client)
        before = {member.name: member.peer_urls[0] for member in await client.cluster.members()}

        added = await client.cluster.add_learner(peer_url)
        learner = added.member
        assert (learner.peer_urls, learner.is_learner, learner.is_started) == ((peer_url,), True, False)
        assert learner in added.members
        assert len(added.members) == 4
        with pytest.raises(PeerURLExistsError):
            await client.cluster.add(before["m0"])
        with pytest.raises(TooManyLearnersError):
            await client.cluster.add_learner("http://127.0.0.1:1")
        with pytest.raises(LearnerNotReadyError):
            await client.cluster.promote(learner)

        async with fourth({**before, "m3": peer_url}, ports) as server:
            async with Client(server.endpoint) as direct:
                status = await direct.maintenance.status(server.endpoint)
                assert status.is_learner
                assert status.header.member_id == learner.id
                with pytest.raises(NotSupportedForLearnerError):
                    await direct.get("k")
            promoted = await promote(client, learner)
            (voter,) = [member for member in promoted.members if member.id == learner.id]
            assert not voter.is_learner
            with pytest.raises(MemberNotLearnerError):
                await client.cluster.promote(learner)
            client.set_endpoints([*cluster.endpoints, server.endpoint])
            async with Client(server.endpoint) as direct:
                kv = await direct.get("k")
                assert kv is not None
                assert kv.value == b"v"
            client.set_endpoints(cluster.endpoints)  # who is told to remove itself may end before it has answered

            removed = await client.cluster.remove(voter)
            assert learner.id not in {member.id for member in removed.members}
            with pytest.raises(MemberNotFoundError):
                await client.cluster.remove(voter)
            await client.put("k", "w")


@pytest.mark.slow
async def test_a_voting_member_is_added_moved_and_removed(cluster: EtcdCluster) -> None:
    ports = new_ports()
    async with Client(cluster.endpoints, timeout=10) as client:
        await until_changes_are_allowed(client)
        before = {member.name: member.peer_urls[0] for member in await client.cluster.members()}
        added = await client.cluster.add("http://127.0.0.1:1")
        assert not added.member.is_learner
        peer_url = f"http://127.0.0.1:{ports[1]}"
        updated = await client.cluster.update(added.member, [peer_url])
        assert {member.id: member.peer_urls for member in updated.members}[added.member.id] == (peer_url,)
        with pytest.raises(MemberNotFoundError):
            await client.cluster.update(1, peer_url)
        async with fourth({**before, "m3": peer_url}, ports) as server:
            listing = await client.cluster.members()
            (found,) = [member for member in listing if member.id == added.member.id]
            assert found == Member(added.member.id, "m3", (peer_url,), (server.endpoint,))
            await client.cluster.remove(found)
        await client.put("k", "v")

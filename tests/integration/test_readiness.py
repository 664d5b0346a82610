"""Is the cluster usable: `ping`, and clients that do not wait for what has refused them."""

import asyncio
import math

import pytest

from etcd_aio import Client, EtcdError, EtcdTimeoutError, NoAvailableEndpointsError
from etcd_aio.errors import PermissionDeniedError, UserEmptyError
from etcd_aio.testing import EtcdCluster, EtcdServer
from etcd_aio.testing.ports import free_ports
from tests.support.auth import WEB, enable_auth

pytestmark = pytest.mark.anyio


def unused_endpoint() -> str:
    return f"http://127.0.0.1:{free_ports(1, '127.0.0.1')[0]}"


async def test_a_ping_tells_how_long_it_took(client: Client) -> None:
    assert 0.0 < await client.ping() < 5.0
    assert 0.0 < await client.ping(timeout=None) < 5.0


@pytest.mark.cluster
async def test_a_ping_needs_a_quorum_and_leaves_a_frozen_member(cluster: EtcdCluster) -> None:
    async with Client(cluster.endpoints) as client:
        await client.ping()
        leader = await cluster.leader()
        follower, other = (member for member in cluster.members if member is not leader)
        follower.pause()
        try:
            for _ in range(6):
                assert await client.ping(timeout=5.0) < 5.0
        finally:
            follower.resume()
        await follower.kill()
        await other.kill()
        await client.wait_ready()
        with pytest.raises(EtcdError) as caught:
            await client.ping(timeout=1.0)
        assert not isinstance(caught.value, PermissionDeniedError)
        assert await client.get("k", serializable=True) is None, "the member is there, only the quorum is not"


async def test_a_ping_counts_permission_denied_as_alive_but_not_a_missing_user() -> None:
    async with EtcdServer() as server:
        await enable_auth(server, web=True)
        async with Client(server.endpoint, auth=WEB, allow_insecure_auth=True) as client:
            with pytest.raises(PermissionDeniedError):
                await client.get("health")
            assert await client.ping() < 5.0
        async with Client(server.endpoint) as client:
            with pytest.raises(UserEmptyError):
                await client.ping()


async def test_a_ping_without_a_server_fails() -> None:
    async with Client(unused_endpoint()) as client:
        with pytest.raises((NoAvailableEndpointsError, EtcdTimeoutError)):
            await client.ping(timeout=0.2)


async def test_with_fail_fast_a_call_without_a_server_fails_at_once() -> None:
    async with Client([unused_endpoint(), unused_endpoint()], fail_fast=True, timeout=math.inf) as client:
        async with asyncio.timeout(30):
            with pytest.raises(NoAvailableEndpointsError, match="refused") as caught:
                await client.get("k")
            assert set(caught.value.errors) == set(client.endpoints)
            with pytest.raises(NoAvailableEndpointsError, match="refused"):
                await client.ping()
            with pytest.raises(NoAvailableEndpointsError, match="refused"):
                await client.maintenance.status(client.endpoints[0])
            with pytest.raises(NoAvailableEndpointsError):
                await client.wait_ready(timeout=0.2)


async def test_with_fail_fast_a_login_without_a_server_fails_at_once() -> None:
    client = Client(unused_endpoint(), fail_fast=True, timeout=None, auth=WEB, allow_insecure_auth=True)
    async with client, asyncio.timeout(30):
        with pytest.raises(NoAvailableEndpointsError, match="refused"):
            await client.get("k")


async def test_with_fail_fast_one_member_that_is_there_is_enough(shared_server: EtcdServer) -> None:
    async with Client([unused_endpoint(), shared_server.endpoint], fail_fast=True) as client:
        for _ in range(5):
            await client.ping()

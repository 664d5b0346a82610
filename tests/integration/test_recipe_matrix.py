"""Recipes without permission, in a full store, and in one that is restored, on real servers: one for all recipes."""

import pytest

from etcd_aio import Client
from etcd_aio.fake.releases import RELEASES
from etcd_aio.testing import EtcdServer
from tests.support.auth import QUICK_LOGINS, ROOT, WEB, enable_auth
from tests.support.full_store import skip_if_full_store_keeps_all
from tests.support.recipe_cases import CASES, fill, goes_on_in_a_full_store, is_refused_to, is_refused_when_full
from tests.support.restored import ServerWorld, everything_goes_on
from tests.support.servers import QUICK_ELECTIONS
from tests.support.versions import need_beside

SPARE = 20.0  # seconds that a busy machine may take longer

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


async def test_a_role_that_grants_the_keys_of_a_recipe_is_enough_and_none_is_told() -> None:
    async with EtcdServer(flags=[QUICK_LOGINS]) as server:
        await enable_auth(server, web=True)

        def user() -> Client:
            return Client(server.endpoint, auth=WEB, allow_insecure_auth=True)

        async with Client(server.endpoint, auth=ROOT, allow_insecure_auth=True) as root:
            await root.auth.role_grant_permission("app", prefix="__app/", permission="readwrite")  # priority queues
            for case in CASES:
                await is_refused_to(user, root, case)
        async with user() as client:
            for case in CASES:
                await case.use(client, f"app/{case.name}")


async def test_a_full_store_refuses_what_adds_and_what_was_begun_is_ended() -> None:
    async with EtcdServer() as server, Client(server.endpoint) as client:
        await fill(client)
        await skip_if_full_store_keeps_all(client)
        if not server.version.startswith("3.4."):  # it lets puts of nested txns through (etcd-io/etcd#22139)
            for case in CASES:
                await is_refused_when_full(client, case)
        await client.maintenance.disarm()
        await goes_on_in_a_full_store(client)


async def test_all_recipes_go_on_when_a_backup_is_restored() -> None:
    async with EtcdServer(fsync=False, **QUICK_ELECTIONS) as server:
        await everything_goes_on(ServerWorld(server), spare=SPARE)


@pytest.mark.nightly
@pytest.mark.parametrize("version", RELEASES)
async def test_every_recipe_on_every_release(version: str) -> None:
    need_beside(version)
    async with EtcdServer(version=version) as server, Client(server.endpoint) as client:
        for case in CASES:
            await case.use(client, f"app/{case.name}")


@pytest.mark.nightly
@pytest.mark.parametrize("version", RELEASES)
async def test_all_recipes_go_on_when_a_backup_is_restored_on_every_release(version: str) -> None:
    need_beside(version)
    async with EtcdServer(version=version, fsync=False, **QUICK_ELECTIONS) as server:
        await everything_goes_on(ServerWorld(server), spare=SPARE)

"""recipes/: no permission, a full store, a restored one; `integration/` has the same on servers."""

import inspect

import pytest

from etcd_aio import recipes
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.releases import RELEASES
from tests.support.auth import ROOT, WEB
from tests.support.recipe_cases import (
    CASES,
    RecipeCase,
    fill,
    goes_on_in_a_full_store,
    is_refused_to,
    is_refused_when_full,
)
from tests.support.restored import FakeWorld, everything_goes_on

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

ALL = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))


def test_every_recipe_has_a_case() -> None:
    classes = {each for each in vars(recipes).values() if isinstance(each, type)}
    found = [each for each in classes if list(inspect.signature(each).parameters)[:2] == ["client", "name"]]
    assert len(found) == len(CASES), found


@ALL
async def test_a_role_that_grants_the_keys_of_a_recipe_is_enough_and_none_is_told(case: RecipeCase) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        auth = client.auth
        for name, password in (ROOT, WEB):
            await auth.user_add(name, password)
            await auth.role_add(name)
            await auth.user_grant_role(name, name)
        for prefix in ("app/", "__app/"):  # the second one of priority queues
            await auth.role_grant_permission("web", prefix=prefix, permission="readwrite")
        await auth.enable()
        async with fake.client(auth=ROOT, allow_insecure_auth=True) as root:
            await is_refused_to(lambda: fake.client(auth=WEB, allow_insecure_auth=True), root, case)
        async with fake.client(auth=WEB, allow_insecure_auth=True) as user:
            await case.use(user, f"app/{case.name}")


@ALL
async def test_a_full_store_refuses_what_adds(case: RecipeCase) -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        await fill(client)
        await is_refused_when_full(client, case)
        await client.maintenance.disarm()
        await case.use(client, "again")


@ALL
@pytest.mark.parametrize("version", RELEASES)
async def test_every_recipe_on_every_release(version: str, case: RecipeCase) -> None:
    async with FakeEtcd(version, latency=0.001) as fake, fake.client() as client:
        await case.use(client, "app")


@pytest.mark.parametrize("version", RELEASES)
async def test_all_recipes_go_on_when_a_backup_is_restored(version: str) -> None:
    async with FakeEtcd(version, latency=0.001) as fake:
        await everything_goes_on(FakeWorld(fake))


async def test_what_was_begun_is_ended_in_a_full_store() -> None:
    async with FakeEtcd(latency=0.001) as fake, fake.client() as client:
        await goes_on_in_a_full_store(client)

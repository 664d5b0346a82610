"""Every recipe while its store is replaced by a backup, on a fake of each release; `integration/` has real servers."""

import pytest

from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.releases import RELEASES
from tests.support.restored import FakeWorld, everything_goes_on

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


@pytest.mark.parametrize("version", RELEASES)
async def test_all_recipes_go_on_when_a_backup_is_restored(version: str) -> None:
    async with FakeEtcd(version, latency=0.001) as fake:
        await everything_goes_on(FakeWorld(fake))

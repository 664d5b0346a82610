"""etcdctl says the same of a fake and of a real server: each of its commands, on every supported minor version."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from etcd_aio.testing import EtcdServer
from tests.support.etcdctl_table import REFUSED, TABLES, Etcdctl, Row
from tests.support.recipes import built
from tests.support.versions import need_beside

pytestmark = pytest.mark.anyio

VERSIONS = (
    "3.4.25",
    pytest.param("3.5.35", marks=pytest.mark.nightly),
    pytest.param("3.6.16", marks=pytest.mark.nightly),
    "3.7.3",
)
NEWEST = "3.7.3"


@asynccontextmanager
async def beside(version: str, path: Path) -> AsyncIterator[tuple[Etcdctl, Etcdctl]]:
    """etcdctl on a real server, and on a fake."""
    need_beside(version)
    program = await asyncio.to_thread(built, "tests/support/etcdctl")
    async with EtcdServer(version=version) as server, FakeEtcd(version) as fake, fake.serve() as endpoint:
        real, imitated = Etcdctl(program, server.endpoint), Etcdctl(program, endpoint)
        for number, one in enumerate((real, imitated)):
            async with Client(one.endpoint) as client:
                (member,) = (await client.cluster.members()).members
            one.names |= {"MEMBER": f"{member.id:x}", "NAME": member.name, "FILE": str(path / f"{number}.db")}
        yield real, imitated


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("version", VERSIONS)
async def test_etcdctl_says_the_same(version: str, table: str, tmp_path: Path) -> None:
    async with beside(version, tmp_path) as (real, imitated):
        for row in TABLES[table]:
            expected, found = await asyncio.gather(real.play(row), imitated.play(row))
            assert found == expected, row.command


async def test_what_the_fake_refuses_says_so(tmp_path: Path) -> None:
    async with beside(NEWEST, tmp_path) as (_, imitated):
        for row in REFUSED:
            code, _, errors = await imitated.play(row)
            assert code, row.command
            assert "fake etcd: " in str(errors), row.command


async def test_etcdctl_moves_the_leader_and_asks_every_member() -> None:
    program = await asyncio.to_thread(built, "tests/support/etcdctl")
    async with FakeEtcd(members=3) as fake, fake.serve() as endpoint:
        etcdctl = Etcdctl(program, endpoint, {"FROM": f"{fake.members[0].id:x}", "TO": f"{fake.members[2].id:x}"})
        code, lines, _ = await etcdctl.play(Row("move-leader TO"))
        assert (code, lines) == (0, ["Leadership transferred from FROM to TO"])
        assert [member.is_leader for member in fake.members] == [False, False, True]
        one = Etcdctl(program, fake.members[1].endpoint)
        code, lines, _ = await one.play(Row("endpoint health --cluster"))
        assert (code, lines) == (0, ["URL is healthy: successfully committed proposal: took = T"] * 3)
        fake.members[1].isolate()
        code, _, _ = await one.play(Row("put a 1 --command-timeout=1s"))
        assert code
        assert fake.keys() == {}

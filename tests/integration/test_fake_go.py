"""The official Go client sees the same of a fake and of a real server.

Its own integration tests start their cluster in their process and cannot be pointed at an address, so a program does
here what they do: keys, transactions, watches, leases, locks, elections, software transactional memory, members, users.
"""

import asyncio

import pytest

from etcd_aio import Client
from etcd_aio.fake import FakeEtcd
from etcd_aio.testing import EtcdServer
from tests.support.recipes import built
from tests.support.versions import need_beside

pytestmark = pytest.mark.anyio

VERSIONS = (
    "3.4.25",
    pytest.param("3.5.35", marks=pytest.mark.nightly),
    pytest.param("3.6.16", marks=pytest.mark.nightly),
    "3.7.3",
)


async def said(endpoints: str, do: str) -> list[str]:
    """What the program says of a server."""
    program = await asyncio.to_thread(built, "tests/support/goclient")
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*program, "-endpoints", endpoints, "-do", do, stdout=pipe, stderr=pipe)
    try:
        stdout, stderr = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert child.returncode == 0, f"{stdout.decode()[-500:]}\n{stderr.decode()[:2000]}"
    return stdout.decode().splitlines()


async def has_its_storage_version(server: EtcdServer) -> None:
    """A member of 3.6 or newer begins with that of 3.5, and has its own once the cluster has agreed on a version."""
    own = f"{server.version.rpartition('.')[0]}.0" if server.version >= "3.6" else ""
    async with Client(server.endpoint) as client, asyncio.timeout(30):
        status = client.maintenance.status
        while (await status(server.endpoint)).storage_version != own:  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("do", ["kv", "watch", "lease", "concurrency", "members"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_go_client_sees_the_same(version: str, do: str) -> None:
    need_beside(version)
    async with EtcdServer(version=version) as server, FakeEtcd(version) as fake, fake.serve() as endpoint:
        await has_its_storage_version(server)
        expected, found = await asyncio.gather(said(server.endpoint, do), said(endpoint, do))
        assert len(expected) > 10
        assert found == expected


@pytest.mark.parametrize("do", ["kv", "watch", "concurrency"])
async def test_the_go_client_goes_on_while_members_stop(do: str) -> None:
    async with FakeEtcd(members=3) as fake, fake.serve() as endpoint:
        alone = await said(endpoint, do)
    async with FakeEtcd(members=3) as fake, fake.serve() as endpoint:
        fake.members[1].stop()
        assert await said(endpoint, do) == alone

"""fake/auth_service.py, fake/maintenance_service.py, fake/alarms.py, fake/guard.py: the page "Known limits of the
fake": every limit on it exists, and is checked here.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

import pytest

from etcd_aio import Client, ConfigError, pb
from etcd_aio.errors import (
    DuplicateKeyError,
    NotSupportedByServerError,
    RequestTooLargeError,
    TooManyOpsError,
    WrongLoopError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.fake.refusals import Refusal
from etcd_aio.fake.releases import NEWEST, RELEASES
from etcd_aio.fake.txns import check_txn
from etcd_aio.kv import op

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[3] / "docs" / "pages" / "reference" / "fake-limits.md"


async def snapshots(fake: FakeEtcd, client: Client) -> None:
    content = b"".join([chunk async for chunk in client.maintenance.snapshot()])
    assert sha256(content[:-32]).digest() == content[-32:]
    assert content.startswith(b"fake etcd")


async def hashes(fake: FakeEtcd, client: Client) -> None:
    await client.put("a", "1")
    first = await client.maintenance.hash_kv(fake.endpoints[0])
    async with FakeEtcd() as other, other.client() as another:
        await another.put("a", "1")
        assert (await another.maintenance.hash_kv(other.endpoints[0])).hash == first.hash


async def sizes(fake: FakeEtcd, client: Client) -> None:
    before = await client.maintenance.status(fake.endpoints[0])
    await client.put("a", b"x" * 100_000)
    after = await client.maintenance.status(fake.endpoints[0])
    assert after.db_size == before.db_size
    assert after.db_size_quota == 2 * 2**30


async def raft(fake: FakeEtcd, client: Client) -> None:
    await client.put("a", "1")
    statuses = [await client.maintenance.status(endpoint) for endpoint in fake.endpoints]
    assert len({status.raft_index for status in statuses}) == 1


async def isolation(fake: FakeEtcd, client: Client) -> None:
    alone = fake.members[2]
    alone.isolate()
    granted = await client.leases.grant(10)
    async with Client(alone.endpoint, engine=fake.engine, require_leader=False) as other:
        assert [lease.id for lease in (await other.leases.list()).leases] == [granted.id]
        await client.put("a", "1")
        assert await other.get("a", serializable=True) is None
        alone.heal()
        assert await other.get("a", serializable=True) is not None


async def disk(fake: FakeEtcd, client: Client) -> None:
    await client.put("a", "1")
    for member in fake.members:
        member.stop()
    for member in fake.members:
        member.start()
    assert fake.keys() == {b"a": b"1"}
    assert await client.get("a") is not None


async def transactions(fake: FakeEtcd, client: Client) -> None:
    put = pb.RequestOp(request_put=pb.PutRequest(key=b"k"))
    endless = pb.RequestOp(request_delete_range=pb.DeleteRangeRequest(key=b"a", range_end=b"\x00"))
    with pytest.raises(Refusal, match="duplicate key"):
        check_txn(pb.TxnRequest(success=[endless, put]), RELEASES[NEWEST])
    with pytest.raises(DuplicateKeyError):
        await client.do(op.txn(then=[op.delete(from_key="a"), op.put("k", "v")]))


async def flags(fake: FakeEtcd, client: Client) -> None:
    await client.txn().then(*(op.put(str(number), "1") for number in range(128))).commit()
    with pytest.raises(TooManyOpsError):
        await client.txn().then(*(op.put(str(number), "1") for number in range(129))).commit()
    with pytest.raises(RequestTooLargeError):
        await client.put("a", b"x" * (3 * 2**19))
    with pytest.raises(TypeError):
        FakeEtcd(max_txn_ops=10)  # type: ignore[call-arg]


async def auto_compaction(fake: FakeEtcd, client: Client) -> None:
    first = await client.put("a", "0")
    await fake.advance(30 * 86400.0)
    for number in range(100):
        await client.put("a", str(number))
    old = await client.get("a", revision=first.header.revision)
    assert old is not None
    assert old.text() == "0"


async def services(fake: FakeEtcd, client: Client) -> None:
    node = fake.members[0].node
    for path in ("/v3lockpb.Lock/Lock", "/v3electionpb.Election/Leader"):
        with pytest.raises(Refusal, match="is not imitated"):
            fake._server.unary(node, path, b"", ())
    assert fake._server.document(node, "/v3/kv/range").status == 404


async def tokens(fake: FakeEtcd, client: Client) -> None:
    await client.auth.user_add("root", "pw")
    await client.auth.role_add("root")
    await client.auth.user_grant_role("root", "root")
    await client.auth.enable()
    token = (await client.auth.authenticate("root", "pw")).token
    assert token.count(".") != 2, "a JWT has three parts"


async def tls(fake: FakeEtcd, client: Client) -> None:
    assert all(endpoint.startswith("http://") for endpoint in fake.endpoints)


async def loops(fake: FakeEtcd, client: Client) -> None:
    def use() -> None:
        asyncio.run(read())

    async def read() -> None:
        async with fake.client(timeout=0.5) as other:
            await other.get("a")

    await client.get("a")  # the fake belongs to the first loop that uses it
    with pytest.raises(WrongLoopError, match="belongs to another event loop"):
        await asyncio.to_thread(use)


LIMITS: dict[str, Callable[[FakeEtcd, Client], Awaitable[None]]] = {
    "Snapshots": snapshots,
    "Hashes": hashes,
    "Sizes": sizes,
    "Raft": raft,
    "Isolation": isolation,
    "Disk": disk,
    "Flags": flags,
    "Transactions": transactions,
    "Auto-compaction": auto_compaction,
    "Services": services,
    "Tokens": tokens,
    "TLS": tls,
    "Loops": loops,
}


@pytest.mark.parametrize("limit", LIMITS)
async def test_the_limit_is_one(limit: str) -> None:
    async with FakeEtcd(members=3) as fake, fake.client() as client:
        await LIMITS[limit](fake, client)


def test_the_page_has_these_limits() -> None:
    other = PAGE.read_text(encoding="utf-8").partition("Other limits:")[2]
    assert re.findall(r"^\| ([A-Z][\w-]+) \|", other, re.MULTILINE) == list(LIMITS)


async def test_what_the_page_calls_refused_raises_the_error_that_it_names() -> None:
    async with FakeEtcd() as fake, fake.client() as client:
        with pytest.raises(NotSupportedByServerError):
            await client.cluster.add("http://127.0.0.1:1")


def test_other_releases_are_refused() -> None:
    with pytest.raises(ConfigError):
        FakeEtcd("3.3")

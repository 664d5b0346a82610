"""An isolated member of the fake beside one of a real cluster: the same requests get the same answers."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import pytest

from etcd_aio import Client, methods, pb
from etcd_aio.codec import decode, encode, message_class_of
from etcd_aio.errors import AttemptFailure
from etcd_aio.fake import FakeEtcd
from etcd_aio.methods import AnyMethod, Cardinality
from etcd_aio.testing import EtcdCluster
from etcd_aio.transport import Connection, Target, TransportOptions, create_engine
from tests.support.transport import Owner, soon
from tests.support.truth import found_versions
from tests.support.until import PATIENCE, until

_METADATA: Final = (("client-api-version", "3.7"),)


def _txn(*, serializable: bool) -> pb.TxnRequest:
    look = pb.RangeRequest(key=b"a", serializable=serializable)
    return pb.TxnRequest(success=[pb.RequestOp(request_range=look)])


_AT_ONCE: Final[tuple[tuple[AnyMethod, pb.Message], ...]] = (
    *((methods.RANGE, pb.RangeRequest(key=b"a", serializable=True, revision=at)) for at in (0, 2, 3, 4)),
    (methods.RANGE, pb.RangeRequest()),
    (methods.RANGE_STREAM, pb.RangeRequest(key=b"a", serializable=True)),
    (methods.TXN, pb.TxnRequest()),
    (methods.TXN, _txn(serializable=True)),
    (methods.PUT, pb.PutRequest()),
    (methods.LEASE_LEASES, pb.LeaseLeasesRequest()),
    (methods.MEMBER_LIST, pb.MemberListRequest()),
    *((methods.HASH_KV, pb.HashKvRequest(revision=at)) for at in (0, 3, 4)),
    (methods.MOVE_LEADER, pb.MoveLeaderRequest(target_id=1)),
)
_LATE: Final[tuple[tuple[AnyMethod, pb.Message], ...]] = (
    (methods.RANGE, pb.RangeRequest(key=b"a")),
    (methods.RANGE_STREAM, pb.RangeRequest(key=b"a")),
    (methods.TXN, _txn(serializable=False)),
    (methods.TXN, pb.TxnRequest(success=[pb.RequestOp(request_txn=pb.TxnRequest())])),
    (methods.PUT, pb.PutRequest(key=b"b")),
    (methods.DELETE_RANGE, pb.DeleteRangeRequest(key=b"b")),
    (methods.COMPACT, pb.CompactionRequest(revision=2)),
    (methods.LEASE_GRANT, pb.LeaseGrantRequest(ttl=10)),
    (methods.LEASE_REVOKE, pb.LeaseRevokeRequest(id=1)),
    (methods.LEASE_TIME_TO_LIVE, pb.LeaseTimeToLiveRequest(id=1)),
    (methods.LEASE_KEEP_ALIVE, pb.LeaseKeepAliveRequest(id=1)),
    (methods.MEMBER_LIST, pb.MemberListRequest(linearizable=True)),
    (methods.ALARM, pb.AlarmRequest()),
    (methods.AUTHENTICATE, pb.AuthenticateRequest(name="a", password="b")),
    (methods.USER_LIST, pb.AuthUserListRequest()),
)


@dataclass
class _Side:
    """One cluster with a member that can lose the others: `alone` is a connection to it."""

    alone: Connection
    write: Callable[[bytes], Awaitable[object]]
    compact: Callable[[int], Awaitable[object]]
    isolate: Callable[[], Awaitable[None]]
    heal: Callable[[], Awaitable[None]]


async def _ask(side: _Side, method: AnyMethod, request: pb.Message) -> object:
    """What a request gets: the revisions and the values of the replies, or the status."""
    deadline = soon(PATIENCE)
    try:
        if method.cardinality is Cardinality.UNARY:
            replies = [await side.alone.unary(method.path, encode(request), _METADATA, deadline)]
        else:
            stream = await side.alone.open_stream(method.path, _METADATA, deadline)
            await stream.send(encode(request))
            await stream.half_close()
            replies = []
            while isinstance(reply := await stream.receive(), bytes):
                replies.append(reply)
    except AttemptFailure as failure:
        return failure.code.name, failure.message
    return [_shown(decode(message_class_of(method.reply), reply)) for reply in replies]


def _shown(reply: pb.Message) -> object:
    if isinstance(reply, pb.RangeStreamResponse) and reply.range_response is not None:
        reply = reply.range_response
    header = getattr(reply, "header", None)
    found = getattr(reply, "kvs", ())
    return type(reply).__name__, header.revision if header else None, [one.value for one in found]


class _Watch:
    """A watch of `a`, and its replies: the revision of each, what kind it is, and the revisions of its events."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, bool, bool, list[int]]] = []

    async def open(self, side: _Side, start_revision: int = 0) -> "_Watch":
        deadline = soon(PATIENCE)
        self._stream = await side.alone.open_stream(methods.WATCH.path, _METADATA, deadline)
        create = pb.WatchCreateRequest(key=b"a", start_revision=start_revision)
        await self._stream.send(encode(pb.WatchRequest(create_request=create)))
        self._task = asyncio.create_task(self._receive(), name="replies of a watch")
        await self.until(1)
        return self

    async def progress(self) -> None:
        await self._stream.send(encode(pb.WatchRequest(progress_request=pb.WatchProgressRequest())))

    async def until(self, count: int) -> None:
        await until(lambda: len(self.replies) >= count, [self._task])

    async def close(self) -> None:
        self._stream.cancel()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _receive(self) -> None:
        while isinstance(reply := await self._stream.receive(), bytes):
            one = decode(pb.WatchResponse, reply)
            revision = one.header.revision if one.header else 0
            events = [event.kv.mod_revision for event in one.events if event.kv]
            self.replies.append((revision, one.created, one.canceled, events))


async def _history(side: _Side, *, is_whole: bool) -> list[object]:
    """What the member says: before it loses the others, without them, and with them again."""
    await side.write(b"1")
    await side.write(b"2")
    assert await _ask(side, methods.RANGE, pb.RangeRequest(key=b"a")) == [("RangeResponse", 3, [b"2"])]
    watches = [await _Watch().open(side)]
    await side.isolate()
    await side.write(b"3")
    await side.write(b"4")
    await side.compact(5)
    watches += [await _Watch().open(side, start) for start in (0, 2)]
    await watches[2].until(2)
    for watch in watches:
        await watch.progress()
    answers: list[object] = [await _ask(side, *request) for request in _AT_ONCE]
    if is_whole:
        answers += await asyncio.gather(*(_ask(side, *request) for request in _LATE))
    for watch, already in zip(watches, (2, 2, 3), strict=True):
        await watch.until(already)
    await side.heal()
    for watch, already in zip(watches, (2, 2, 3), strict=True):
        await watch.until(already + 2)
        await watch.close()
    return [*answers, *(watch.replies for watch in watches)]


async def _real(version: str, *, is_whole: bool) -> list[object]:
    async with EtcdCluster(3, peer_proxies=True, version=version) as cluster:
        alone = (await cluster.followers())[0]
        others = ",".join(member.endpoint for member in cluster.members if member is not alone)
        host, port = alone.endpoint.removeprefix("http://").split(":")
        target = Target(host, int(port), "", f"{host}:{port}")
        connection = await create_engine("native", TransportOptions()).connect(target, Owner())
        async with Client(others, timeout=PATIENCE) as client:

            async def write(value: bytes) -> object:
                return await client.put("a", value)

            async def isolate() -> None:
                cluster.isolate(alone)
                status = methods.STATUS
                async with asyncio.timeout(PATIENCE):
                    while True:
                        reply = await connection.unary(status.path, encode(pb.StatusRequest()), _METADATA, soon())
                        if not decode(pb.StatusResponse, reply).leader:
                            return
                        await asyncio.sleep(0.05)

            async def heal() -> None:
                cluster.reconnect(alone)

            try:
                side = _Side(connection, write, client.compact, isolate, heal)
                return await _history(side, is_whole=is_whole)
            finally:
                await connection.aclose()


async def _fake(version: str, *, is_whole: bool) -> list[object]:
    async with FakeEtcd(version, members=3) as fake:
        alone = fake.members[2]
        authority = alone.endpoint.removeprefix("http://")
        host, _, port = authority.rpartition(":")
        target = Target(host, int(port), "", authority)
        connection = await fake.engine(TransportOptions()).connect(target, Owner())

        async def write(value: bytes) -> object:
            return fake.load({"a": value})

        async def compact(revision: int) -> object:
            return fake.compact(revision)

        async def isolate() -> None:
            alone.isolate()

        async def heal() -> None:
            alone.heal()

        try:
            return await _history(_Side(connection, write, compact, isolate, heal), is_whole=is_whole)
        finally:
            await connection.aclose()


async def _compare(version: str, *, is_whole: bool) -> None:
    real, fake = await asyncio.gather(_real(version, is_whole=is_whole), _fake(version, is_whole=is_whole))
    requests = [*_AT_ONCE, *(_LATE if is_whole else ()), "watch", "new watch", "old watch"]
    differences = [
        f"{request}: etcd says {one}, and the fake {other}"
        for request, one, other in zip(requests, real, fake, strict=True)
        if one != other
    ]
    assert not differences, "\n".join(differences)


@pytest.mark.anyio
async def test_an_isolated_member() -> None:
    versions = found_versions()
    if not versions:
        pytest.skip("needs the servers of `nox -s servers`")
    await _compare(max(versions), is_whole=False)


@pytest.mark.anyio
@pytest.mark.nightly
@pytest.mark.parametrize("minor", ["3.4", "3.5", "3.6", "3.7"])
async def test_an_isolated_member_and_what_it_gives_up(minor: str) -> None:
    version = next((one for one in found_versions() if one.startswith(minor)), None)
    if version is None:
        pytest.skip(f"needs an etcd {minor}")
    await _compare(version, is_whole=True)

"""fake/cluster.py, fake/node.py, fake/server.py, fake/dispatch.py: what is served, and what waits for a leader."""

import asyncio

import pytest

from etcd_aio import Client, ConfigError, methods, pb
from etcd_aio.codec import decode
from etcd_aio.errors import (
    CompactedError,
    EmptyKeyError,
    EtcdTimeoutError,
    NoLeaderError,
    NotRaftLeaderError,
    RequestDeadlineExceededError,
    RequestTimedOutError,
)
from etcd_aio.fake import FakeEtcd
from etcd_aio.types import RangeResult
from tests.support.raw import send

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def _alone(fake: FakeEtcd, member: int = 2) -> Client:
    """A client of one member that asks for no leader, as etcdctl does."""
    return Client(fake.members[member].endpoint, engine=fake.engine, require_leader=False, timeout=10.0)


class _Watch:
    """A watch without the client's own bookkeeping: what the server says, reply by reply."""

    def __init__(self, fake: FakeEtcd, start_revision: int = 0) -> None:
        self._fake = fake
        self._session = fake._server.stream(fake.members[2].node, methods.WATCH.path, ())
        self._ask(pb.WatchRequest(create_request=pb.WatchCreateRequest(key=b"a", start_revision=start_revision)))

    def _ask(self, request: pb.WatchRequest) -> None:
        self._fake._server.receive(self._session, bytes(request))

    def progress(self) -> list[tuple[int, list[int]]]:
        """Asks for the progress, and takes the replies: the revision of each, and those of its events."""
        self._ask(pb.WatchRequest(progress_request=pb.WatchProgressRequest()))
        replies = [decode(pb.WatchResponse, reply) for reply in self._session.out]
        self._session.out.clear()
        return [
            (one.header.revision, [event.kv.mod_revision for event in one.events if event.kv])
            for one in replies
            if one.header and not one.created
        ]


async def test_watches_of_an_isolated_member_know_nothing_of_the_others() -> None:
    async with FakeEtcd(members=3) as fake:
        fake.load({"a": "1"})
        fake.load({"a": "2"})
        early = _Watch(fake)
        fake.members[2].isolate()
        fake.load({"a": "3"})
        fake.load({"a": "4"})
        new, old, ahead = _Watch(fake), _Watch(fake, start_revision=2), _Watch(fake, start_revision=5)
        await fake.advance(1.0)
        assert early.progress() == [(3, [])]
        assert new.progress() == [(3, [])]
        assert old.progress() == [(3, [2, 3]), (3, [])]
        assert ahead.progress() == []
        fake.compact(5)  # the others' history; the member still takes it transaction by transaction
        fake.members[2].heal()
        for watch in (early, new, old):
            assert watch.progress() == [(4, [4]), (5, [5]), (5, [])]
        assert ahead.progress() == [(5, [5]), (5, [])]
        fake.load({"a": "5"})
        assert early.progress() == [(6, [6]), (6, [])]


async def test_what_an_isolated_member_has_is_not_compacted_by_the_others() -> None:
    async with FakeEtcd(members=3) as fake, _alone(fake) as alone:
        fake.load({"a": "1"})
        fake.load({"a": "2"})
        fake.members[2].isolate()
        fake.load({"a": "3"})
        fake.compact(4)
        for revision, value in ((0, b"2"), (2, b"1")):
            found = await alone.get("a", serializable=True, revision=revision)
            assert found is not None
            assert found.value == value
        assert (await alone.maintenance.hash_kv(fake.members[2].endpoint)).hash_revision == 3
        fake.members[2].heal()
        with pytest.raises(CompactedError):
            await alone.get("a", serializable=True, revision=2)


async def test_an_isolated_member_is_in_the_old_term() -> None:
    async with FakeEtcd(members=3) as fake, _alone(fake) as alone:
        before = await send(alone, methods.STATUS, pb.StatusRequest())
        fake.members[2].isolate()
        fake.load({"a": "1"})
        fake.elect(fake.members[1])
        now = await send(alone, methods.STATUS, pb.StatusRequest())
        assert (now.raft_term, now.raft_index) == (before.raft_term, before.raft_index)
        fake.members[2].heal()
        assert (await send(alone, methods.STATUS, pb.StatusRequest())).raft_term == before.raft_term + 1


def _range(*, serializable: bool) -> pb.RequestOp:
    return pb.RequestOp(request_range=pb.RangeRequest(key=b"a", serializable=serializable))


async def test_a_serializable_transaction_needs_no_leader() -> None:
    async with FakeEtcd(members=3) as fake, _alone(fake) as alone:
        fake.load({"a": "1"})
        fake.members[2].isolate()
        fake.load({"a": "2"})
        reply = await send(alone, methods.TXN, pb.TxnRequest(success=[_range(serializable=True)]))
        (found,) = reply.responses
        assert isinstance(found, RangeResult)
        assert [one.value for one in found] == [b"1"]
        with pytest.raises(RequestTimedOutError):
            await send(alone, methods.TXN, pb.TxnRequest(success=[_range(serializable=False)]))


async def test_a_stream_of_a_range_is_not_stale() -> None:
    async with FakeEtcd(members=3) as fake, _alone(fake) as alone:
        fake.load({"a": "1"})
        fake.members[2].isolate()
        fake.load({"a": "2"})
        stream = fake._server.stream(fake.members[2].node, methods.RANGE_STREAM.path, ())
        fake._server.receive(stream, bytes(pb.RangeRequest(key=b"a")))
        assert not stream.out
        late = fake._server.stream(fake.members[2].node, methods.RANGE_STREAM.path, ())
        await fake.advance(6.0)
        fake._server.receive(late, bytes(pb.RangeRequest(key=b"a")))
        await fake.advance(2.0)
        assert stream.refusal is not None
        assert stream.refusal.text == "etcdserver: request timed out"
        fake.members[2].heal()
        reply = decode(pb.RangeStreamResponse, late.out[0]).range_response
        assert reply is not None
        assert [one.value for one in reply.kvs] == [b"2"]
        assert [kv.value async for kv in alone.scan("a")] == [b"2"]


async def test_requests_wait_for_the_leader_that_comes() -> None:
    """As with etcdctl, which asks for no leader: an election makes calls late, and not fail."""
    async with FakeEtcd(members=3) as fake, _alone(fake) as alone:
        granted = await alone.leases.grant(10)
        fake.members[0].stop()
        put, _, left, renewed = await asyncio.gather(
            alone.put("a", "1"),
            alone.get("a"),
            alone.leases.time_to_live(granted.id),
            alone.leases.keep_alive_once(granted.id),
        )
        assert put.revision == 2
        assert (left.granted_ttl, renewed.ttl) == (10, 10)
        assert fake.keys() == {b"a": b"1"}
        assert [call.is_applied for call in fake.calls if call.method == "KV/Put"] == [True]


async def test_a_call_that_was_given_up_while_it_waited_is_not_run() -> None:
    async with FakeEtcd(members=3) as fake, _alone(fake) as alone:
        fake.members[2].isolate()
        with pytest.raises(EtcdTimeoutError):
            await alone.put("a", "1", retry="never", timeout=1.0)
        fake.members[2].heal()
        await asyncio.sleep(10.0)
        assert fake.keys() == {}


async def test_a_request_that_is_wrong_is_refused_without_a_leader() -> None:
    async with FakeEtcd(members=3) as fake, _alone(fake) as alone:
        fake.members[2].isolate()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        with pytest.raises(EmptyKeyError):
            await send(alone, methods.PUT, pb.PutRequest())
        with pytest.raises(NotRaftLeaderError):
            await send(alone, methods.MOVE_LEADER, pb.MoveLeaderRequest(target_id=1))
        assert loop.time() - begun < 1.0


@pytest.mark.parametrize(("version", "code"), [("3.4", "UNKNOWN"), ("3.7", "DEADLINE_EXCEEDED")])
async def test_a_write_without_a_leader(version: str, code: str) -> None:
    async with FakeEtcd(version, members=3) as fake, _alone(fake) as alone:
        fake.members[2].isolate()
        with pytest.raises(RequestDeadlineExceededError):
            await alone.put("a", "1", retry="never", timeout=10.0)
        (call,) = [call for call in fake.calls if call.method == "KV/Put"]
        assert call.status is not None
        assert (call.status.name, call.is_applied) == (code, False)


async def test_a_lease_stream_that_needs_a_leader_ends_without_one() -> None:
    async with FakeEtcd(members=3) as fake:
        node = fake.members[2].node
        patient = fake._server.stream(node, methods.LEASE_KEEP_ALIVE.path, ())
        strict = fake._server.stream(node, methods.LEASE_KEEP_ALIVE.path, (("hasleader", "true"),))
        fake.members[2].isolate()
        assert strict.refusal is not None
        assert strict.refusal.text == "etcdserver: no leader"
        assert list(node.streams) == [patient]
        fake._server.receive(patient, bytes(pb.LeaseKeepAliveRequest(id=1)))
        assert not patient.is_over
        await fake.advance(8.0)
        assert patient.refusal is not None
        assert patient.refusal.text == "etcdserver: no leader"
        patient = fake._server.stream(node, methods.LEASE_KEEP_ALIVE.path, ())
        fake._server.receive(patient, bytes(pb.LeaseKeepAliveRequest(id=1)))
        patient.half_close()
        assert not patient.is_over
        fake.members[2].heal()
        assert len(patient.out) == 1
        assert patient.is_over
        assert patient.refusal is None


async def test_a_member_that_cannot_lead_is_not_elected() -> None:
    async with FakeEtcd(members=3) as fake:
        first, second, third = fake.members
        second.stop()
        with pytest.raises(ConfigError, match="cannot lead"):
            fake.elect(second)
        second.start()
        third.isolate()
        with pytest.raises(ConfigError, match="cannot lead"):
            fake.elect(third)
        second.pause()
        with pytest.raises(ConfigError, match="cannot lead"):
            fake.elect(first)
        second.resume()
        fake.elect(second)
        assert second.is_leader


async def test_a_member_runs_only_if_it_was_neither_stopped_nor_frozen() -> None:
    async with FakeEtcd(members=3) as fake:
        member = fake.members[2]
        member.stop()
        member.resume()
        assert not member.node.is_running
        member.pause()  # there is no process to freeze
        member.start()
        assert member.node.is_running
        async with _alone(fake) as alone:
            await alone.put("a", "1", timeout=1.0)
        member.pause()
        member.start()
        assert not member.node.is_running
        member.resume()
        assert member.node.is_running


async def test_a_compaction_that_cannot_be_is_refused() -> None:
    async with FakeEtcd() as fake:
        fake.load({"a": "1"})
        with pytest.raises(ConfigError, match=r"compact\(3\).*future revision; the revision is 2"):
            fake.compact(3)
        fake.compact(2)
        with pytest.raises(ConfigError, match="has been compacted"):
            fake.compact(2)


async def test_calls_that_need_a_leader_are_refused_at_once() -> None:
    async with FakeEtcd(members=3) as fake, Client(fake.members[2].endpoint, engine=fake.engine) as client:
        fake.members[2].isolate()
        with pytest.raises(NoLeaderError):
            await client.put("a", "1", retry="never", timeout=1.0)

"""balancer/cluster_id.py: the first answer sets it, every other must agree, and silent peers are refused in time."""

import asyncio
from collections.abc import Callable

import pytest

from etcd_aio import codec
from etcd_aio.balancer.cluster_id import ClusterIdentity
from etcd_aio.errors import AttemptFailure, ClusterChangedError, ConnectError, Delivery, MalformedReplyError, StatusCode
from etcd_aio.methods import WATCH
from etcd_aio.pb import ResponseHeader, StatusResponse, WatchResponse
from etcd_aio.transport import Connection, Target
from tests.support.fake_engine import Answer, FakeEngine, FakeStream, Hang

pytestmark = pytest.mark.anyio


def noted() -> None:
    """An election was noticed."""


class Owner:
    def on_draining(self, reason: str) -> None: ...

    def on_lost(self, error: BaseException | None) -> None: ...


def status(cluster_id: int) -> bytes:
    return codec.encode(StatusResponse(header=ResponseHeader(cluster_id=cluster_id)))


async def connected(answer: Answer, on_stream: Callable[[FakeStream], None] | None = None) -> Connection:
    engine = FakeEngine()
    engine["m1:2379"].otherwise = answer
    engine["m1:2379"].on_stream = on_stream
    return await engine.connect(Target("m1", 2379, "", "m1:2379"), Owner())


WANTS_TOKEN = AttemptFailure(StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty", Delivery.ANSWERED)
LEARNER = AttemptFailure(StatusCode.FAILED_PRECONDITION, "etcdserver: rpc not supported for learner", Delivery.ANSWERED)


def test_the_first_answer_sets_the_cluster_id_and_every_other_must_agree() -> None:
    identity = ClusterIdentity(noted)
    identity.check(0, "m1:2379")
    assert identity.cluster_id == 0
    identity.check(0xABC, "m1:2379")
    identity.check(0xABC, "m2:2379")
    identity.check(0, "m2:2379")  # 0 is not an id
    with pytest.raises(ClusterChangedError, match=r"m3:2379.*def.*abc"):
        identity.check(0xDEF, "m3:2379")
    assert identity.cluster_id == 0xABC


async def test_a_peer_of_the_same_cluster_is_accepted() -> None:
    identity = ClusterIdentity(noted)
    identity.check(7, "m1:2379")
    await identity.verify(await connected(status(7)), "m1:2379")


async def test_a_peer_of_another_cluster_is_refused() -> None:
    identity = ClusterIdentity(noted)
    identity.check(7, "m1:2379")
    with pytest.raises(ClusterChangedError):
        await identity.verify(await connected(status(8)), "m1:2379")


async def test_a_silent_peer_is_refused_in_time() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(ConnectError, match="cluster id"):
        await ClusterIdentity(noted).verify(await connected(Hang()), "m1:2379")
    assert loop.time() - started == pytest.approx(2.0)


async def test_a_peer_that_is_late_has_longer_the_next_time_as_with_dials() -> None:
    loop = asyncio.get_running_loop()

    async def verified(**options: bool) -> float:
        identity, started = ClusterIdentity(noted, 3.0, random=lambda: 0.0, **options), loop.time()
        with pytest.raises(ConnectError, match="cluster id"):
            await identity.verify(await connected(Hang()), "m1:2379")
        return loop.time() - started

    assert [await verified() for _ in range(3)] == pytest.approx([3.0, 6.0, 12.0]), "for all clients"
    assert await verified(is_patient=False) == pytest.approx(3.0)
    await ClusterIdentity(noted).verify(await connected(status(7)), "m1:2379")
    assert await verified() == pytest.approx(3.0)


async def test_a_peer_with_a_malformed_reply_is_refused() -> None:
    with pytest.raises(MalformedReplyError):
        await ClusterIdentity(noted).verify(await connected(b"\xff\xff\xff"), "m1:2379")


@pytest.mark.parametrize("cluster_id", [7, 8])
async def test_a_peer_that_requires_a_token_is_identified_by_the_header_of_a_refused_watch(cluster_id: int) -> None:
    identity = ClusterIdentity(noted)
    identity.check(7, "m1:2379")
    streams: list[FakeStream] = []

    def refuse(stream: FakeStream) -> None:
        streams.append(stream)
        header = ResponseHeader(cluster_id=cluster_id)
        stream.say(codec.encode(WatchResponse(header, watch_id=-1, created=True, canceled=True)))

    connection = await connected(WANTS_TOKEN, refuse)
    if cluster_id == 7:
        await identity.verify(connection, "m1:2379")
    else:
        with pytest.raises(ClusterChangedError):
            await identity.verify(connection, "m1:2379")
    (stream,) = streams
    assert (stream.path, stream.metadata, stream.is_cancelled) == (WATCH.path, (), True)


async def test_a_learner_that_requires_a_token_is_accepted_without_a_cluster_id() -> None:
    identity = ClusterIdentity(noted)
    identity.check(7, "m1:2379")
    await identity.verify(await connected(WANTS_TOKEN, lambda stream: stream.fail(LEARNER)), "m1:2379")
    assert identity.cluster_id == 7


@pytest.mark.parametrize("ends", [lambda stream: None, lambda stream: stream.fail(WANTS_TOKEN)])
async def test_a_peer_that_refuses_every_request_is_refused_in_time(ends: Callable[[FakeStream], None]) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(ConnectError, match="cluster id"):
        await ClusterIdentity(noted).verify(await connected(WANTS_TOKEN, ends), "m1:2379")
    assert loop.time() - started <= 2.0


def test_a_newer_term_is_an_election_and_an_older_one_is_ignored() -> None:
    told: list[int] = []
    identity = ClusterIdentity(lambda: told.append(identity.raft_term))
    for term in (5, 5, 6, 5, 0, 7):
        identity.note_term(term)
    assert told == [6, 7], "the first one is no news"

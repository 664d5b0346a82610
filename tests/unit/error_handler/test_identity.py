import asyncio

import pytest

from etcd_aio import codec
from etcd_aio.error_handler.identity import ClusterIdentity
from etcd_aio.errors import ClusterChangedError, ConnectError, MalformedReplyError
from etcd_aio.pb import ResponseHeader, StatusResponse
from etcd_aio.transport import Connection, Target
from tests.support.fake_engine import Answer, FakeEngine, Hang

pytestmark = pytest.mark.anyio


class Owner:
    def on_draining(self, reason: str) -> None: ...

    def on_lost(self, error: BaseException | None) -> None: ...


def status(cluster_id: int) -> bytes:
    return codec.encode(StatusResponse(header=ResponseHeader(cluster_id=cluster_id)))


async def connected(answer: Answer) -> Connection:
    engine = FakeEngine()
    engine["m1:2379"].otherwise = answer
    return await engine.connect(Target("m1", 2379, "", "m1:2379"), Owner())


def test_the_first_answer_teaches_and_every_other_must_agree() -> None:
    identity = ClusterIdentity()
    identity.check(0, "m1:2379")
    assert identity.cluster_id == 0
    identity.check(0xABC, "m1:2379")
    identity.check(0xABC, "m2:2379")
    identity.check(0, "m2:2379")  # no id is no other id
    with pytest.raises(ClusterChangedError, match=r"m3:2379.*def.*abc"):
        identity.check(0xDEF, "m3:2379")
    assert identity.cluster_id == 0xABC


async def test_the_right_peer_is_verified() -> None:
    identity = ClusterIdentity()
    identity.check(7, "m1:2379")
    await identity.verify(await connected(status(7)))


async def test_the_wrong_peer_is_refused() -> None:
    identity = ClusterIdentity()
    identity.check(7, "m1:2379")
    with pytest.raises(ClusterChangedError):
        await identity.verify(await connected(status(8)))


async def test_a_peer_that_says_nothing_is_refused_in_time() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(ConnectError, match="cluster"):
        await ClusterIdentity().verify(await connected(Hang()))
    assert loop.time() - started == pytest.approx(2.0)


async def test_a_peer_that_talks_nonsense_is_refused() -> None:
    with pytest.raises(MalformedReplyError):
        await ClusterIdentity().verify(await connected(b"\xff\xff\xff"))

"""error_handler/reply.py: large ones are decoded in steps; their cluster and term are checked."""

import asyncio

import pytest

from etcd_aio import codec, pb
from etcd_aio.balancer import ClusterIdentity
from etcd_aio.codec.decoder import STEP
from etcd_aio.error_handler.reply import LARGE, check_cluster, decoder_of, finish_in_steps
from etcd_aio.errors import ClusterChangedError, MalformedReplyError
from etcd_aio.types import RangeResult
from tests.support.calls import CLUSTER, Calls

pytestmark = pytest.mark.anyio


def reply(keys: int) -> bytes:
    kvs = [pb.KeyValue(key=b"%d" % number, value=bytes(100), mod_revision=number + 1) for number in range(keys)]
    return codec.encode(pb.RangeResponse(header=pb.ResponseHeader(revision=9), kvs=kvs, count=keys))


def make_decoder() -> codec.IncrementalDecoder[RangeResult]:
    return codec.IncrementalDecoder(RangeResult)


async def test_other_tasks_run_while_a_large_reply_is_decoded() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    raw = reply(30_000)
    assert len(raw) > 16 * LARGE
    counting = asyncio.create_task(count())
    try:
        found = await finish_in_steps(decoder_of(make_decoder, raw))
    finally:
        counting.cancel()
    assert found == codec.decode(RangeResult, raw)
    assert turns >= len(raw) // STEP


async def test_a_step_that_raises_ends_a_large_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its generator has ended, so that more steps would lead nowhere."""
    decoder = decoder_of(make_decoder, reply(30_000))
    assert decoder.work()

    def fails() -> bytes:
        raise MemoryError

    monkeypatch.setattr(codec.IncrementalDecoder, "_step", lambda self: fails())
    for _ in range(2):
        with pytest.raises(MemoryError):
            await asyncio.wait_for(finish_in_steps(decoder), 60)


async def test_a_malformed_large_reply_is_the_same_error() -> None:
    with pytest.raises(MalformedReplyError):
        await finish_in_steps(decoder_of(make_decoder, reply(1000)[:-1]))


async def test_the_decoder_of_a_message_that_was_decoded_while_it_arrived_is_the_one_that_got_it() -> None:
    collector = make_decoder()
    assert decoder_of(make_decoder, collector) is collector


async def test_a_reply_of_another_cluster_raises_and_rejects_its_connection() -> None:
    calls = await Calls(1).ready()
    sub_connection = calls.balancer.pick()
    assert sub_connection is not None
    identity = ClusterIdentity(lambda: None)
    check_cluster(header(CLUSTER), identity, sub_connection)
    assert identity.cluster_id == CLUSTER
    with pytest.raises(ClusterChangedError):
        check_cluster(header(0xBAD), identity, sub_connection)
    assert not calls.balancer.ready_count
    check_cluster(header(0), identity, sub_connection)  # some error paths of servers have no cluster id
    check_cluster(pb.WatchResponse(), identity, sub_connection)
    await calls.aclose()


async def test_a_reply_with_a_newer_term_shows_an_election() -> None:
    calls = await Calls(1).ready()
    sub_connection = calls.balancer.pick()
    assert sub_connection is not None
    elections: list[int] = []
    identity = ClusterIdentity(lambda: elections.append(identity.raft_term))
    for term in (4, 4, 5, 3, 5):
        check_cluster(header(CLUSTER, term), identity, sub_connection)
    assert elections == [5]
    await calls.aclose()


def header(cluster_id: int, term: int = 0) -> pb.WatchResponse:
    return pb.WatchResponse(header=pb.ResponseHeader(cluster_id=cluster_id, raft_term=term))

"""balancer/serving_monitor.py: a member that says that it does not serve is left at once, and used when it does."""

import asyncio
import logging

import pytest

from etcd_aio import codec, pb
from etcd_aio.balancer.serving_monitor import AGAIN_BACKOFF
from etcd_aio.errors import AttemptFailure, Delivery, LocalReason, NoLeaderError, StatusCode
from etcd_aio.methods import HEALTH_CHECK, RANGE
from etcd_aio.types import ConnectivityState, Health
from tests.support.balancers import BalancerWorld
from tests.support.fake_engine import FakeStream, Hang
from tests.support.virtual_time import tasks, timers, turns

pytestmark = pytest.mark.anyio

Status = pb.health.HealthCheckResponseServingStatus


class World(BalancerWorld):
    """Members with gRPC's health service, whose streams are open."""

    async def listening(self, *without: str) -> "World":
        for name in ("m1", "m2", "m3"):
            self[name].has_health = name not in without
            self[name].otherwise = b"fine"
        await self.started()
        await asyncio.sleep(1.0)
        await turns()
        for name in ("m1", "m2", "m3"):
            if self[name].has_health:
                await self.say(name, Status.SERVING)
        return self

    def stream(self, name: str) -> FakeStream:
        return self[name].health_streams[-1]

    async def say(self, name: str, status: int) -> None:
        self.stream(name).say(codec.encode(pb.health.HealthCheckResponse(status=Status(status))))
        await turns()

    def health(self) -> dict[str, tuple[Health, Health]]:
        return {one.endpoint[:2]: (one.health, one.local_health) for one in self.balancer.statistics()}

    def picked(self, *, needs_leader: bool = True) -> set[str]:
        found = (self.balancer.pick((), needs_leader) for _ in range(24))
        return {one.endpoint_name[:2] for one in found if one is not None}

    def begin(self, name: str, *, may_move: bool = True, needs_leader: bool = True) -> "asyncio.Task[bytes]":
        work = self.sub(name).unary("/x", b"", (), self.loop.time() + 60, needs_leader=needs_leader, may_move=may_move)
        return asyncio.ensure_future(work)


FINE = (Health.HEALTHY, Health.HEALTHY)
GONE = (Health.NOT_SERVING, Health.NOT_SERVING)


async def test_it_is_left_for_all_calls_until_it_says_that_it_serves() -> None:
    it = await World().listening()
    for _ in range(2):
        await it.say("m1", Status.NOT_SERVING)
        assert it.health() == {"m1": GONE, "m2": FINE, "m3": FINE}
        assert it.picked() == it.picked(needs_leader=False) == {"m2", "m3"}
        await asyncio.sleep(60)
        assert not it.asked(RANGE.path), "the member says itself when it serves"
        await it.say("m1", Status.SERVING)
        assert it.health() == {"m1": FINE, "m2": FINE, "m3": FINE}
        assert it.picked() == it.picked(needs_leader=False) == {"m1", "m2", "m3"}
    await asyncio.sleep(1)
    assert not timers(), "a client whose members serve has no timer"
    await it.balancer.aclose()
    assert not tasks()


async def test_one_that_does_not_serve_is_asked_now_and_then_so_that_its_end_is_found() -> None:
    it = await World().listening()
    await it.say("m1", Status.NOT_SERVING)
    await asyncio.sleep(35)
    assert len(it.asked(HEALTH_CHECK.path)) == 3
    assert it.health()["m1"] == GONE, "only the stream tells that it serves again"
    await it.say("m1", Status.SERVING)
    await asyncio.sleep(60)
    assert len(it.asked(HEALTH_CHECK.path)) == 3
    await it.balancer.aclose()
    assert not tasks()


async def test_reads_that_wait_there_move_at_once_and_writes_stay() -> None:
    it = await World().listening()
    it["m1"].otherwise = Hang()
    read, local, write = it.begin("m1"), it.begin("m1", needs_leader=False), it.begin("m1", may_move=False)
    await turns()
    await it.say("m1", Status.NOT_SERVING)
    for moved in (read, local):
        with pytest.raises(AttemptFailure) as caught:
            await moved
        assert caught.value.reason is LocalReason.GIVEN_UP
    assert not write.done()
    write.cancel()
    await it.balancer.aclose()


async def test_nothing_moves_if_no_other_member_serves() -> None:
    it = await World().listening()
    for name in ("m2", "m3"):
        await it.say(name, Status.NOT_SERVING)
    it["m1"].otherwise = Hang()
    read = it.begin("m1")
    await turns()
    await it.say("m1", Status.NOT_SERVING)
    assert it.picked() == {"m1", "m2", "m3"}, "some member has to be used"
    await asyncio.sleep(5)
    assert not read.done()
    read.cancel()
    await it.balancer.aclose()


async def test_streams_leave_after_half_a_second() -> None:
    it = await World().listening()
    left: list[tuple[float, str]] = []
    stream = await it.sub("m1").open_stream(
        "/watch", (), it.loop.time() + 5, on_leave=lambda reason: left.append((it.loop.time(), reason))
    )
    began = it.loop.time()
    await it.say("m1", Status.NOT_SERVING)
    await asyncio.sleep(0.4)
    await it.say("m1", Status.SERVING)
    await asyncio.sleep(2)
    assert not left, "a small database is defragmented before a stream is open elsewhere"
    began = it.loop.time()
    await it.say("m1", Status.NOT_SERVING)
    await asyncio.sleep(2)
    ((at, reason),) = left
    assert 0.5 < at - began < 0.6
    assert "not serving" in reason
    assert not it.stream("m1").is_over, "the stream that tells of it stays"
    stream.cancel()
    await it.balancer.aclose()


async def test_an_answer_or_a_refusal_that_was_on_its_way_does_not_count_more_than_its_word() -> None:
    it = await World().listening()
    it["m1"].latency = 0.1
    attempts = it.begin("m1", may_move=False), it.begin("m1", may_move=False, needs_leader=False)
    await turns()
    await it.say("m1", Status.NOT_SERVING)
    await asyncio.gather(*attempts)
    it.sub("m1").note_refusal(NoLeaderError())
    assert it.health()["m1"] == GONE
    await asyncio.sleep(5)
    assert it.health()["m1"] == GONE
    assert not it.asked(RANGE.path)
    await it.say("m1", Status.SERVING)
    assert it.health()["m1"] == FINE
    await it.balancer.aclose()


async def test_its_word_ends_a_probe_of_a_member_that_is_silent() -> None:
    it = await World().listening()
    it["m1"].otherwise = Hang()
    attempt = it.begin("m1", may_move=False)
    for _ in range(10):
        await it.begin("m2")
        await asyncio.sleep(0.1)
    assert it.health()["m1"][0] is Health.SILENT
    await it.say("m1", Status.NOT_SERVING)
    await asyncio.sleep(5)
    asked = len(it.asked(RANGE.path))
    await asyncio.sleep(30)
    assert len(it.asked(RANGE.path)) == asked
    assert it.health()["m1"] == GONE
    attempt.cancel()
    await it.balancer.aclose()


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.SERVICE_UNKNOWN, Status.SERVING])
async def test_other_words_mean_nothing(status: Status) -> None:
    it = await World().listening()
    await it.say("m1", status)
    assert it.health()["m1"] == FINE
    await it.balancer.aclose()


# The streams.


async def test_short_programs_open_none() -> None:
    it = World()
    it["m1"].has_health = True
    await it.started()
    await asyncio.sleep(0.9)
    assert not it["m1"].health_streams
    await asyncio.sleep(0.2)
    (stream,) = it["m1"].health_streams
    assert stream.sent == [b""]
    assert stream.metadata == (), "neither a token nor a leader is needed"
    assert it.balancer.statistics()[0].streams == 0, "it is not one of the program's"
    await it.balancer.aclose()
    assert stream.is_over
    assert not tasks()
    assert not timers()


@pytest.mark.parametrize("code", [StatusCode.UNIMPLEMENTED, StatusCode.PERMISSION_DENIED, StatusCode.UNAUTHENTICATED])
async def test_a_connection_without_the_service_is_not_asked_again(code: StatusCode) -> None:
    it = await World().listening()
    await it.say("m1", Status.NOT_SERVING)
    it.stream("m1").fail(AttemptFailure(code, "no such service", Delivery.ANSWERED))
    await turns()
    assert it.health()["m1"] == FINE, "nothing is known of it any more"
    await asyncio.sleep(1000)
    assert len(it["m1"].health_streams) == 1
    assert sum("serving" in task.get_name() for task in tasks()) == 2
    it["m1"].connection.lose(ConnectionResetError())
    await asyncio.sleep(2)
    assert len(it["m1"].health_streams) == 2, "the next connection may lead to another peer"
    await it.balancer.aclose()


async def test_a_stream_that_ends_is_opened_again_after_growing_waits() -> None:
    it = await World().listening()
    await it.say("m1", Status.NOT_SERVING)
    opened: list[float] = []
    for number in range(9):
        began = it.loop.time()
        if number % 2:
            it.stream("m1").end()
        else:
            it.stream("m1").fail(AttemptFailure(StatusCode.UNAVAILABLE, "an idle proxy", Delivery.ANSWERED))
        await turns()
        assert it.health()["m1"] == FINE
        count = len(it["m1"].health_streams)
        while len(it["m1"].health_streams) == count:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.1)
        opened.append(it.loop.time() - began)
    assert [round(one) for one in opened] == [1, 2, 4, 8, 16, 32, 64, 120, 120]
    assert AGAIN_BACKOFF.maximum == 120
    await it.say("m1", Status.NOT_SERVING)
    assert it.health()["m1"] == GONE
    it.stream("m1").end()
    await asyncio.sleep(1.5)
    assert len(it["m1"].health_streams) == 11, "after a message the waits begin anew"
    await it.balancer.aclose()


async def test_a_drained_connection_closes_although_its_stream_is_open() -> None:
    it = await World().listening()
    connection = it["m1"].connection
    connection.go_away()
    await turns()
    assert connection.is_lost
    await asyncio.sleep(2)
    assert it.sub("m1").state is ConnectivityState.READY
    assert len(it["m1"].health_streams) == 2
    it.balancer.set_endpoints(it.balancer.endpoints[1:])
    await turns()
    assert it["m1"].connection.is_lost
    await it.balancer.aclose()
    assert not tasks()


async def test_the_word_over_an_old_connection_does_not_count() -> None:
    it = await World().listening()
    sub, old = it.sub("m1"), it.sub("m1").record
    it["m1"].connection.lose(ConnectionResetError())
    await asyncio.sleep(2)
    it["m1"].otherwise = Hang()
    read = it.begin("m1")
    await turns()
    sub.note_serving(False, old)
    await turns()
    assert it.health()["m1"] == FINE
    assert not read.done()
    read.cancel()
    await it.balancer.aclose()


async def test_a_pinned_client_changes_to_another_endpoint() -> None:
    it = World(policy="pinned")
    for name in ("m1", "m2"):
        it[name].has_health = True
    await it.started()
    await asyncio.sleep(1.1)
    await it.say("m1", Status.NOT_SERVING)
    await asyncio.sleep(0.1)
    assert it.picked() == {"m2"}
    await it.balancer.aclose()


async def test_the_defect_of_an_engine_is_logged_and_stops_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    it = World()
    it["m1"].has_health = True
    await it.started()
    await asyncio.sleep(1.1)
    with caplog.at_level(logging.ERROR, "etcd_aio.balancer"):
        it.stream("m1").fail(ZeroDivisionError())  # type: ignore[arg-type]
        await turns()
    assert "health service cannot be used: ZeroDivisionError" in caplog.text
    assert it.picked() == {"m1", "m2", "m3"}
    await it.balancer.aclose()

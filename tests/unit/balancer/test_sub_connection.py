"""balancer/sub_connection.py, balancer/dialler.py, balancer/connection_record.py: dials, verified peers, outages,
attempts, streams and closes.
"""

import asyncio
import gc
import itertools
import logging
import re
import weakref

import pytest

from etcd_aio.balancer.dialler import DIAL_BACKOFF, STABLE_AFTER, Dialling
from etcd_aio.balancer.endpoint import parse_endpoint
from etcd_aio.balancer.health_verdicts import ServiceHealth
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.errors import (
    AttemptFailure,
    ClusterChangedError,
    ConnectError,
    ConnectionLostError,
    Delivery,
    LocalReason,
    NoLeaderError,
    StatusCode,
)
from etcd_aio.transport import Connection
from etcd_aio.types import ConnectivityState, Health
from tests.support.fake_engine import Accept, FakeEngine, FakeMember, Hang, Refuse
from tests.support.virtual_time import tasks, turns

pytestmark = pytest.mark.anyio

READY, IDLE, CONNECTING = ConnectivityState.READY, ConnectivityState.IDLE, ConnectivityState.CONNECTING
TRANSIENT_FAILURE, SHUTDOWN = ConnectivityState.TRANSIENT_FAILURE, ConnectivityState.SHUTDOWN
NEVER = float("inf")
NOT_CONNECTED = Health.NOT_CONNECTED


class World:
    """One sub-connection, its fake endpoint, and what was seen of it."""

    def __init__(
        self, chance: float = 0.5, *, verify_all: bool = False, endpoint: str = "m1:2379", host: str = "m1:2379"
    ) -> None:
        self.engine = FakeEngine()
        self.member: FakeMember = self.engine[host]
        self.states: list[ConnectivityState] = []
        self.healths: list[tuple[bool, Health]] = []
        self.verified: list[Connection] = []
        self.verdict: Exception | None = None
        self.verifying: list[str] = []
        self.p99_latency = 0.0
        self.is_armed = False
        self.sub = SubConnection(
            parse_endpoint(endpoint),
            None,
            Dialling(self.engine, self.verify, verify_all, lambda: chance),
            self,
            on_change=lambda: self.states.append(self.sub.state),
        )

    def arm(self) -> None:
        """An attempt begins."""

    def on_changed(self, sub_connection: SubConnection, service: ServiceHealth) -> None:
        self.healths.append((service is sub_connection.quorum_health, service.health))

    async def verify(self, connection: Connection, endpoint: str) -> None:
        self.verified.append(connection)
        await asyncio.sleep(0)
        for command in self.verifying:
            getattr(self.member.connection, command)()
        if self.verdict is not None:
            raise self.verdict

    async def ready(self) -> "World":
        self.sub.start()
        await turns()
        assert self.sub.state is READY
        return self

    async def attempt(self, deadline: float = NEVER) -> bytes:
        return await self.sub.unary("/p", b"request", (("a", "b"),), deadline)

    def gaps(self) -> list[float]:
        return [later - earlier for earlier, later in itertools.pairwise(self.member.dials)]


async def closed(world: World) -> None:
    await world.sub.aclose()
    assert world.sub.state is SHUTDOWN
    assert world.sub.is_over
    assert world.sub.in_flight == 0
    assert not tasks()
    dials = len(world.member.dials)
    await asyncio.sleep(60)
    assert len(world.member.dials) == dials


# Connecting.


async def test_it_dials_once_and_is_ready() -> None:
    world = World()
    assert world.sub.state is IDLE
    world.sub.start()
    world.sub.start()
    await turns()
    assert world.states == [CONNECTING, READY]
    assert len(world.member.dials) == 1
    assert world.member.targets[0].authority == "m1:2379"
    await closed(world)


async def test_dials_back_off_to_less_than_a_second_and_never_end() -> None:
    world = World()
    world.member.dial = Refuse()
    world.sub.start()
    await asyncio.sleep(600)
    gaps = world.gaps()
    assert gaps[:3] == pytest.approx([0.05, 0.08, 0.128])
    assert gaps == sorted(gaps)
    assert gaps[-1] == pytest.approx(DIAL_BACKOFF.maximum)
    assert 740 < len(gaps) < 760
    assert world.sub.state is TRANSIENT_FAILURE
    assert isinstance(world.sub.last_error, ConnectionRefusedError)
    await closed(world)


@pytest.mark.parametrize("chance", [0.0, 0.999])
async def test_dial_backoff_is_jittered(chance: float) -> None:
    world = World(chance)
    world.member.dial = Refuse()
    world.sub.start()
    await asyncio.sleep(60)
    assert world.gaps()[0] == pytest.approx(DIAL_BACKOFF.wait(0, lambda: chance))
    assert world.gaps()[0] != pytest.approx(0.05)
    await closed(world)


async def test_a_returning_endpoint_is_found_within_about_a_second() -> None:
    world = World()
    world.member.dial = Refuse()
    world.sub.start()
    await asyncio.sleep(100)
    world.member.dial = Accept()
    await asyncio.sleep(1.2)
    assert world.sub.state is READY
    await closed(world)


async def test_the_first_failure_of_an_outage_is_a_warning_and_the_rest_is_noise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "etcd_aio.balancer")
    world = World()
    world.member.dial = Refuse()
    world.sub.start()
    await asyncio.sleep(60)
    assert [record.levelname for record in caplog.records if "connecting failed" in record.message][:3] == [
        "WARNING",
        "DEBUG",
        "DEBUG",
    ]
    await closed(world)


async def test_the_end_of_an_outage_is_logged_as_its_beginning_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.balancer")
    world = await World().ready()
    assert not caplog.messages, "that the first dial succeeds is no news"
    for _ in range(2):  # the second time right after the first
        caplog.clear()
        world.member.dial = Refuse()
        world.member.connection.lose(ConnectionResetError("reset"))
        await asyncio.sleep(2.0)
        world.member.dial = Accept()
        await asyncio.sleep(1.2)
        lost, failed, back = caplog.records
        assert (lost.levelname, lost.message) == ("INFO", "endpoint m1:2379: connection lost: reset")
        assert (failed.levelname, failed.message) == (
            "WARNING",
            "endpoint m1:2379: connecting failed: ConnectionRefusedError: [Errno 111] refused",
        )
        assert back.levelname == "INFO"
        assert re.fullmatch(r"endpoint m1:2379: connected again after [23]\.\d s", back.message)
    await closed(world)


async def test_an_endpoint_that_comes_late_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.balancer")
    world = World()
    world.member.dial = Refuse()
    world.sub.start()
    await asyncio.sleep(2.0)
    world.member.dial = Accept()
    await asyncio.sleep(1.2)
    assert re.fullmatch(r"endpoint m1:2379: connected after [23]\.\d s", caplog.messages[-1])
    await closed(world)


async def test_without_a_connection_nothing_is_known_of_health() -> None:
    world = World()
    found = world.sub.statistics()
    assert (found.health, found.local_health, found.health_reason) == (NOT_CONNECTED, NOT_CONNECTED, "")
    await world.ready()
    found = world.sub.statistics()
    assert (found.health, found.local_health, found.health_reason) == (Health.HEALTHY, Health.HEALTHY, "")
    await asyncio.sleep(5.0)
    world.member.dial = Refuse()
    world.member.connection.lose(ConnectionResetError("reset"))
    await asyncio.sleep(3.0)
    found = world.sub.statistics()
    assert (found.state, found.health, found.local_health) == (TRANSIENT_FAILURE, NOT_CONNECTED, NOT_CONNECTED)
    assert found.health_reason == "ConnectionRefusedError: [Errno 111] refused"
    assert found.health_since == pytest.approx(3.0)
    await closed(world)


# Losing.


async def test_a_stable_connection_that_is_lost_is_redialled_at_once() -> None:
    world = await World().ready()
    await asyncio.sleep(STABLE_AFTER)
    lost_at = asyncio.get_running_loop().time()
    error = ConnectionResetError(104, "reset")
    world.sub.is_leader = True
    world.member.connection.lose(error)
    assert world.sub.state is IDLE
    assert world.sub.last_error is error
    assert not world.sub.is_leader
    await turns()
    assert world.member.dials[1:] == [lost_at]
    assert world.sub.state is READY
    assert world.states == [CONNECTING, READY, IDLE, IDLE, CONNECTING, READY]
    await closed(world)


async def test_a_connection_closed_by_the_peer_has_a_reason_too() -> None:
    world = await World().ready()
    world.member.connection.lose(None)
    assert isinstance(world.sub.last_error, ConnectionLostError)
    await closed(world)


@pytest.mark.parametrize("dial", [Accept(lost_at_once=True), Accept(draining_at_once=True)])
async def test_an_endpoint_that_accepts_and_drops_is_no_busy_loop(dial: Accept) -> None:
    world = World()
    world.member.dial = dial
    world.sub.start()
    await asyncio.sleep(600)
    gaps = world.gaps()
    assert gaps[0] == pytest.approx(0.05)
    assert gaps[-1] == pytest.approx(DIAL_BACKOFF.maximum)
    assert len(gaps) < 760
    world.member.dial = Accept()
    await asyncio.sleep(2)
    assert world.sub.state is READY
    await closed(world)


async def test_a_connection_lost_soon_after_it_was_ready_waits_its_backoff() -> None:
    world = await World().ready()
    for _ in range(30):
        world.member.connection.lose(ConnectionResetError())
        dials = len(world.member.dials)
        while len(world.member.dials) == dials:  # noqa: ASYNC110 - nothing tells of a dial, and the time is virtual
            await asyncio.sleep(0.001)
    assert world.gaps()[0] == pytest.approx(0.05, abs=0.002)
    assert world.gaps()[-1] == pytest.approx(DIAL_BACKOFF.maximum, abs=0.002)
    await closed(world)


# Draining.


async def test_a_draining_connection_is_kept_beside_its_successor() -> None:
    world = await World().ready()
    world.member.answers.extend([Hang(), b"second"])
    old = world.member.connection
    running = asyncio.ensure_future(world.attempt(deadline=2000.0))
    await asyncio.sleep(STABLE_AFTER)
    old.go_away()
    assert world.sub.state is IDLE
    await turns()
    assert world.sub.state is READY
    assert world.member.connection is not old
    assert await world.attempt() == b"second"
    assert not old.is_lost
    assert world.sub.in_flight == 0, "what is left on the old one is no load of the new one"
    assert world.sub.statistics().in_flight == 1
    with pytest.raises(AttemptFailure):
        await running
    assert old.is_lost
    assert world.sub.last_error is None  # an orderly end is no error
    await closed(world)


@pytest.mark.parametrize("is_dialling", [True, False])
async def test_a_rejection_by_a_late_answer_has_the_next_peer_verified(is_dialling: bool) -> None:
    """It is the answer of an old connection, and comes while the next one is dialled, or is there."""
    world = await World().ready()
    await asyncio.sleep(STABLE_AFTER)
    world.member.dial = Accept(seconds=1.0)
    world.member.connection.go_away()
    await asyncio.sleep(0.5 if is_dialling else 1.5)
    world.sub.reject(ClusterChangedError("another cluster"))
    await asyncio.sleep(3)
    assert world.sub.state is READY
    assert len(world.verified) == 1
    await closed(world)


async def test_a_stream_keeps_a_draining_connection_open() -> None:
    world = await World().ready()
    stream = await world.sub.open_stream("/p", (), NEVER)
    old = world.member.connection
    old.go_away()
    await turns()
    assert not old.is_lost
    stream.cancel()
    assert old.is_lost
    await closed(world)


async def test_the_owner_of_a_stream_is_asked_once_to_leave_a_draining_connection() -> None:
    world = await World().ready()
    reasons: list[str] = []
    stream = await world.sub.open_stream("/p", (), NEVER, reasons.append)
    kept = await world.sub.open_stream("/p", (), NEVER)
    assert world.sub.statistics().streams == 2
    world.member.connection.go_away("going away")
    world.sub.leave_streams("again")
    world.sub.drain()
    assert reasons == ["going away"]
    stream.cancel()
    assert world.sub.statistics().streams == 1
    kept.cancel()
    assert world.sub.statistics().streams == 0
    await closed(world)


async def test_the_owner_of_a_stream_is_asked_to_leave_a_removed_endpoint() -> None:
    world = await World().ready()
    reasons: list[str] = []
    stream = await world.sub.open_stream("/p", (), NEVER, reasons.append)
    over = await world.sub.open_stream("/p", (), NEVER, reasons.append)
    over.cancel()
    world.sub.drain()
    assert reasons == ["the endpoint is no longer used"]
    stream.cancel()
    await closed(world)


async def test_streams_can_be_asked_to_leave_a_connection_that_lives_on() -> None:
    world = await World().ready()
    reasons: list[str] = []
    await world.sub.open_stream("/p", (), NEVER, reasons.append)
    world.sub.leave_streams("no leader")
    world.sub.leave_streams("no leader")
    assert reasons == ["no leader"]
    assert world.sub.state is READY
    await world.sub.open_stream("/p", (), NEVER, reasons.append)
    world.sub.leave_streams("no leader")
    assert reasons == ["no leader"] * 2
    await closed(world)


async def test_a_stream_that_was_opened_while_the_connection_began_to_drain_is_asked_to_leave() -> None:
    world = await World().ready()
    reasons: list[str] = []
    connection = world.member.connection
    world.member.on_stream = lambda stream: connection.go_away("going away")
    stream = await world.sub.open_stream("/p", (), NEVER, reasons.append)
    assert reasons == []
    await turns()
    assert reasons == ["going away"]
    stream.cancel()
    await closed(world)


async def test_a_stream_that_was_opened_while_the_endpoint_was_removed_is_asked_to_leave() -> None:
    world = await World().ready()
    reasons: list[str] = []
    connection = world.member.connection
    world.member.on_stream = lambda stream: world.sub.drain()
    stream = await world.sub.open_stream("/p", (), NEVER, reasons.append)
    await turns()
    assert reasons == ["the endpoint is no longer used"]
    assert not connection.is_lost
    stream.cancel()
    assert connection.is_lost
    await closed(world)


@pytest.mark.parametrize(
    ("text", "health"),
    [
        ("etcdserver: no leader", Health.NO_LEADER),
        ("etcdserver: rpc not supported for learner", Health.LEARNER),
        ("etcdserver: permission denied", Health.HEALTHY),
    ],
)
async def test_a_stream_that_is_refused_when_it_is_opened_says_what_the_member_is(text: str, health: Health) -> None:
    world = await World().ready()
    reasons: list[str] = []
    await world.sub.open_stream("/p", (), NEVER, reasons.append)
    world.member.openings += [
        AttemptFailure(StatusCode.UNAVAILABLE, "etcdserver: no leader", Delivery.UNSENT),
        AttemptFailure(StatusCode.UNAVAILABLE, text, Delivery.ANSWERED),
    ]
    with pytest.raises(AttemptFailure):
        await world.sub.open_stream("/p", (), NEVER)
    assert not world.healths, "what the member did not say is no evidence"
    with pytest.raises(AttemptFailure):
        await world.sub.open_stream("/p", (), NEVER)
    assert world.sub.quorum_health.health is health
    assert bool(reasons) is (health is Health.NO_LEADER)
    await closed(world)


async def test_a_removed_sub_connection_finishes_what_runs_and_takes_nothing_new() -> None:
    world = await World().ready()
    world.member.answers.append(b"late")
    world.member.latency = 5.0
    running = asyncio.ensure_future(world.attempt())
    await turns()
    world.sub.drain()
    world.sub.drain()
    assert world.sub.state is SHUTDOWN
    with pytest.raises(AttemptFailure) as caught:
        await world.attempt()
    assert caught.value.delivery is Delivery.UNSENT
    assert not world.sub.is_over
    assert await running == b"late"
    await turns()
    assert world.sub.is_over
    await closed(world)


async def test_draining_with_several_connections_open_ends_each_of_them() -> None:
    world = await World().ready()
    world.member.otherwise = Hang()
    streams = [await world.sub.open_stream("/p", (), NEVER)]
    for _ in range(2):
        world.member.connection.go_away()
        await asyncio.sleep(2)
        streams.append(await world.sub.open_stream("/p", (), NEVER))
    streams[2].cancel()
    world.sub.drain()
    streams[1].cancel()
    streams[0].cancel()
    await turns()
    assert all(connection.is_lost for connection in world.member.connections)
    await closed(world)


# Attempts.


async def test_an_attempt_is_counted_while_it_runs_and_afterwards() -> None:
    world = await World().ready()
    world.member.latency = 0.25
    world.member.answers.append(b"reply")
    running = asyncio.ensure_future(world.attempt())
    await turns()
    assert world.sub.in_flight == 1
    assert await running == b"reply"
    statistics = world.sub.statistics()
    assert (statistics.in_flight, statistics.attempts, statistics.failures) == (0, 1, 0)
    assert statistics.latency == pytest.approx(0.25)
    assert (statistics.endpoint, statistics.state, statistics.connects) == ("m1:2379", READY, 1)
    assert statistics.since == pytest.approx(0.25)
    (attempt,) = world.member.attempts
    assert (attempt.path, attempt.payload, attempt.metadata) == ("/p", b"request", (("a", "b"),))
    await closed(world)


async def test_latency_is_a_moving_average() -> None:
    world = await World().ready()
    for latency in (1.0, 2.0):
        world.member.latency = latency
        await world.attempt()
    assert world.sub.latency == pytest.approx(1.1)
    await closed(world)


async def test_a_member_that_fails_fast_does_not_look_fast() -> None:
    world = await World().ready()
    world.p99_latency = 0.5
    world.member.answers.append(AttemptFailure(StatusCode.UNAVAILABLE, "gone", Delivery.UNKNOWN))
    with pytest.raises(AttemptFailure):
        await world.attempt()
    assert world.sub.latency == 0.5
    await closed(world)


async def test_failures_are_attempts_without_an_answer() -> None:
    world = await World().ready()
    world.member.answers.extend(
        [
            AttemptFailure(StatusCode.UNAVAILABLE, "lost", Delivery.UNKNOWN),
            AttemptFailure(StatusCode.UNAVAILABLE, "etcdserver: no leader", Delivery.ANSWERED),
        ]
    )
    for _ in range(2):
        with pytest.raises(AttemptFailure):
            await world.attempt()
    statistics = world.sub.statistics()
    assert (statistics.in_flight, statistics.attempts, statistics.failures) == (0, 2, 1)
    await closed(world)


async def test_a_cancelled_attempt_leaves_nothing_in_flight() -> None:
    world = await World().ready()
    world.member.otherwise = Hang()
    running = asyncio.ensure_future(world.attempt())
    await turns()
    running.cancel()
    await asyncio.wait([running])
    assert world.sub.in_flight == 0
    assert world.sub.state is READY
    assert world.sub.statistics().attempts == 1
    await closed(world)


async def test_without_a_connection_nothing_is_sent() -> None:
    world = World()
    for attempt in (world.attempt(), world.sub.open_stream("/p", (), NEVER)):
        with pytest.raises(AttemptFailure) as caught:
            await attempt
        assert (caught.value.delivery, caught.value.code) == (Delivery.UNSENT, StatusCode.UNAVAILABLE)
    assert world.sub.in_flight == 0
    await closed(world)


# Rejection.


async def test_a_rejected_peer_is_verified_before_it_is_used_again(caplog: pytest.LogCaptureFixture) -> None:
    world = await World().ready()
    await asyncio.sleep(10)
    first = world.member.connection
    world.verdict = ClusterChangedError("endpoint m1:2379 belongs to cluster b")
    world.sub.reject(world.verdict)
    assert world.sub.state is IDLE
    assert first.is_lost
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    await asyncio.sleep(100)
    assert READY not in world.states[2:]
    assert world.verified
    assert all(connection.is_lost for connection in world.member.connections)
    assert world.sub.last_error is world.verdict
    assert world.gaps()[:2] == pytest.approx([10.05, 0.08])
    assert world.gaps()[-1] == pytest.approx(DIAL_BACKOFF.maximum)
    world.verdict = None
    await asyncio.sleep(1.2)
    assert world.sub.state is READY
    assert world.verified[-1] is world.member.connection
    verified = len(world.verified)
    world.member.connection.lose(ConnectionResetError())
    await asyncio.sleep(1.2)
    assert world.sub.state is READY
    assert len(world.verified) == verified
    await closed(world)


@pytest.mark.parametrize("command", ["lose", "go_away"])
async def test_a_peer_that_ends_the_connection_while_it_is_verified_is_not_used(command: str) -> None:
    world = await World().ready()
    world.verifying = [command]
    world.sub.reject(ClusterChangedError("m1"))
    await asyncio.sleep(60)
    assert READY not in world.states[2:]
    assert len(world.member.dials) <= 85
    world.verifying = []
    await asyncio.sleep(2)
    assert world.sub.state is READY
    await closed(world)


async def test_rejecting_without_a_connection_has_the_next_one_verified() -> None:
    world = World()
    world.sub.reject(ClusterChangedError("m1"))
    await world.ready()
    assert len(world.verified) == 1
    await closed(world)


# Closing, in every state.


async def test_close_before_the_start() -> None:
    world = World()
    await closed(world)
    world.sub.start()
    await turns()
    assert not world.member.dials


async def test_close_while_the_dial_hangs() -> None:
    world = World()
    world.member.dial = Hang()
    world.sub.start()
    await turns()
    assert world.sub.state is CONNECTING
    await closed(world)


async def test_close_while_the_backoff_runs() -> None:
    world = World()
    world.member.dial = Refuse()
    world.sub.start()
    await turns()
    assert world.sub.state is TRANSIENT_FAILURE
    await closed(world)


async def test_close_while_the_peer_is_verified() -> None:
    world = await World().ready()
    world.sub.reject(ClusterChangedError("m1"))
    world.verifying = []
    await asyncio.sleep(0.05)
    await turns(1)
    await closed(world)
    assert all(connection.is_lost for connection in world.member.connections)


async def test_close_with_attempts_under_way_fails_them() -> None:
    world = await World().ready()
    world.member.otherwise = Hang()
    running = asyncio.ensure_future(world.attempt())
    await turns()
    await world.sub.aclose()
    with pytest.raises(AttemptFailure) as caught:
        await running
    assert caught.value.delivery is Delivery.UNKNOWN
    await closed(world)


async def test_close_after_a_loss_and_twice() -> None:
    world = await World().ready()
    world.member.connection.lose(ConnectionResetError())
    await closed(world)
    await closed(world)


async def test_an_error_of_the_engine_that_nobody_foresaw_is_one_more_reason() -> None:
    world = World()
    world.member.dial = Refuse(ZeroDivisionError("a bug"))
    world.sub.start()
    await asyncio.sleep(10)
    assert isinstance(world.sub.last_error, ZeroDivisionError)
    world.member.dial = Refuse(ConnectError("no answer within 2 s of dialling"))
    await asyncio.sleep(2)
    assert isinstance(world.sub.last_error, ConnectError)
    await closed(world)


async def test_a_repr_names_the_endpoint_and_its_state() -> None:
    world = await World().ready()
    assert repr(world.sub) == "<SubConnection m1:2379 READY in_flight=0>"
    await closed(world)


async def test_what_a_peer_does_not_have_is_forgotten_with_its_connection() -> None:
    world = await World().ready()
    of_the_old = world.sub.unserved
    of_the_old["/p"] = "unknown"
    world.member.connection.lose()
    await asyncio.sleep(STABLE_AFTER)
    assert world.sub.state is READY
    assert world.sub.unserved == {}
    of_the_old["/late"] = "unknown"
    assert world.sub.unserved == {}
    await closed(world)


async def test_a_change_of_health_is_told_once_and_an_answer_restores() -> None:
    world = await World().ready()
    world.sub.note_refusal(NoLeaderError())
    world.sub.note_refusal(NoLeaderError())
    assert world.sub.is_watched
    await world.sub.unary("/p", b"", (), NEVER, needs_leader=False)
    assert world.healths == [(True, Health.NO_LEADER)], "what it serves alone proves nothing"
    await world.attempt()
    assert world.healths == [(True, Health.NO_LEADER), (True, Health.HEALTHY)]
    assert not world.sub.is_watched


@pytest.mark.parametrize(
    ("failure", "is_answer"),
    [
        (AttemptFailure(StatusCode.NOT_FOUND, "etcdserver: requested lease not found", Delivery.ANSWERED), True),
        (AttemptFailure(StatusCode.UNAVAILABLE, "etcdserver: request timed out", Delivery.ANSWERED), False),
        (AttemptFailure(StatusCode.UNAVAILABLE, "the connection was lost", Delivery.UNKNOWN), False),
    ],
)
async def test_which_failures_are_answers(failure: AttemptFailure, is_answer: bool) -> None:
    world = await World().ready()
    world.sub.note_refusal(NoLeaderError())
    world.member.answers.append(failure)
    with pytest.raises(AttemptFailure):
        await world.attempt()
    assert world.sub.is_watched is not is_answer
    assert world.sub.in_flight == 0


@pytest.mark.parametrize("reason", [LocalReason.GIVEN_UP, LocalReason.REPLY_TOO_LARGE, None])
async def test_a_failure_for_a_reason_of_the_client_is_no_evidence_against_the_member(
    reason: LocalReason | None,
) -> None:
    world = await World().ready()
    delivery = Delivery.UNSENT if reason is None else Delivery.UNKNOWN
    for _ in range(2):
        world.member.answers.append(AttemptFailure(StatusCode.UNAVAILABLE, "mine", delivery, reason=reason))
        with pytest.raises(AttemptFailure):
            await world.attempt()
    assert world.sub.quorum_health.failures == 0
    assert world.sub.in_flight == 0
    await closed(world)


@pytest.mark.parametrize("is_address_of_a_name", [False, True])
async def test_every_connection_is_verified_where_there_is_something_to_protect(is_address_of_a_name: bool) -> None:
    world = await (
        World(endpoint="dns:///m#10.0.0.1", host="10.0.0.1:2379") if is_address_of_a_name else World(verify_all=True)
    ).ready()
    assert len(world.verified) == 1
    world.member.connection.lose()
    await asyncio.sleep(1)
    assert len(world.verified) == 2
    world.verdict = ClusterChangedError()
    world.member.connection.lose()
    await asyncio.sleep(1)
    assert world.sub.state is not READY
    with pytest.raises(AttemptFailure) as caught:
        await world.attempt()
    assert caught.value.delivery is Delivery.UNSENT
    assert not world.member.attempts
    await closed(world)


async def test_a_removed_member_that_does_not_serve_gives_back_what_can_be_made_elsewhere() -> None:
    world = await World().ready()
    world.member.otherwise = Hang()
    deadline = NEVER
    movable = asyncio.ensure_future(world.sub.unary("/p", b"", (), deadline, may_move=True))
    other = asyncio.ensure_future(world.attempt())
    await turns()
    world.sub.note_refusal(NoLeaderError())
    world.sub.drain()
    with pytest.raises(AttemptFailure) as caught:
        await movable
    assert caught.value.reason is LocalReason.GIVEN_UP
    assert not other.done()
    other.cancel()
    await turns()
    await closed(world)


async def test_moving_to_another_connection_keeps_the_state_and_starts_the_facts_about_the_member_anew() -> None:
    world = await World().ready()
    await world.attempt()
    world.sub.is_leader = True
    world.sub.latency = 3.0
    world.sub.note_refusal(NoLeaderError())
    record = await world.sub.dial_beside()
    states = list(world.states)
    assert world.sub.move(record)
    assert world.states[len(states) :] == [READY] * (len(world.states) - len(states)), "no call waits"
    assert (world.sub.latency, world.sub.is_leader) == (0.0, False)
    assert world.sub.quorum_health.health is Health.HEALTHY
    assert [one.is_lost for one in world.member.connections] == [True, False]
    await world.attempt()
    found = world.sub.statistics()
    assert (found.connects, found.attempts, found.last_error) == (2, 2, None)
    world.member.connection.lose(ConnectionResetError())
    await asyncio.sleep(0.1)
    assert world.sub.state is READY
    assert len(world.member.connections) == 3, "the dialler has followed"
    await closed(world)


async def test_what_cannot_be_moved_to_is_left_to_the_caller() -> None:
    world = await World().ready()
    record = await world.sub.dial_beside()
    assert not world.sub.move(record), "the old one serves"
    world.sub.note_refusal(NoLeaderError())
    record.discard()
    assert not world.sub.move(record), "it is over"
    record = await world.sub.dial_beside()
    world.member.connections[0].lose(ConnectionResetError())
    assert not world.sub.move(record), "the old one is gone, and dialled again"
    record.discard()
    await asyncio.sleep(1)
    assert world.sub.state is READY
    assert [one.is_lost for one in world.member.connections].count(False) == 1
    await closed(world)


async def test_connections_that_were_replaced_are_not_kept() -> None:
    """With certificates that live for minutes, a sub-connection has thousands in its life."""
    world = await World().ready()
    first = weakref.ref(world.sub.record)
    for _ in range(3):
        assert world.sub.renew(await world.sub.dial_beside(), "renewed")
        await turns()
    del world.member.connections[:-1], world.verified[:]
    gc.collect()
    assert first() is None
    await closed(world)

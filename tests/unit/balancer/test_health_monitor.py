"""balancer/health_monitor.py, balancer/probe.py: unhealthy members are used last and probed."""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise

import pytest

from etcd_aio import codec, pb
from etcd_aio.balancer import SubConnection, health_monitor
from etcd_aio.balancer.probe import probe
from etcd_aio.errors import (
    AttemptFailure,
    Delivery,
    LocalReason,
    NoLeaderError,
    NotSupportedForLearnerError,
    StatusCode,
)
from etcd_aio.methods import RANGE
from etcd_aio.types import ConnectivityState, Health
from tests.support.balancers import BalancerWorld
from tests.support.fake_engine import Accept, Hang, Refuse
from tests.support.virtual_time import tasks, timers, turns

pytestmark = pytest.mark.anyio

HANG = Hang()


class World(BalancerWorld):
    """Three members, and what is asked of them."""

    def __init__(self, members: int = 3) -> None:
        super().__init__(",".join(f"m{number}" for number in range(1, members + 1)), chance=lambda: 0.0)
        self.attempts: list[asyncio.Task[bytes]] = []

    @property
    def probes(self) -> list[tuple[str, bool, float]]:
        """The member, whether it was asked for what needs a leader, and when."""
        return [
            (attempt.member.authority[:2], ("hasleader", "true") in attempt.metadata, attempt.at)
            for attempt in self.asked(RANGE.path)
        ]

    def begin(
        self, name: str, *, seconds: float = 60.0, may_move: bool = False, needs_leader: bool = True
    ) -> "asyncio.Task[bytes]":
        sub, deadline = self.sub(name), self.loop.time() + seconds
        work = sub.unary("/x", b"", (), deadline, needs_leader=needs_leader, may_move=may_move)
        attempt = asyncio.ensure_future(work)
        self.attempts.append(attempt)
        return attempt

    async def serve(self, seconds: float, *names: str, needs_leader: bool = True) -> None:
        """Others are asked meanwhile, ten times a second, and answer."""
        end = self.loop.time() + seconds
        while self.loop.time() < end:
            for name in names:
                await self.begin(name, needs_leader=needs_leader)
            await asyncio.sleep(0.1)

    def silence(self, *names: str) -> None:
        for name in names:
            self.engine[f"{name}:2379"].otherwise = HANG

    def speak(self, *names: str) -> None:
        for name in names:
            self.engine[f"{name}:2379"].otherwise = b"fine"

    def health(self) -> dict[str, Health]:
        return {one.endpoint[:2]: one.health for one in self.balancer.statistics()}

    def members_picked(self, *, needs_leader: bool = True) -> set[str]:
        picked = (self.balancer.pick((), needs_leader) for _ in range(12))
        return set(Counter(one.endpoint_name[:2] for one in picked if one is not None))


@asynccontextmanager
async def world(members: int = 3) -> AsyncIterator[World]:
    made = World(members)
    made.balancer.start()
    await turns()
    made.speak("m1", "m2", "m3")
    yield made
    for attempt in made.attempts:
        attempt.cancel()
    await asyncio.gather(*made.attempts, return_exceptions=True)
    await made.balancer.aclose()
    assert not tasks()


async def failure_of(attempt: "asyncio.Task[bytes]") -> AttemptFailure:
    with pytest.raises(AttemptFailure) as caught:
        await attempt
    return caught.value


async def test_a_member_that_is_overtaken_is_used_last_and_its_reads_move() -> None:
    async with world() as it:
        it.silence("m1")
        read, write = it.begin("m1", may_move=True), it.begin("m1")
        await it.serve(0.5, "m2", "m3")
        assert it.health() == {"m1": Health.SILENT, "m2": Health.HEALTHY, "m3": Health.HEALTHY}
        assert it.members_picked() == {"m2", "m3"}
        failure = await failure_of(read)
        assert failure.reason is LocalReason.GIVEN_UP
        assert failure.delivery is Delivery.UNKNOWN
        assert not write.done(), "nobody may make it elsewhere"
        assert it.members_picked(needs_leader=False) == {"m1", "m2", "m3"}, "it was not asked for what it serves alone"


async def test_an_election_makes_nobody_look_bad() -> None:
    async with world() as it:
        it.silence("m1", "m2", "m3")
        for name in ("m1", "m2", "m3"):
            it.begin(name, may_move=True)
        await asyncio.sleep(5)
        assert set(it.health().values()) == {Health.HEALTHY}
        dials = sum(len(member.dials) for member in it.engine.members.values()) - 3
        assert len(it.probes) - dials == 9, "each is asked whenever its last question has ended"
        assert dials == 2, "elections do not take so long"


async def test_its_first_answer_restores_it() -> None:
    async with world() as it:
        it.silence("m1")
        attempt = it.begin("m1")
        await it.serve(0.5, "m2")
        assert it.members_picked() == {"m2", "m3"}
        attempt.cancel()
        it.speak("m1")
        await asyncio.sleep(2.5)  # the probe under way ends unanswered; the next one is answered
        assert it.health()["m1"] is Health.HEALTHY
        assert it.members_picked() == {"m1", "m2", "m3"}
        count = len(it.probes)
        await asyncio.sleep(60)
        assert len(it.probes) == count, "who is healthy is not probed"


async def test_where_all_look_bad_all_are_used() -> None:
    async with world(2) as it:
        for name in ("m1", "m2"):
            it.sub(name).note_refusal(NoLeaderError())
        assert it.members_picked() == {"m1", "m2"}


async def test_what_looks_bad_is_used_when_nothing_else_is_left() -> None:
    async with world() as it:
        it.silence("m1")
        it.sub("m1").note_refusal(NoLeaderError())
        avoid = (it.sub("m2"), it.sub("m3"))
        assert it.balancer.pick(avoid) is it.sub("m1")
        assert it.balancer.pick((*avoid, it.sub("m1"))) in avoid


async def test_a_member_without_leader_loses_what_needs_one_and_its_streams_at_once() -> None:
    async with world() as it:
        it.silence("m1")
        reasons: list[str] = []
        await it.sub("m1").open_stream("/watch", (), it.loop.time() + 1, reasons.append)
        it.sub("m1").note_refusal(NoLeaderError())
        assert reasons == ["etcdserver: no leader"]
        assert it.members_picked() == {"m2", "m3"}
        assert it.members_picked(needs_leader=False) == {"m1", "m2", "m3"}


async def test_reads_that_wait_when_the_leader_is_lost_move_too() -> None:
    async with world() as it:
        it.silence("m1", "m2", "m3")
        read = it.begin("m1", may_move=True)
        await asyncio.sleep(0.5)
        it.sub("m1").note_refusal(NoLeaderError())
        await asyncio.sleep(0.5)
        assert not read.done(), "nobody answers"
        it.speak("m2")
        await it.serve(0.2, "m2")
        assert (await failure_of(read)).reason is LocalReason.GIVEN_UP


async def test_reads_that_come_to_a_silent_member_for_want_of_another_move_on_later() -> None:
    async with world() as it:
        it.silence("m1")
        it.sub("m1").note_refusal(NoLeaderError())
        await turns()
        await asyncio.sleep(0.5)
        read = it.begin("m1", may_move=True)
        await asyncio.sleep(0.5)
        assert not read.done(), "nobody answers"
        await it.serve(0.3, "m2")
        assert (await failure_of(read)).reason is LocalReason.GIVEN_UP


async def test_streams_wait_for_a_moment_before_they_leave_a_silent_member() -> None:
    async with world() as it:
        it.silence("m1")
        reasons: list[str] = []
        await it.sub("m1").open_stream("/watch", (), it.loop.time() + 1, reasons.append)
        it.begin("m1")
        await it.serve(0.5, "m2")
        assert it.health()["m1"] is Health.SILENT
        assert not reasons
        await it.serve(0.5, "m2")
        assert len(reasons) == 1


async def test_a_learner_serves_what_it_can() -> None:
    async with world() as it:
        it.engine["m1:2379"].otherwise = AttemptFailure(StatusCode.FAILED_PRECONDITION, "x", Delivery.UNKNOWN)
        it.sub("m1").note_refusal(NotSupportedForLearnerError())
        assert it.health()["m1"] is Health.LEARNER
        assert it.members_picked() == {"m2", "m3"}
        assert it.members_picked(needs_leader=False) == {"m1", "m2", "m3"}


async def test_a_member_that_goes_on_refusing_is_one_change_and_a_learner_is_seldom_probed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.balancer")
    async with world() as it:
        text = "etcdserver: rpc not supported for learner"
        it.engine["m1:2379"].otherwise = AttemptFailure(StatusCode.FAILED_PRECONDITION, text, Delivery.ANSWERED)
        await failure_of(it.begin("m1"))
        await it.serve(120, "m2")
        assert it.health()["m1"] is Health.LEARNER
        assert len([record for record in caplog.records if "m1:2379" in record.getMessage()]) == 1
        assert len(it.probes) < 10
        it.speak("m1")  # it was promoted
        await it.serve(31, "m2")
        assert it.health()["m1"] is Health.HEALTHY


async def test_the_services_of_a_member_fail_apart() -> None:
    async with world() as it:
        it.silence("m1")
        it.begin("m1", needs_leader=False)
        await it.serve(0.5, "m2", needs_leader=False)
        assert it.health()["m1"] is Health.HEALTHY
        assert it.balancer.statistics()[0].local_health is Health.SILENT
        assert it.members_picked(needs_leader=False) == {"m2", "m3"}
        assert it.probes[0][:2] == ("m1", False)


async def test_a_member_behind_a_slow_link_is_slow_and_not_silent() -> None:
    async with world() as it:
        it.engine["m1:2379"].latency = 0.4
        for _ in range(9):
            it.begin("m1", needs_leader=False)
            await it.serve(0.5, "m2", needs_leader=False)
        it.begin("m1", needs_leader=False)
        await it.serve(0.3, "m2", needs_leader=False)
        assert it.balancer.statistics()[0].local_health is Health.HEALTHY


async def test_silence_is_found_for_one_caller_too() -> None:
    """With nothing to compare with, since it waits; another member is asked the same."""
    async with world() as it:
        it.silence("m1")
        read = it.begin("m1", may_move=True)
        await asyncio.sleep(0.3)
        assert [name for name, _, _ in it.probes] == ["m1", "m2"]
        await asyncio.sleep(0.2)
        assert it.health() == {"m1": Health.SILENT, "m2": Health.HEALTHY, "m3": Health.HEALTHY}
        assert (await failure_of(read)).reason is LocalReason.GIVEN_UP


async def test_one_member_alone_is_never_given_up() -> None:
    async with world(1) as it:
        it.silence("m1")
        read = it.begin("m1", may_move=True)
        await asyncio.sleep(5)
        assert it.health() == {"m1": Health.HEALTHY}
        assert not read.done()


async def test_two_timeouts_in_a_row_are_a_reason_to_ask() -> None:
    async with world() as it:
        it.silence("m1")
        for _ in range(2):
            await failure_of(it.begin("m1", seconds=0.1))
        await it.serve(0.3, "m2")
        assert it.probes[0][0] == "m1"
        assert it.health()["m1"] is Health.SILENT


@pytest.mark.parametrize("pause", [0.01, 1.0])
async def test_a_member_that_fails_fast_leaves_while_others_answer(pause: float) -> None:
    """Such as a proxy whose own member is down."""
    async with world() as it:
        it.engine["m1:2379"].otherwise = AttemptFailure(StatusCode.UNAVAILABLE, "no upstream", Delivery.ANSWERED)
        for _ in range(4):
            for name in ("m1", "m2", "m3"):
                with suppress(AttemptFailure):
                    await it.begin(name)
                await asyncio.sleep(pause)
        assert it.health() == {"m1": Health.FAILING, "m2": Health.HEALTHY, "m3": Health.HEALTHY}
        assert it.members_picked() == {"m2", "m3"}
        it.speak("m1")
        await asyncio.sleep(1.3)
        assert it.health()["m1"] is Health.HEALTHY


async def test_failures_of_all_members_are_no_ones_fault() -> None:
    async with world() as it:
        for name in ("m1", "m2", "m3"):
            it.engine[f"{name}:2379"].otherwise = AttemptFailure(
                StatusCode.UNAVAILABLE, "etcdserver: leader changed", Delivery.ANSWERED
            )
        for _ in range(100):
            for name in ("m1", "m2", "m3"):
                await failure_of(it.begin(name))
            await asyncio.sleep(0.02)
        assert set(it.health().values()) == {Health.HEALTHY}
        assert not it.probes


@pytest.mark.parametrize("calls", [1, 40])
async def test_what_is_slow_is_asked_about_and_stays(calls: int, caplog: pytest.LogCaptureFixture) -> None:
    """Reports that take 10 s, beside quick reads: no flapping, no log, few questions."""
    caplog.set_level(logging.INFO, "etcd_aio.balancer")
    async with world() as it:
        it.engine["m1:2379"].latency = 10.0
        slow = [it.begin("m1", may_move=True) for _ in range(calls)]
        await turns()
        it.engine["m1:2379"].latency = 0.001
        await it.serve(9.5, "m2", "m3")
        assert set(it.health().values()) == {Health.HEALTHY}
        assert it.probes
        assert {name for name, _, _ in it.probes} == {"m1"}, "traffic shows that the others answer"
        assert len(it.probes) < 12
        gaps = [later[2] - earlier[2] for earlier, later in pairwise(it.probes)]
        assert gaps[0] < 0.3
        assert gaps[-1] > 1.5, "questions come at growing distances"
        assert await asyncio.gather(*slow) == [b"fine"] * calls
    assert not caplog.records


async def test_a_busy_member_that_freezes_after_many_questions_is_found_as_fast() -> None:
    async with world() as it:
        it.engine["m1:2379"].latency = 60.0
        it.begin("m1")
        await turns()
        it.engine["m1:2379"].latency = 0.001
        await it.serve(9.5, "m2", "m3")
        it.silence("m1")
        began = it.loop.time()
        while it.health()["m1"] is Health.HEALTHY:
            it.begin("m1")
            it.begin("m2")
            await asyncio.sleep(0.01)
        assert it.loop.time() - began < 0.4


async def test_a_slow_mutation_of_one_caller_costs_few_questions() -> None:
    async with world() as it:
        it.engine["m1:2379"].latency = 10.0
        slow = it.begin("m1")
        await turns()
        it.engine["m1:2379"].latency = 0.001
        await slow
        assert set(it.health().values()) == {Health.HEALTHY}
        assert 4 < len(it.probes) < 20


async def test_a_client_that_is_cut_off_blames_no_member() -> None:
    async with world() as it:
        it.silence("m1", "m2", "m3")
        for name in ("m1", "m2", "m3"):
            it.begin(name, may_move=True)
        await asyncio.sleep(4)
        assert it.probes, "they are asked"
        assert set(it.health().values()) == {Health.HEALTHY}


async def test_a_long_way_is_no_silence() -> None:
    """A round trip of 0.6 s to all: what takes two of them is still no silence."""
    async with world() as it:
        for name in ("m1", "m2", "m3"):
            it.engine[f"{name}:2379"].latency = 0.6
            it.engine[f"{name}:2379"].dial = Accept(seconds=0.6)
            it.engine[f"{name}:2379"].connection.lose(ConnectionResetError(104, "reset"))
        await asyncio.sleep(1)
        await asyncio.gather(*(it.begin(name) for name in ("m1", "m2", "m3")))
        it.engine["m1:2379"].latency = 1.3
        slow = it.begin("m1", may_move=True)
        await turns()
        await it.serve(1.2, "m2")
        assert await slow == b"fine"
        assert not it.probes


async def test_what_drains_on_an_old_connection_is_no_evidence_about_the_new_one() -> None:
    async with world() as it:
        it.engine["m1:2379"].latency = 60.0
        old = it.begin("m1", may_move=True)
        await turns()
        it.engine["m1:2379"].latency = 0.001
        await it.serve(1.1, "m2", "m3")
        it.engine["m1:2379"].connection.go_away()
        probes = len(it.probes)
        await it.serve(3, "m2", "m3")
        assert it.health()["m1"] is Health.HEALTHY
        assert len(it.probes) == probes > 0
        assert it.sub("m1").statistics().in_flight == 1
        old.cancel()
        await it.serve(0.2, "m1")
        assert it.sub("m1").in_flight == 0


async def test_a_new_connection_is_watched_while_an_old_one_drains() -> None:
    async with world() as it:
        it.engine["m1:2379"].latency = 60.0
        old = it.begin("m1", may_move=True)
        await turns()
        it.engine["m1:2379"].connection.go_away()
        await asyncio.sleep(2)  # the timer has run out
        probes = len(it.probes)
        new = it.begin("m1", may_move=True)
        await asyncio.sleep(3)
        assert len(it.probes) > probes, "no other call has armed the timer"
        for call in (old, new):
            call.cancel()


async def test_a_mistake_in_a_probe_does_not_end_the_probing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = itertools.count()

    async def fails_once(sub_connection: SubConnection, needs_leader: bool) -> None:
        if not next(probes):
            raise ZeroDivisionError
        await probe(sub_connection, needs_leader)

    monkeypatch.setattr(health_monitor, "probe", fails_once)
    async with world() as it:
        it.sub("m1").note_refusal(NoLeaderError())
        await asyncio.sleep(2)
        assert it.health()["m1"] is Health.HEALTHY
        assert "a probe failed: ZeroDivisionError" in caplog.text


async def test_a_late_look_puts_its_judgement_off() -> None:
    """The loop stalled: what has arrived meanwhile is read first."""
    async with world() as it:
        it.engine["m1:2379"].latency = 0.6
        attempt = it.begin("m1", may_move=True)
        while not it.probes:
            await it.serve(0.01, "m2")
        assert {name for name, _, _ in it.probes} == {"m1"}, "the question is open"
        await it.begin("m2")
        it.loop._jumping.now += 1.0  # type: ignore[attr-defined]
        assert await attempt == b"fine", "it is not given up"
        assert it.health()["m1"] is Health.HEALTHY


async def test_an_idle_client_looks_at_nothing() -> None:
    async with world() as it:
        await it.begin("m1")
        await asyncio.sleep(1)
        assert timers() == 0
        assert not it.probes


async def test_probes_come_fast_and_then_slower_until_the_connection_is_lost() -> None:
    async with world() as it:
        refusal = AttemptFailure(StatusCode.UNAVAILABLE, "etcdserver: no leader", Delivery.ANSWERED)
        it.engine["m1:2379"].otherwise = refusal
        it.sub("m1").note_refusal(NoLeaderError())
        began = it.loop.time()
        await asyncio.sleep(5)
        at = [round(when - began, 2) for _, _, when in it.probes]
        gaps = [round(later - earlier, 2) for earlier, later in pairwise(at)]
        assert at[0] == 0
        assert gaps == sorted(gaps)
        assert gaps[0] <= 0.1
        assert gaps[-1] <= 1.2
        assert 6 <= len(gaps) <= 15
        it.engine["m1:2379"].dial = Refuse(ConnectionRefusedError(111, "gone"))
        it.engine["m1:2379"].connection.lose(ConnectionResetError(104, "reset"))
        await asyncio.sleep(1)
        assert it.sub("m1").state is ConnectivityState.TRANSIENT_FAILURE
        count = len(it.probes)
        await asyncio.sleep(10)
        assert len(it.probes) == count


async def test_a_new_connection_is_healthy() -> None:
    async with world() as it:
        it.silence("m1")
        it.sub("m1").note_refusal(NoLeaderError())
        it.engine["m1:2379"].connection.lose(ConnectionResetError(104, "reset"))
        await asyncio.sleep(1)
        assert it.sub("m1").state is ConnectivityState.READY
        assert it.health()["m1"] is Health.HEALTHY
        assert it.members_picked() == {"m1", "m2", "m3"}


async def test_changes_are_logged_and_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio.balancer")
    async with world() as it:
        it.silence("m1")
        it.begin("m1")
        await it.serve(1, "m2")
        shown = it.balancer.statistics()[0]
        assert shown.health is Health.SILENT
        assert "while other members answered" in shown.health_reason
        assert 0.5 < shown.health_since < 1
        it.speak("m1")
        await asyncio.sleep(3)
        assert it.balancer.statistics()[0].health_reason == ""
    told = [record.getMessage() for record in caplog.records if "m1:2379" in record.getMessage()]
    assert [line.split(" no answer")[0] for line in told] == [
        "endpoint m1:2379: unhealthy for linearizable calls: silent:",
        "endpoint m1:2379: healthy again for linearizable calls",
    ], "once for each change"


async def test_closing_ends_every_probe() -> None:
    async with world() as it:
        it.silence("m1")
        it.sub("m1").note_refusal(NoLeaderError())
        await turns()
        assert it.probes


# Probes.


@pytest.mark.parametrize("needs_leader", [True, False])
async def test_a_probe_is_a_read_that_costs_next_to_nothing(needs_leader: bool) -> None:
    it = await World().started()
    await probe(it.sub("m1"), needs_leader)
    [attempt] = it["m1"].attempts
    assert attempt.path == RANGE.path
    assert attempt.payload == codec.encode(
        pb.RangeRequest(key=b"health", keys_only=True, serializable=not needs_leader)
    )
    assert (("hasleader", "true") in attempt.metadata) is needs_leader


@pytest.mark.parametrize(
    ("failure", "health"),
    [
        (AttemptFailure(StatusCode.UNAVAILABLE, "etcdserver: no leader", Delivery.ANSWERED), Health.NO_LEADER),
        (
            AttemptFailure(
                StatusCode.FAILED_PRECONDITION, "etcdserver: rpc not supported for learner", Delivery.ANSWERED
            ),
            Health.LEARNER,
        ),
        (
            AttemptFailure(StatusCode.INVALID_ARGUMENT, "etcdserver: user name is empty", Delivery.ANSWERED),
            Health.HEALTHY,
        ),
        (AttemptFailure(StatusCode.UNAVAILABLE, "etcdserver: no leader", Delivery.UNKNOWN), Health.HEALTHY),
        (AttemptFailure(StatusCode.UNAVAILABLE, "gone", Delivery.UNKNOWN), Health.HEALTHY),
    ],
)
async def test_what_the_answer_to_a_probe_says_is_noted(failure: AttemptFailure, health: Health) -> None:
    it = await World().started()
    it["m1"].answers.append(failure)
    await probe(it.sub("m1"), True)
    assert it.sub("m1").quorum_health.health is health

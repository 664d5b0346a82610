"""lease/keeper.py: one stream for all leases, losses with their reasons, a missing lease is verified."""

import asyncio
import logging

import pytest

from etcd_aio import pb
from etcd_aio.errors import (
    ClientClosedError,
    EtcdTimeoutError,
    InvalidRequestError,
    LeaseExpiredError,
    LeaseLostError,
    LeaseNotFoundError,
    NoAvailableEndpointsError,
    NoLeaderError,
    NotSupportedByServerError,
    PermissionDeniedError,
)
from etcd_aio.lease.keepalive_schedule import LeaseState
from etcd_aio.lease.keeper import LeaseKeeper, RateLimitedWarning, grant_result
from etcd_aio.types import Header, LeaseGrantResult
from tests.support.leases import FakeLeases
from tests.support.virtual_time import VirtualTimeLoop, tasks, timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


class Holder:
    def __init__(self) -> None:
        self.deadlines: list[float] = []
        self.lost: list[LeaseLostError] = []

    def on_renewed(self, ttl: int, deadline: float) -> None:
        self.deadlines.append(deadline)

    def on_lost(self, error: LeaseLostError) -> None:
        self.lost.append(error)


async def held(members: FakeLeases, ttl: int = 10) -> Holder:
    granted = await members.group.grant(ttl)
    holder = Holder()
    members.keeper.hold(granted.id, granted.ttl, members.loop.time() + ttl, holder.on_renewed, holder.on_lost)
    return holder


async def test_one_stream_renews_every_lease_and_is_closed_after_the_last() -> None:
    members = FakeLeases()
    granted = [await members.group.grant(10) for _ in range(100)]
    holders = [Holder() for _ in granted]
    begun = members.loop.time()
    keeper = members.keeper
    scheduled = [
        keeper.hold(one.id, one.ttl, begun + 10, holder.on_renewed, holder.on_lost)
        for one, holder in zip(granted, holders, strict=True)
    ]
    await asyncio.sleep(16)
    assert len(members.streams) == 1
    assert members.streams[0].opened == 1
    assert {len(holder.deadlines) for holder in holders} <= {4, 5}, "thrice in a TTL, and the first ones early"
    for one in scheduled:
        keeper.forget(one)
    await turns()
    assert not members.streams[0].is_open
    asked = len(members.calls)
    await asyncio.sleep(60)
    assert len(members.calls) == asked
    assert not timers()


async def test_an_outage_loses_a_lease_at_its_deadline_and_names_the_endpoints() -> None:
    members = FakeLeases()
    holder = await held(members)
    begun = members.loop.time()
    members.is_reachable = False
    await asyncio.sleep(9.98)
    assert not holder.lost
    await asyncio.sleep(0.03)
    [error] = holder.lost
    assert isinstance(error, LeaseExpiredError)
    assert isinstance(error.__cause__, NoAvailableEndpointsError)
    assert "m1: OSError: refused" in str(error.__cause__)
    assert members.loop.time() - begun < 10.02


async def test_each_outage_has_its_own_error() -> None:
    members = FakeLeases()
    causes = []
    for _ in range(2):
        members.is_reachable = True
        holder = await held(members)
        await turns()
        members.is_reachable = False
        await asyncio.sleep(10.01)
        [error] = holder.lost
        causes.append(error.__cause__)
    first, second = causes
    assert isinstance(first, NoAvailableEndpointsError)
    assert isinstance(second, NoAvailableEndpointsError)
    assert first is not second


async def test_a_revoked_lease_is_lost_at_the_next_renewal_with_the_reason() -> None:
    members = FakeLeases()
    holder = await held(members)
    await members.group.revoke(100)
    await asyncio.sleep(5.1)
    [error] = holder.lost
    assert isinstance(error, LeaseExpiredError)
    assert isinstance(error.__cause__, LeaseNotFoundError)
    assert members.calls.count("TimeToLive") == 1, "the answer of a member that has caught up counts"
    assert not tasks()
    await asyncio.sleep(10)
    assert holder.lost == [error], "a loss is told once, and not at the deadline again"


async def test_a_member_that_denies_a_lease_has_to_catch_up_and_is_asked_again() -> None:
    """A member that led before it froze repeats its answer until it gets messages from the others."""
    members = FakeLeases()
    holder = await held(members)
    members.deny.append(3)
    members.is_behind = True
    await asyncio.sleep(30)
    assert not holder.lost
    assert len(holder.deadlines) == 11
    assert members.calls[:3] == ["Grant", "KeepAlive", "Range"]
    assert members.calls.count("TimeToLive") == 1
    assert members.asked == [None, "m1", "m1"], "the very member that denied it"


async def test_the_answer_of_a_member_that_has_not_caught_up_is_ignored() -> None:
    """One endpoint may lead to several members: here one has caught up, and another one answers."""
    members = FakeLeases()
    holder = await held(members)
    await members.group.revoke(100)
    members.answering.extend([2, 3] * 3)
    await asyncio.sleep(2.6)
    assert members.calls.count("TimeToLive") == 3
    assert not holder.lost
    await asyncio.sleep(1)
    assert holder.lost, "the next time the same one answers"


async def test_a_read_that_is_denied_still_makes_a_member_catch_up() -> None:
    members = FakeLeases()
    holder = await held(members)
    await members.group.revoke(100)
    members.failures.append(PermissionDeniedError())
    await asyncio.sleep(5.1)
    assert members.calls.count("TimeToLive") == 1
    assert holder.lost


async def test_a_loss_that_cannot_be_verified_is_left_to_the_next_renewal_and_the_deadline() -> None:
    members = FakeLeases()
    holder = await held(members)
    members.deny.extend([1] * 100)
    members.failures.extend(NoLeaderError() for _ in range(100))
    await asyncio.sleep(9.9)
    assert not holder.lost
    assert 10 < members.calls.count("Range") < 30, "it asks again, but not without a pause"
    await asyncio.sleep(0.2)
    assert isinstance(holder.lost[0], LeaseExpiredError)
    assert not isinstance(holder.lost[0].__cause__, LeaseNotFoundError)


async def test_a_deadline_that_passes_while_a_loss_is_verified_decides() -> None:
    members = FakeLeases()
    holder = await held(members)
    await members.group.revoke(100)
    await asyncio.sleep(5.0)
    members.latency = 6.0
    await asyncio.sleep(20)
    assert len(holder.lost) == 1
    assert not tasks()


async def test_a_single_renewal_returns_the_new_ttl() -> None:
    members = FakeLeases()
    await members.group.grant(10)
    await asyncio.sleep(8)
    renewed, deadline = await members.keeper.renew_once(100)
    assert deadline == pytest.approx(members.loop.time() - members.latency + 10), "it counts from the sending"
    assert (renewed.id, renewed.ttl) == (100, 10)
    await asyncio.sleep(8)
    assert members.ttl_of(100)
    await turns()
    assert not members.streams[0].is_open


async def test_a_single_renewal_of_an_unknown_lease_is_an_error() -> None:
    members = FakeLeases()
    with pytest.raises(LeaseNotFoundError):
        await members.keeper.renew_once(7)
    assert not tasks()


async def test_a_single_renewal_without_an_answer_raises_the_reason() -> None:
    members = FakeLeases()
    members.is_silent = True
    begun = members.loop.time()
    with pytest.raises(EtcdTimeoutError) as caught:
        await members.keeper.renew_once(7, 2.5)
    assert members.loop.time() - begun == pytest.approx(2.5)
    assert caught.value.maybe_applied
    assert members.streams[0].opened == 2, "after a second of silence it asked elsewhere"
    members.is_reachable = False
    await asyncio.sleep(1)
    with pytest.raises(NoAvailableEndpointsError):
        await members.keeper.renew_once(7, 1)


async def test_renewing_once_without_a_limit_waits_and_can_be_cancelled() -> None:
    members = FakeLeases()
    members.is_reachable = False
    task = asyncio.create_task(members.keeper.renew_once(7, None))
    await asyncio.sleep(1000)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await turns()
    assert not timers()


async def test_renewing_once_with_an_invalid_timeout_leaves_no_renewal_scheduled() -> None:
    members = FakeLeases()
    with pytest.raises(InvalidRequestError):
        await members.keeper.renew_once(7, -1)
    await turns()
    assert not timers()
    assert not members.keeper._schedule._leases


async def test_the_end_of_the_stream_loses_held_leases_and_fails_single_renewals() -> None:
    members = FakeLeases()
    holder = await held(members)
    members.is_silent = True
    asking = asyncio.create_task(members.keeper.renew_once(7))
    await asyncio.sleep(0.1)
    members.streams[0].close(ClientClosedError())
    [error] = holder.lost
    assert type(error) is LeaseLostError
    assert isinstance(error.__cause__, ClientClosedError)
    with pytest.raises(ClientClosedError):
        await asking
    with pytest.raises(ClientClosedError):
        await members.keeper.renew_once(7)


async def test_a_stall_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    members = FakeLeases()
    for _ in range(20):
        await held(members)
    loop = members.loop
    assert isinstance(loop, VirtualTimeLoop)
    with caplog.at_level(logging.WARNING, "etcd_aio.leases"):
        await asyncio.sleep(1)
        loop._jumping.now += 9.0
        await turns(10)
        stalls = [record for record in caplog.records if "was blocked" in record.message]
    assert len(stalls) == 1
    assert "blocked for 7." in stalls[0].message


async def test_a_suspension_is_not_logged_as_a_blocked_loop(caplog: pytest.LogCaptureFixture) -> None:
    members = FakeLeases()
    await held(members)
    with caplog.at_level(logging.WARNING, "etcd_aio.leases"):
        await asyncio.sleep(1)
        members.suspend(3600)
        await asyncio.sleep(10)
    (stall,) = (record.getMessage() for record in caplog.records if "no lease could be renewed" in record.message)
    assert stall.startswith("the machine was suspended for 359")


async def test_a_refused_lease_expires_with_the_reason_and_takes_no_other_along(
    caplog: pytest.LogCaptureFixture,
) -> None:
    members = FakeLeases()
    refused, *others = [await held(members) for _ in range(4)]
    members.forbidden.add(100)
    with caplog.at_level(logging.WARNING, "etcd_aio.leases"):
        await asyncio.sleep(30)
    (error,) = refused.lost
    assert isinstance(error, LeaseExpiredError)
    assert isinstance(error.__cause__, PermissionDeniedError)
    assert str(error.__cause__).startswith("keep lease 0x64 alive: etcdserver: permission denied")
    assert not any(other.lost for other in others)
    assert [line for line in caplog.messages if "refuses" in line] == [
        "the server refuses to renew lease 0x64: etcdserver: permission denied"
    ]
    assert members.streams[0].opened < 10


async def test_a_refused_lease_is_renewed_again_when_the_right_comes_back() -> None:
    members = FakeLeases()
    holder = await held(members)
    members.forbidden.add(100)
    await asyncio.sleep(7)
    assert not holder.deadlines
    members.forbidden.clear()
    await asyncio.sleep(30)
    assert not holder.lost


async def test_a_single_renewal_that_is_refused_raises_the_reason() -> None:
    members = FakeLeases()
    members.forbidden.add(7)
    with pytest.raises(PermissionDeniedError, match="keep lease 0x7 alive"):
        await members.keeper.renew_once(7)
    assert not tasks()


async def test_a_verified_loss_of_a_forgotten_lease_calls_no_listener() -> None:
    members = FakeLeases()
    granted = await members.group.grant(10)
    holder = Holder()
    scheduled = members.keeper.hold(granted.id, 10, members.loop.time() + 10, holder.on_renewed, holder.on_lost)
    await members.group.revoke(granted.id)
    while scheduled.state is not LeaseState.MISSING:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(0.001)
    members.keeper.forget(scheduled)
    await asyncio.sleep(1)
    assert not holder.lost
    assert not tasks()


async def test_drawn_ids_are_positive_and_of_63_bits() -> None:
    real = LeaseKeeper(FakeLeases().invoker)
    drawn = [real.draw_id() for _ in range(200)]
    assert all(0 < one < 2**63 for one in drawn)
    assert len(set(drawn)) == 200
    assert max(drawn) > 2**62
    assert LeaseKeeper(FakeLeases().invoker, draw_id=lambda: 0).draw_id() == 1


def test_a_grant_returns_header_id_and_ttl() -> None:
    header = pb.ResponseHeader(cluster_id=1, member_id=2, revision=7, raft_term=3)
    reply = pb.LeaseGrantResponse(header=header, id=9, ttl=10)
    assert grant_result(reply) == LeaseGrantResult(Header(1, 2, 7, 3), 9, 10)
    assert grant_result(pb.LeaseGrantResponse(id=9)).header == Header()


# --- warnings ---


def warning() -> RateLimitedWarning:
    return RateLimitedWarning(logging.getLogger("etcd_aio.test"), "%d were lost; the first: %s")


async def test_a_single_event_is_logged_in_its_own_words_at_once(caplog: pytest.LogCaptureFixture) -> None:
    losses = warning()
    losses.add("a is 100 % lost")
    await turns(2)
    assert caplog.messages == ["a is 100 % lost"]
    assert caplog.records[0].levelno == logging.WARNING
    assert not timers()


async def test_many_events_of_one_turn_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    losses = warning()
    for number in range(1000):
        losses.add(f"{number} is lost")
    await asyncio.sleep(10)
    assert caplog.messages == ["1000 were lost; the first: 0 is lost"]


async def test_lines_are_a_second_apart_and_count_every_event(caplog: pytest.LogCaptureFixture) -> None:
    losses = warning()
    for number in range(300):
        losses.add(f"{number} is lost")
        await asyncio.sleep(0.01)
    await asyncio.sleep(2)
    counts = [1 if "were" not in line else int(line.split()[0]) for line in caplog.messages]
    assert sum(counts) == 300
    assert len(counts) == 4
    assert caplog.messages[1].endswith("the first: 1 is lost")
    losses.add("later")
    await turns(2)
    assert caplog.messages[-1] == "later", "after a quiet second at once again"


async def test_a_lease_with_another_id_than_was_asked_for_is_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """kine gives the TTL as the id. A key with the id that was asked for would last for as many seconds."""
    members = FakeLeases()

    async def unary(method: object, request: pb.LeaseGrantRequest, **_: object) -> pb.LeaseGrantResponse:
        return pb.LeaseGrantResponse(header=pb.ResponseHeader(revision=1), id=request.ttl, ttl=request.ttl)

    monkeypatch.setattr(members, "unary", unary)
    for own_id in (None, 77):
        with pytest.raises(NotSupportedByServerError, match="lease 0xa"):
            await members.group.grant(10, own_id)
    kept = members.group.kept(10)
    with pytest.raises(NotSupportedByServerError):
        await kept.begin()
    await turns()
    assert not tasks(), "nothing is revoked"

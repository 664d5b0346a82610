"""lease/lease.py: granted, renewed, revoked; and its loss ends the task, however blocks are nested."""

# ruff: noqa: PT012 - the block is what is tested

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Thread
from traceback import extract_tb

import anyio
import pytest

from etcd_aio import Client, Key, op
from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    EtcdTimeoutError,
    InvalidRequestError,
    LeaseExistsError,
    LeaseExpiredError,
    LeaseLostError,
    LeaseNotFoundError,
    NoSpaceError,
    PermissionDeniedError,
    with_history,
)
from etcd_aio.lease.clock import LOOK_EVERY
from etcd_aio.lease.lease import Lease, OnLost
from tests.support.leases import FakeLeases
from tests.support.virtual_time import VirtualTimeLoop, tasks, timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


@pytest.fixture
async def members() -> FakeLeases:
    return FakeLeases()


def lease(members: FakeLeases, ttl: int = 10, *, id: int | None = None, on_lost: OnLost = "cancel") -> Lease:
    return members.group.block(ttl, on_lost, id=id)


def patient(members: FakeLeases, *, id: int | None = None) -> Lease:
    """A lease whose grant may take any time."""
    return members.group.block(10, "cancel", id=id, timeout=None)


async def test_a_lease_lives_as_long_as_its_block(members: FakeLeases) -> None:
    async with lease(members, 1) as one:
        assert (one.id, one.ttl) == (100, 2), "etcd's minimum"
        assert one.remaining == pytest.approx(1.99)
        await asyncio.sleep(60)
        assert members.ttl_of(100)
        assert 0.9 < one.remaining <= 2
        assert not one.is_lost
        assert repr(one).startswith("<Lease 0x64 ttl=2 remaining=")
    assert not members.leases
    assert (one.remaining, one.is_lost) == (0.0, False)
    assert await one.lost() is None
    assert repr(one) == "<Lease 0x64 ttl=2 ended>"
    assert members.timeouts[-1] == 2.0, "revoking has its own deadline"
    await turns()
    assert not tasks()
    assert not timers()


def adopted(members: FakeLeases, id: int) -> Lease:
    return members.group.block(1, "cancel", id=id, adopt=True)


async def test_an_adopted_lease_is_renewed_instead_of_granted_and_revoked_on_leaving(members: FakeLeases) -> None:
    await members.group.grant(7, id=5)
    await asyncio.sleep(4)
    async with adopted(members, 5) as one:
        assert (one.id, one.ttl) == (5, 7), "its own TTL counts"
        assert 6.9 < one.remaining <= 7.0
        assert members.calls == ["Grant", "KeepAlive"]
        await asyncio.sleep(60)
        assert members.ttl_of(5) == 7
    assert not members.leases


async def test_observers_see_each_change_of_a_lease(members: FakeLeases) -> None:
    def told() -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = [(change.event, change.ttl) for change in members.seen.leases]
        members.seen.leases.clear()
        return found

    async with lease(members):
        assert told() == [("granted", 10)]
        await asyncio.sleep(3)
        assert told() == [("renewed", 10)]
        assert members.seen.leases == []
    assert told() == [("ended", 10)]
    async with lease(members) as held:
        held.orphan()
        assert told() == [("granted", 10), ("ended", 10)]
    assert told() == []
    with pytest.raises(LeaseLostError) as caught:
        async with lease(members) as held:
            members.leases.pop(held.id)
            await asyncio.sleep(30)
    lost = members.seen.leases[-1]
    assert (lost.event, lost.lease) == ("lost", held.id)
    assert lost.error is caught.value


async def test_a_lease_that_is_gone_is_not_adopted(members: FakeLeases) -> None:
    with pytest.raises(LeaseNotFoundError):
        async with adopted(members, 5):
            raise AssertionError("not entered")
    assert "Grant" not in members.calls
    assert "Revoke" not in members.calls
    with pytest.raises(InvalidRequestError, match="pass its id="):
        members.group.kept(1, adopt=True)
    with pytest.raises(TypeError, match="adopt must be True or False"):
        members.group.kept(1, id=5, adopt="no")  # type: ignore[arg-type]


async def test_an_orphan_is_neither_renewed_nor_revoked(members: FakeLeases) -> None:
    async with lease(members, 10) as one:
        assert one.orphan() == one.id
        assert one.remaining == pytest.approx(9.99)
        await asyncio.sleep(6)
        assert one.remaining == pytest.approx(3.99), "it is not renewed any more"
    assert members.ttl_of(100), "it lasts until its TTL ends"
    assert "Revoke" not in members.calls
    assert "KeepAlive" not in members.calls
    assert await one.lost() is None
    await asyncio.sleep(6)
    assert not members.ttl_of(100)
    assert not tasks()
    assert not timers()


async def test_an_orphan_that_another_adopts_lives_on(members: FakeLeases) -> None:
    async with lease(members, 10) as one:
        one.orphan()
    async with adopted(members, one.id) as two:
        await asyncio.sleep(60)
        assert two.id == one.id
        assert members.ttl_of(one.id)
    assert not members.ttl_of(one.id)


async def test_only_an_entered_lease_becomes_an_orphan(members: FakeLeases) -> None:
    with pytest.raises(ClientUsageError):
        lease(members).orphan()


async def test_a_cancelled_adoption_leaves_the_lease_alone(members: FakeLeases) -> None:
    await members.group.grant(7, id=5)
    members.is_silent = True
    entering = asyncio.create_task(adopted(members, 5).__aenter__())
    await asyncio.sleep(1)
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    await turns()
    assert "Revoke" not in members.calls
    assert not tasks()


async def test_the_deadline_counts_from_the_beginning_of_the_grant(members: FakeLeases) -> None:
    members.latency = 3.0
    begun = members.loop.time()
    async with lease(members) as one:
        assert one.remaining == pytest.approx(begun + 10 - members.loop.time()) == pytest.approx(7.0)


@pytest.mark.parametrize("seconds", [6.0, 9.9, 10.0, 25.0])
async def test_a_lease_whose_grant_was_slow_is_renewed_before_the_block_is_entered(
    members: FakeLeases, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    members.loop.call_later(seconds - 0.01, setattr, members, "latency", 0.01)
    members.latency = seconds
    async with patient(members) as one:
        assert members.calls == ["Grant", "KeepAlive"]
        assert one.remaining > 9.9
        await asyncio.sleep(60)
        assert not one.is_lost
    assert not members.leases
    assert not caplog.text


async def test_a_lease_that_expires_before_it_could_be_renewed_is_granted_anew(members: FakeLeases) -> None:
    members.latency = 6.0
    members.is_reachable = False

    def heal() -> None:
        members.is_reachable, members.latency = True, 0.01
        members.streams[0].wake()

    members.loop.call_later(20, heal)
    async with patient(members) as one:
        assert (one.id, members.calls.count("Grant")) == (101, 2)
        assert one.remaining > 9.9
    assert not members.ttl_of(100)
    assert not members.ttl_of(101)


async def test_a_lease_of_a_given_id_is_granted_anew_with_that_id(members: FakeLeases) -> None:
    members.latency = 6.0
    members.loop.call_later(6.005, members.leases.clear)
    members.loop.call_later(6.005, setattr, members, "latency", 0.01)
    async with patient(members, id=7) as one:
        assert (one.id, members.calls.count("Grant")) == (7, 2)
        assert members.ttl_of(7)


async def test_a_grant_that_was_found_and_has_expired_is_made_again_with_another_id(members: FakeLeases) -> None:
    members.failures.append(with_history(LeaseExistsError(), (), maybe_applied=True, seconds=0.0))
    async with lease(members) as one:
        assert members.calls == ["Grant", "TimeToLive", "Grant"]
        assert one.id == 101


async def test_a_slow_grant_and_its_renewal_have_one_timeout_and_leave_no_lease(members: FakeLeases) -> None:
    members.latency = 6.0
    members.is_silent = True
    begun = members.loop.time()
    with pytest.raises(EtcdTimeoutError):
        async with members.group.block(10, "cancel", timeout=8):
            raise AssertionError("not entered")
    assert members.loop.time() - begun == pytest.approx(8)
    assert members.leases
    members.latency = 0.01
    await asyncio.sleep(7)
    assert not members.leases, "it is revoked"
    assert not tasks()


async def test_cancelling_the_renewal_after_a_slow_grant_revokes_the_lease(members: FakeLeases) -> None:
    members.latency = 6.0
    members.is_silent = True
    entering = asyncio.create_task(patient(members).__aenter__())
    await asyncio.sleep(6.5)
    members.latency = 0.01
    assert members.ttl_of(100)
    assert not entering.done()
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    await asyncio.sleep(0.1)
    assert not members.leases
    assert not tasks()


async def test_the_deadline_of_an_adopted_lease_counts_from_the_request_that_was_answered(members: FakeLeases) -> None:
    await members.group.grant(30, id=5)
    members.is_silent = True
    members.loop.call_later(20, setattr, members, "is_silent", False)
    async with members.group.block(1, "cancel", id=5, adopt=True, timeout=None) as one:
        assert one.remaining > 29.9


async def test_an_adoption_that_was_answered_late_is_renewed_again(members: FakeLeases) -> None:
    await members.group.grant(60, id=5)
    members.leases[5] = (2, members.now() + 60)
    members.latency = 0.9
    members.loop.call_later(0.5, members.suspend, 1.0)  # the answer comes 1.9 s after the request
    async with adopted(members, 5) as one:
        assert members.calls.count("KeepAlive") == 2
        assert one.remaining == pytest.approx(1.1)


async def test_a_lease_that_is_not_entered_sends_nothing_and_has_no_time_left(members: FakeLeases) -> None:
    one = lease(members, 1)
    assert repr(one) == "<Lease 0x64 ttl=1 not granted>"
    assert (one.ttl, one.remaining, one.is_lost) == (1, 0.0, False)
    assert not members.calls


USES: dict[str, Callable[[Client, Lease], object]] = {
    "put": lambda client, one: client.put("k", "v", lease=one),
    "op.put": lambda client, one: op.put("k", "v", lease=one),
    "op.put by its id": lambda client, one: op.put("k", "v", lease=one.id),
    "compare": lambda client, one: Key("k").lease == one.id,
    "revoke": lambda client, one: client.leases.revoke(one),
    "revoke itself": lambda client, one: one.revoke(),
    "keep_alive_once": lambda client, one: client.leases.keep_alive_once(one),
    "keep_alive_once itself": lambda client, one: one.keep_alive_once(),
    "time_to_live": lambda client, one: client.leases.time_to_live(one),
    "await": lambda client, one: one,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_using_a_lease_before_it_is_entered_raises(use: Callable[[Client, Lease], object]) -> None:
    client = Client("127.0.0.1:1")
    with pytest.raises(ClientUsageError, match=r"not entered: write `async with client\.lease\(\.\.\.\) as lease:`"):
        await use(client, client.lease(5))  # type: ignore[misc] # what is awaited is no awaitable: what is tested
    assert not client.statistics(), "nothing was begun"


@pytest.mark.parametrize("lose", ["outage", "revoked", "closed"])
async def test_a_loss_cancels_the_block_and_is_raised(members: FakeLeases, lose: str) -> None:
    was_cancelled = False
    one = lease(members)
    begun = members.loop.time()
    with pytest.raises(LeaseLostError) as caught:
        async with one:
            match lose:
                case "outage":
                    members.is_reachable = False
                case "revoked":
                    await members.group.revoke(one)
                case _:
                    members.loop.call_later(1, members.streams[0].close, ClientClosedError())
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                was_cancelled = True
                raise
    assert was_cancelled
    assert one.is_lost
    assert await one.lost() is caught.value
    assert isinstance(caught.value, LeaseExpiredError) == (lose != "closed")
    assert caught.value.__cause__ is not None
    assert members.loop.time() - begun <= 10.0, "no later than its local deadline"
    assert repr(one) == "<Lease 0x64 ttl=10 lost>"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(1)
    assert members.calls.count("Revoke") == (lose == "revoked"), "what is lost is left to its TTL"


async def test_a_signalled_loss_lets_the_block_go_on_and_is_raised_on_leaving(members: FakeLeases) -> None:
    with pytest.raises(LeaseExpiredError):
        async with lease(members, on_lost="signal") as one:
            members.is_reachable = False
            error = await one.lost()
            assert isinstance(error, LeaseExpiredError)
            assert one.is_lost
            await asyncio.sleep(5)


async def test_an_exception_of_the_block_goes_first_with_a_note_of_the_loss(members: FakeLeases) -> None:
    for mode in ("signal", "cancel"):
        with pytest.raises(ValueError, match="mine") as caught:
            async with lease(members, on_lost=mode) as one:
                members.is_reachable = False
                try:
                    await asyncio.sleep(5)
                    await one.lost()
                finally:
                    raise ValueError("mine")
        assert "has expired" in str(caught.value.__notes__)
        members.is_reachable = True
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_block_that_swallows_the_cancellation_still_raises_the_loss(members: FakeLeases) -> None:
    with pytest.raises(LeaseExpiredError):
        async with lease(members):
            members.is_reachable = False
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(100)
            await asyncio.sleep(1)


async def test_an_outer_cancellation_is_never_swallowed(members: FakeLeases) -> None:
    async def block() -> None:
        async with lease(members):
            members.is_reachable = False
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(5)  # the loss has cancelled it; then the test does

    task = asyncio.create_task(block())
    await asyncio.sleep(12)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_block_is_revoked_and_stays_cancelled(members: FakeLeases) -> None:
    async def block() -> None:
        async with lease(members):
            await asyncio.sleep(100)

    task = asyncio.create_task(block())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not members.leases


async def test_a_cancelled_block_waits_half_a_second_for_silent_members(members: FakeLeases) -> None:
    async def hold() -> None:
        async with lease(members):
            members.latency = 1.5
            await asyncio.sleep(60)

    loop = asyncio.get_running_loop()
    holder = asyncio.create_task(hold())
    await asyncio.sleep(1)
    holder.cancel()
    begun = loop.time()
    with pytest.raises(asyncio.CancelledError):
        await holder
    assert loop.time() - begun == pytest.approx(0.5)
    assert members.leases
    await asyncio.sleep(1.1)
    assert not members.leases, "it is revoked all the same"


async def test_cancelling_the_revocation_releases_the_task_and_still_revokes(members: FakeLeases) -> None:
    async def block() -> None:
        async with lease(members):
            pass

    task = asyncio.create_task(block())
    await asyncio.sleep(0.015)
    assert members.calls[-1] == "Revoke"
    members_lease = dict(members.leases)
    assert members_lease
    task.cancel()
    await turns()
    assert task.cancelled()
    await asyncio.sleep(0.1)
    assert not members.leases
    assert not tasks()


async def test_a_revocation_that_fails_is_logged_and_not_raised(
    members: FakeLeases, caplog: pytest.LogCaptureFixture
) -> None:
    async with lease(members):
        members.failures.append(EtcdTimeoutError())
    await turns()
    assert "could not be revoked; it expires after its TTL of 10 s" in caplog.text
    caplog.clear()
    async with lease(members):
        members.failures.append(LeaseNotFoundError())
    await asyncio.sleep(2)
    assert not caplog.text, "it is gone, as it should be"


async def under_timeout(block: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(3):
        await block()


async def under_scope(block: Callable[[], Awaitable[None]]) -> None:
    with anyio.fail_after(3):
        await block()


@pytest.mark.parametrize("scope", [under_timeout, under_scope])
async def test_a_timeout_around_the_block_revokes_the_lease(
    members: FakeLeases, scope: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
) -> None:
    async def block() -> None:
        async with lease(members):
            await asyncio.sleep(100)

    with pytest.raises(TimeoutError):
        await scope(block)
    assert not members.leases


@pytest.mark.parametrize("scope", [under_timeout, under_scope])
async def test_a_loss_passes_through_a_timeout(
    members: FakeLeases, scope: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
) -> None:
    async def inner() -> None:
        async with lease(members, 2):
            members.is_reachable = False
            await asyncio.sleep(100)

    with pytest.raises(LeaseExpiredError):
        await scope(inner)

    async def block() -> None:
        await asyncio.sleep(100)

    members.is_reachable = True
    with pytest.raises(LeaseExpiredError):
        async with lease(members, 2):
            members.is_reachable = False
            await scope(block)


async def test_a_timeout_inside_the_block_stays_a_timeout(members: FakeLeases) -> None:
    async with lease(members):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.sleep(100)
        with anyio.move_on_after(1):
            await asyncio.sleep(100)
    assert not members.leases


async def test_of_nested_leases_that_are_lost_together_the_outer_one_raises(members: FakeLeases) -> None:
    with pytest.raises(LeaseExpiredError, match="lease 0x64 "):
        async with lease(members), lease(members):
            members.is_reachable = False
            await asyncio.sleep(100)


async def test_an_inner_lease_that_is_lost_alone_leaves_the_outer_one(members: FakeLeases) -> None:
    async with lease(members, 10) as outer:
        with pytest.raises(LeaseExpiredError):
            async with lease(members, 10) as inner:
                await members.group.revoke(inner)
                await asyncio.sleep(100)
        assert not outer.is_lost
        await asyncio.sleep(20)
    assert not members.leases


async def test_a_loss_ends_a_task_group_inside_the_block(members: FakeLeases) -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append("work")

    with pytest.raises(LeaseExpiredError):
        async with lease(members), asyncio.TaskGroup() as group:
            group.create_task(work())
            members.is_reachable = False
    with pytest.raises(LeaseExpiredError):
        members.is_reachable = True
        async with lease(members), anyio.create_task_group() as scopes:
            scopes.start_soon(work)
            members.is_reachable = False
    assert ended == ["work", "work"]


async def test_a_loss_inside_a_task_group_ends_the_group(members: FakeLeases) -> None:
    async def holds() -> None:
        async with lease(members):
            members.is_reachable = False
            await asyncio.sleep(100)

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as group:
            group.create_task(holds())
            group.create_task(asyncio.sleep(1000))
    assert isinstance(caught.value.exceptions[0], LeaseExpiredError)


async def test_a_lease_may_be_entered_and_left_in_different_tasks(members: FakeLeases) -> None:
    one = lease(members, on_lost="signal")
    await asyncio.create_task(one.__aenter__())
    await asyncio.sleep(30)
    assert not one.is_lost
    await asyncio.create_task(one.__aexit__(None, None, None))
    assert not members.leases
    for mode in ("signal", "cancel"):
        other = lease(members, on_lost=mode)
        await asyncio.create_task(other.__aenter__())
        await members.group.revoke(other)
        assert isinstance(await other.lost(), LeaseExpiredError)
        with pytest.raises(LeaseExpiredError):
            await other.__aexit__(None, None, None)


async def test_a_grant_that_fails_is_raised_and_leaves_nothing(members: FakeLeases) -> None:
    members.failures.append(NoSpaceError())
    with pytest.raises(NoSpaceError):
        async with lease(members):
            raise AssertionError("not entered")
    await asyncio.sleep(1)
    assert members.calls == ["Grant"], "it was surely not granted"
    assert not tasks()


async def test_the_error_of_a_grant_keeps_the_traceback_of_whoever_got_it(members: FakeLeases) -> None:
    members.failures.append(NoSpaceError())
    with pytest.raises(NoSpaceError) as caught:
        await lease(members).__aenter__()
    before = extract_tb(caught.value.__traceback__)
    await asyncio.sleep(1)
    assert extract_tb(caught.value.__traceback__) == before
    assert "__aenter__" in [frame.name for frame in before]


@pytest.mark.parametrize("id", [None, 7])
async def test_a_cancelled_grant_releases_the_task_at_once_and_is_undone(members: FakeLeases, id: int | None) -> None:
    task = asyncio.create_task(lease(members, id=id).__aenter__())
    await turns()
    task.cancel()
    await turns()
    assert task.cancelled()
    assert members.calls == ["Grant"], "revoked too early, it would be granted after that"
    await asyncio.sleep(1)
    assert members.calls == ["Grant", "Revoke"]
    assert not members.leases
    assert not tasks()


@pytest.mark.parametrize("id", [None, 7])
async def test_a_grant_of_unknown_outcome_is_undone_unless_the_lease_could_be_another_clients(
    members: FakeLeases, id: int | None
) -> None:
    unknown = EtcdTimeoutError()
    unknown.maybe_applied = True
    members.failures.append(unknown)
    with pytest.raises(EtcdTimeoutError):
        await lease(members, id=id).__aenter__()
    await asyncio.sleep(1)
    assert members.calls == (["Grant", "Revoke"] if id is None else ["Grant"])


async def test_a_given_id_that_exists_is_refused(members: FakeLeases) -> None:
    async with lease(members, id=7):
        with pytest.raises(LeaseExistsError):
            await lease(members, id=7).__aenter__()
        await asyncio.sleep(20)
        assert members.ttl_of(7)


async def test_a_lease_may_be_renewed_and_revoked_within_its_block(members: FakeLeases) -> None:
    async with lease(members) as one:
        await asyncio.sleep(2)
        renewed = await one.keep_alive_once()
        assert renewed.ttl == 10
        assert one.remaining > 9.9
        await one.revoke()
        assert not members.leases
        assert not one.is_lost
        assert await one.lost() is None
        await asyncio.sleep(20)
    assert members.calls.count("Revoke") == 1
    assert members.calls.count("KeepAlive") == 1


async def test_a_lease_tells_that_the_server_refuses_to_renew_it(members: FakeLeases) -> None:
    async with lease(members) as refused, lease(members) as other:
        members.forbidden.add(refused.id)
        await asyncio.sleep(3)
        assert isinstance(refused.renewal_error, PermissionDeniedError)
        assert other.renewal_error is None
        members.forbidden.clear()
        await asyncio.sleep(3)
        assert refused.renewal_error is None


async def test_a_stalled_loop_cannot_hide_that_the_deadline_has_passed(members: FakeLeases) -> None:
    assert isinstance(members.loop, VirtualTimeLoop)
    with pytest.raises(LeaseExpiredError):
        async with lease(members) as one:
            members.loop._jumping.now += 10.5  # the block computes, and does not look at the loop
            assert one.is_lost
            assert one.remaining == 0.0
            await asyncio.sleep(1)


async def test_a_suspended_machine_has_lost_its_lease_as_soon_as_it_is_awake(members: FakeLeases) -> None:
    with pytest.raises(LeaseExpiredError):
        async with lease(members) as one:
            await asyncio.sleep(1)
            members.suspend(60)
            assert one.is_lost
            assert one.remaining == 0.0
            await asyncio.sleep(1000)


async def test_the_block_is_cancelled_soon_after_a_suspension_and_no_renewal_brings_the_lease_back(
    members: FakeLeases,
) -> None:
    if LOOK_EVERY > 1:
        pytest.skip("this system does not count how long it is suspended")
    begun = members.loop.time()
    with pytest.raises(LeaseExpiredError):
        async with lease(members, 60) as one:
            await asyncio.sleep(1)
            members.suspend(61)
            members.leases[one.id] = (60, members.now() + 60)  # as if etcd had kept it longer than it promised
            await asyncio.sleep(1000)
    assert members.loop.time() - begun < 1 + 2 * LOOK_EVERY
    assert "KeepAlive" not in members.calls


async def test_a_lease_that_outlasts_a_suspension_is_renewed_at_once(members: FakeLeases) -> None:
    if LOOK_EVERY > 1:
        pytest.skip("this system does not count how long it is suspended")
    async with lease(members, 60) as one:
        await asyncio.sleep(1)
        members.suspend(50)
        assert one.remaining == pytest.approx(9, abs=0.1)
        await asyncio.sleep(1.1)
        assert one.remaining > 58
        assert not one.is_lost


@pytest.mark.parametrize("mode", ["cancel", "signal"])
async def test_a_lease_once_seen_as_lost_stays_lost(members: FakeLeases, mode: OnLost) -> None:
    assert isinstance(members.loop, VirtualTimeLoop)
    members.latency = 0.2
    one = lease(members, on_lost=mode)
    with pytest.raises(LeaseExpiredError):
        async with one:
            await asyncio.sleep(2.45)  # a renewal is on its way, and its answer comes while the loop is busy
            members.loop._jumping.now += 8.0
            assert one.is_lost
            one._on_renewed(10, members.loop.time() + 10)  # as an answer does that is read in this very turn
            assert one.remaining == 0.0
            await turns(20)
            await asyncio.sleep(0.5)
            assert one.is_lost
            assert one.remaining == 0.0
            assert await one.lost() is not None
    assert one.is_lost
    assert isinstance(await one.lost(), LeaseExpiredError)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(1)


async def test_a_lease_not_read_during_a_stall_is_kept_by_an_answer_that_came_in_time(members: FakeLeases) -> None:
    assert isinstance(members.loop, VirtualTimeLoop)
    members.latency = 0.2
    async with lease(members) as one:
        await asyncio.sleep(4.9)
        members.loop._jumping.now += 4.95
        await asyncio.sleep(5)
        assert not one.is_lost
        assert one.remaining > 4


@pytest.mark.parametrize("mode", ["cancel", "signal"])
async def test_a_block_that_outlasts_its_lease_without_a_turn_of_the_loop_raises_on_leaving(
    members: FakeLeases, mode: OnLost
) -> None:
    assert isinstance(members.loop, VirtualTimeLoop)
    one = lease(members, on_lost=mode)
    with pytest.raises(LeaseExpiredError):
        async with one:
            members.loop._jumping.now += 10.5
    assert one.is_lost
    with pytest.raises(ValueError, match="mine") as caught:
        async with lease(members, on_lost=mode):
            members.loop._jumping.now += 10.5
            raise ValueError("mine")
    assert "has expired" in str(caught.value.__notes__)
    await asyncio.sleep(1)  # and nothing is left that would hit what comes after the block

    async def block() -> None:
        async with lease(members, on_lost=mode):
            try:
                await asyncio.sleep(1000)
            finally:
                members.loop._jumping.now += 10.5  # type: ignore[attr-defined] # checked above

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2):
            await block()
    await asyncio.sleep(1)


async def test_a_block_that_is_over_does_not_cancel_the_task_that_entered(members: FakeLeases) -> None:
    assert isinstance(members.loop, VirtualTimeLoop)
    one = lease(members)

    async def enter() -> None:
        await one.__aenter__()
        await asyncio.sleep(1)

    entering = asyncio.create_task(enter())
    await asyncio.sleep(0.5)
    members.loop._jumping.now += 10.5
    with pytest.raises(LeaseExpiredError):
        await one.__aexit__(None, None, None)
    await entering


async def test_is_lost_may_be_read_in_another_thread(members: FakeLeases) -> None:
    assert isinstance(members.loop, VirtualTimeLoop)
    with pytest.raises(LeaseExpiredError):
        async with lease(members) as one:
            members.loop._jumping.now += 10.5
            asked: list[bool] = []
            thread = Thread(target=lambda: asked.append(one.is_lost))
            thread.start()
            thread.join()
            assert asked == [True]
            await one.lost()


async def test_a_lease_that_is_revoked_after_its_deadline_is_lost_all_the_same(members: FakeLeases) -> None:
    assert isinstance(members.loop, VirtualTimeLoop)
    with pytest.raises(LeaseExpiredError):
        async with lease(members, on_lost="signal") as one:
            members.loop._jumping.now += 10.5
            assert one.is_lost
            with pytest.raises(LeaseNotFoundError):
                members.leases.clear()
                await one.revoke()
            assert await one.lost() is not None


async def test_a_thousand_leases_that_are_lost_together_are_one_line_of_log(
    members: FakeLeases, caplog: pytest.LogCaptureFixture
) -> None:
    many = [lease(members, on_lost="signal") for _ in range(1000)]
    await asyncio.gather(*(one.__aenter__() for one in many))
    members.is_reachable = False
    await asyncio.gather(*(one.lost() for one in many))
    await asyncio.sleep(5)
    assert caplog.messages == [
        "1000 leases were lost; the first: lease 0x64 has expired: no renewal was acknowledged in time"
    ]


async def test_a_thousand_leases_that_cannot_be_revoked_are_one_line_of_log(
    members: FakeLeases, caplog: pytest.LogCaptureFixture
) -> None:
    many = [lease(members) for _ in range(1000)]
    await asyncio.gather(*(one.__aenter__() for one in many))
    members.failures.extend(EtcdTimeoutError() for _ in many)
    await asyncio.gather(*(one.__aexit__(None, None, None) for one in many))
    await asyncio.sleep(5)
    [line] = caplog.messages
    assert line.startswith(
        "1000 leases could not be revoked; they expire after their TTLs; the first: lease 0x64 could not be"
    )


async def test_a_lease_can_be_entered_only_once(members: FakeLeases) -> None:
    async with lease(members) as one:
        with pytest.raises(ClientUsageError, match="entered once"):
            await one.__aenter__()
    with pytest.raises(ClientUsageError, match="entered once"):
        await one.__aenter__()


async def test_invalid_arguments_are_refused_at_once(members: FakeLeases) -> None:
    for ttl in (0, -1, 9_000_000_001):
        with pytest.raises(ValueError, match="ttl"):
            lease(members, ttl)
    with pytest.raises(TypeError):
        lease(members, 2.5)  # type: ignore[arg-type] # wrong on purpose
    with pytest.raises(InvalidRequestError):
        lease(members, id=0)
    with pytest.raises(InvalidRequestError, match="on_lost"):
        lease(members, on_lost="ignore")  # type: ignore[arg-type] # wrong on purpose
    assert not members.calls


async def test_the_holder_of_the_lease_in_a_block_is_told_of_its_end_too(members: FakeLeases) -> None:
    ends: list[LeaseLostError | None] = []
    one, other = lease(members), lease(members)
    one.on_end = other.on_end = ends.append
    async with one:
        assert ends == []
    assert ends == [None]
    with pytest.raises(LeaseExpiredError) as caught:
        async with other:
            members.is_reachable = False
            await asyncio.sleep(100)
    assert ends == [None, caught.value]

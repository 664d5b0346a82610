"""lease/kept_lease.py: begins, renewals, and one end. The block around it is tested in `test_lease.py`."""

import asyncio
from contextlib import suppress
from typing import Any

import anyio
import pytest

from etcd_aio.errors import (
    ClientClosedError,
    ClientUsageError,
    EtcdTimeoutError,
    InvalidRequestError,
    LeaseExpiredError,
    LeaseLostError,
    LeaseNotFoundError,
    LeaseTTLTooLargeError,
    NoSpaceError,
)
from etcd_aio.lease import KeptLease
from tests.support.leases import FakeLeases
from tests.support.virtual_time import VirtualTimeLoop, tasks, timers, turns

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


@pytest.fixture
async def members() -> FakeLeases:
    return FakeLeases()


class Holder:
    """Notes each callback of a lease, with the calls that were sent by then."""

    def __init__(self, members: FakeLeases, **options: Any) -> None:
        self.members = members
        self.ends: list[tuple[LeaseLostError | None, list[str]]] = []
        self.doubts = 0
        self.lease = KeptLease(members.keeper, 10, on_end=self.on_end, on_doubt=self.on_doubt, **options)

    def on_end(self, error: LeaseLostError | None) -> None:
        self.ends.append((error, list(self.members.calls)))

    def on_doubt(self) -> None:
        self.doubts += 1


@pytest.fixture
async def holder(members: FakeLeases) -> Holder:
    return Holder(members)


def block_loop(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop._jumping.now += seconds


async def test_it_is_granted_by_begin_renewed_and_revoked_by_close(members: FakeLeases, holder: Holder) -> None:
    lease = holder.lease
    assert not members.calls, "nothing is sent before it begins"
    assert (lease.ttl, lease.remaining, lease.is_lost, lease.error) == (10, 0.0, False, None)
    assert repr(lease) == "<KeptLease 0x64 ttl=10 not granted>"
    assert await lease.begin() is lease
    assert lease.id == 100
    await asyncio.sleep(60)
    assert members.ttl_of(100)
    assert not lease.is_lost
    await lease.close()
    assert not members.leases
    assert (lease.remaining, lease.is_lost, await lease.lost()) == (0.0, False, None)
    assert repr(lease) == "<KeptLease 0x64 ttl=10 ended>"
    await lease.close()
    assert members.calls.count("Revoke") == 1, "closing it again does nothing"
    await turns()
    assert not tasks()
    assert not timers()


@pytest.mark.parametrize("end", ["close", "revoke"])
async def test_its_end_is_told_once_and_before_the_revocation_is_sent(
    members: FakeLeases, holder: Holder, end: str
) -> None:
    await holder.lease.begin()
    await (holder.lease.close() if end == "close" else holder.lease.revoke())
    assert holder.ends == [(None, ["Grant"])]
    assert members.calls == ["Grant", "Revoke"]
    with pytest.raises(LeaseNotFoundError):
        await holder.lease.revoke()
    assert len(holder.ends) == 1


@pytest.mark.parametrize("lose", ["outage", "revoked", "closed"])
async def test_a_loss_is_told_once_with_its_error(members: FakeLeases, holder: Holder, lose: str) -> None:
    lease = await holder.lease.begin()
    match lose:
        case "outage":
            members.is_reachable = False
        case "revoked":
            await members.group.revoke(lease)
        case _:
            members.streams[0].close(ClientClosedError())
    error = await lease.lost()
    assert isinstance(error, LeaseExpiredError) == (lose != "closed")
    assert isinstance(error, LeaseLostError)
    assert lease.is_lost
    assert lease.error is error
    await asyncio.sleep(30)
    await lease.close()
    assert [told for told, _ in holder.ends] == [error]
    assert members.calls.count("Revoke") == (lose == "revoked"), "what is lost is left to its TTL"


async def test_a_loss_cancels_no_task(members: FakeLeases, holder: Holder) -> None:
    await holder.lease.begin()
    members.is_reachable = False
    await asyncio.sleep(30)
    task = asyncio.current_task()
    assert task is not None
    assert (task.cancelling(), holder.lease.is_lost) == (0, True)


async def test_reading_is_lost_after_the_deadline_loses_it_for_good(members: FakeLeases, holder: Holder) -> None:
    lease = await holder.lease.begin()
    block_loop(10.5)
    assert lease.is_lost
    assert not holder.ends, "the holder is told in the loop"
    await turns()
    [(error, _)] = holder.ends
    assert isinstance(error, LeaseExpiredError)
    assert await lease.lost() is error


async def test_a_look_for_a_loss_looks_at_the_clock_too(members: FakeLeases, holder: Holder) -> None:
    lease = await holder.lease.begin()
    with pytest.raises(EtcdTimeoutError, match=r"^lease 0x64 was not lost in time$"):
        await lease.lost(timeout=0)
    block_loop(10.5)
    error = await lease.lost(timeout=0)
    assert isinstance(error, LeaseExpiredError)
    assert [told for told, _ in holder.ends] == [error]


async def test_closing_after_the_deadline_loses_it(members: FakeLeases, holder: Holder) -> None:
    lease = await holder.lease.begin()
    block_loop(10.5)
    await lease.close()
    assert isinstance(lease.error, LeaseExpiredError)
    assert [told for told, _ in holder.ends] == [lease.error]
    assert "Revoke" not in members.calls


async def test_an_orphan_is_neither_renewed_nor_revoked_and_its_end_is_not_told(
    members: FakeLeases, holder: Holder
) -> None:
    lease = await holder.lease.begin()
    assert lease.orphan() == 100
    await asyncio.sleep(6)
    assert lease.remaining == pytest.approx(3.99)
    await lease.close()
    assert members.calls == ["Grant"]
    assert (await lease.lost(), holder.ends) == (None, [])


async def test_an_orphan_that_is_closed_after_its_deadline_is_gone(holder: Holder) -> None:
    lease = await holder.lease.begin()
    lease.orphan()
    block_loop(10.5)
    await lease.close()
    assert await lease.lost() is None


async def test_an_adopted_lease_is_renewed_instead_of_granted(members: FakeLeases) -> None:
    await members.group.grant(30, id=5)
    lease = await Holder(members, id=5, adopt=True).lease.begin()
    assert (lease.id, lease.ttl) == (5, 30), "its own TTL counts"
    assert members.calls == ["Grant", "KeepAlive"]
    await asyncio.sleep(100)
    assert members.ttl_of(5)
    await lease.close()
    assert not members.leases


async def test_doubt_about_the_store_is_told_while_it_lives(members: FakeLeases, holder: Holder) -> None:
    members.doubts.tell()
    assert holder.doubts == 0, "it has no keys yet"
    lease = await holder.lease.begin()
    members.doubts.tell()
    assert holder.doubts == 1
    await lease.close()
    members.doubts.tell()
    assert holder.doubts == 1
    assert not members.doubts


async def test_a_callback_that_is_set_later_is_told_in_place_of_the_first(holder: Holder) -> None:
    told: list[LeaseLostError | None] = []
    lease = await holder.lease.begin()
    lease.on_end = told.append
    await lease.close()
    assert (told, holder.ends) == ([None], [])


async def test_a_cancelled_beginning_revokes_what_was_granted(members: FakeLeases, holder: Holder) -> None:
    task = asyncio.create_task(holder.lease.begin())
    await turns()
    task.cancel()
    await turns()
    assert task.cancelled()
    assert members.calls == ["Grant"], "revoked too early, it would be granted after that"
    await asyncio.sleep(1)
    assert members.calls == ["Grant", "Revoke"]
    assert not members.leases
    assert holder.ends == []
    await holder.lease.close()
    assert not tasks()


async def test_a_grant_that_fails_is_raised_and_begins_nothing(members: FakeLeases, holder: Holder) -> None:
    members.failures.append(NoSpaceError())
    with pytest.raises(NoSpaceError):
        await holder.lease.begin()
    with pytest.raises(ClientUsageError, match="has not begun"):
        holder.lease.orphan()
    assert not members.doubts
    await turns()
    assert members.calls == ["Grant"]
    assert not tasks()


async def test_it_begins_once(holder: Holder) -> None:
    await holder.lease.begin()
    with pytest.raises(ClientUsageError, match="only begin once"):
        await holder.lease.begin()
    await holder.lease.close()
    with pytest.raises(ClientUsageError, match="only begin once"):
        await holder.lease.begin()


async def test_calls_before_the_beginning_raise(members: FakeLeases, holder: Holder) -> None:
    lease = holder.lease
    for use in (lease.revoke, lease.keep_alive_once, lambda: members.group.revoke(lease)):
        with pytest.raises(ClientUsageError, match=r"await kept\.begin\(\)"):
            await use()
    with pytest.raises(ClientUsageError, match=r"await kept\.begin\(\)"):
        await lease  # type: ignore[misc] # it is no awaitable: what is tested
    await lease.close()
    assert not members.calls


@pytest.mark.parametrize(("is_cancelled", "seconds"), [(False, 2.0), (True, 0.5)])
async def test_the_time_of_closing_is_bounded(
    members: FakeLeases, holder: Holder, is_cancelled: bool, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    await holder.lease.begin()
    began = members.loop.time()

    async def unanswered(*_: object, timeout: float, **__: object) -> None:
        assert timeout == 2.0, "the revocation has its own deadline"
        await asyncio.sleep(timeout)
        raise EtcdTimeoutError

    monkeypatch.setattr(members, "unary", unanswered)
    await holder.lease.close(is_cancelled=is_cancelled)
    assert members.loop.time() - began == pytest.approx(seconds)
    await asyncio.sleep(3)
    assert not tasks()


async def test_a_cancelled_scope_of_anyio_waits_for_closing(members: FakeLeases, holder: Holder) -> None:
    await holder.lease.begin()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await holder.lease.close()
    assert not members.leases


async def test_invalid_arguments_are_refused_at_once(members: FakeLeases) -> None:
    with pytest.raises(LeaseTTLTooLargeError):
        members.group.kept(9_000_000_001)
    with pytest.raises(InvalidRequestError):
        members.group.kept(10, id=0)
    with pytest.raises(InvalidRequestError, match="pass its id="):
        members.group.kept(10, adopt=True)
    assert not members.calls


async def test_a_lease_that_must_not_be_renewed_says_why(members: FakeLeases, holder: Holder) -> None:
    lease = await holder.lease.begin()
    members.forbidden.add(lease.id)
    await asyncio.sleep(3)
    assert lease.renewal_error is not None
    members.forbidden.clear()
    await asyncio.sleep(3)
    assert lease.renewal_error is None
    renewed = await lease.keep_alive_once()
    assert renewed.ttl == 10


async def test_two_leases_may_have_the_same_function_for_doubts(members: FakeLeases) -> None:
    doubts: list[None] = []

    def on_doubt() -> None:
        doubts.append(None)

    first = await members.group.kept(10, on_doubt=on_doubt).begin()
    second = await members.group.kept(10, on_doubt=on_doubt).begin()
    await first.close()
    members.keeper.doubts.tell()
    assert len(doubts) == 1, "the end of one does not silence the other"
    await second.close()
    members.keeper.doubts.tell()
    assert len(doubts) == 1


async def test_closing_ends_a_lease_that_is_being_granted(members: FakeLeases, holder: Holder) -> None:
    beginning = asyncio.create_task(holder.lease.begin())
    await asyncio.sleep(0)
    await holder.lease.close()
    with pytest.raises(ClientUsageError, match="closed while"):
        await beginning
    await turns()
    await asyncio.sleep(1)
    assert not members.leases
    assert await holder.lease.lost() is None
    assert [error for error, _ in holder.ends] == [None]


async def test_revoking_an_orphan_whose_time_has_passed_ends_it(holder: Holder) -> None:
    lease = await holder.lease.begin()
    lease.orphan()
    block_loop(11)
    assert lease.is_lost
    with suppress(LeaseNotFoundError):
        await lease.revoke()
    async with asyncio.timeout(1):
        await lease.lost()

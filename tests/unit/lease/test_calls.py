"""lease/calls.py, lease/arguments.py: the lease calls: ids that this client draws, lost answers, invalid arguments."""

from typing import Any

import pytest

from etcd_aio.errors import (
    EtcdTimeoutError,
    InvalidRequestError,
    LeaseExistsError,
    LeaseNotFoundError,
    LeaseTTLTooLargeError,
)
from etcd_aio.lease.arguments import MAX_TTL
from tests.support.leases import FakeLeases

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


def after_a_lost_answer(error: LeaseExistsError | LeaseNotFoundError) -> LeaseExistsError | LeaseNotFoundError:
    error.maybe_applied = True
    return error


async def test_a_grant_draws_an_id_and_returns_the_ttl_of_etcd() -> None:
    members = FakeLeases()
    granted = await members.group.grant(1)
    assert (granted.id, granted.ttl) == (100, 2)
    assert (await members.group.grant(60, id=-5)).id == -5
    assert set((await members.group.list()).ids) == {100, -5}


async def test_a_grant_whose_answer_was_lost_has_succeeded_if_the_repetition_finds_it() -> None:
    members = FakeLeases()
    members.leases[100] = (30, members.loop.time() + 30)  # what the attempt of unknown outcome did
    members.failures.append(after_a_lost_answer(LeaseExistsError()))
    granted = await members.group.grant(10, timeout=3)
    assert (granted.id, granted.ttl) == (100, 30)
    assert members.calls == ["Grant", "TimeToLive"]
    assert members.timeouts == [3, pytest.approx(2.99)], "one deadline for both"


async def test_a_grant_that_was_found_and_is_gone_again_is_an_error() -> None:
    members = FakeLeases()
    members.failures.append(after_a_lost_answer(LeaseExistsError()))
    with pytest.raises(LeaseNotFoundError) as caught:
        await members.group.grant(10)
    assert isinstance(caught.value.__cause__, LeaseExistsError)


async def test_a_lease_that_exists_is_an_error_if_the_user_chose_the_id_or_no_answer_was_lost() -> None:
    members = FakeLeases()
    members.leases[5] = members.leases[100] = (30, members.loop.time() + 30)
    members.failures.append(after_a_lost_answer(LeaseExistsError()))
    with pytest.raises(LeaseExistsError) as caught:
        await members.group.grant(10, id=5)
    assert caught.value.maybe_applied
    with pytest.raises(LeaseExistsError):
        await members.group.grant(10)
    assert members.calls == ["Grant", "Grant"]


async def test_revoke_returns_the_header_and_raises_for_an_unknown_lease() -> None:
    members = FakeLeases()
    granted = await members.group.grant(10)
    revoked = await members.group.revoke(granted)
    assert revoked.revision == revoked.header.revision > 0
    with pytest.raises(LeaseNotFoundError):
        await members.group.revoke(granted.id)


async def test_a_revocation_whose_answer_was_lost_has_succeeded_if_the_repetition_finds_nothing() -> None:
    members = FakeLeases()
    members.failures.append(after_a_lost_answer(LeaseNotFoundError()))
    revoked = await members.group.revoke(5)
    assert revoked.revision > 0
    assert members.calls == ["Revoke", "TimeToLive"]


async def test_time_to_live() -> None:
    members = FakeLeases()
    granted = await members.group.grant(10)
    found = await members.group.time_to_live(granted)
    assert (found.ttl, found.granted_ttl, found.is_expired) == (9, 10, False)
    gone = await members.group.time_to_live(5, keys=True)
    assert (gone.ttl, gone.is_expired) == (-1, True)


async def test_keep_alive_once() -> None:
    members = FakeLeases()
    granted = await members.group.grant(10)
    assert (await members.group.keep_alive_once(granted)).ttl == 10
    with pytest.raises(LeaseNotFoundError):
        await members.group.keep_alive_once(5)
    members.is_silent = True
    with pytest.raises(EtcdTimeoutError):
        await members.group.keep_alive_once(granted, timeout=1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0,), InvalidRequestError),
        ((-1,), InvalidRequestError),
        ((MAX_TTL + 1,), LeaseTTLTooLargeError),
        ((True,), TypeError),
        ((2.5,), TypeError),
        (("10",), TypeError),
        ((10, 0), InvalidRequestError),
        ((10, 2**63), InvalidRequestError),
        ((10, -(2**63) - 1), InvalidRequestError),
        ((10, True), TypeError),
        ((10, "7"), TypeError),
    ],
    ids=str,
)
async def test_grants_with_invalid_arguments_are_not_sent(arguments: tuple[int, ...], error: type[Exception]) -> None:
    members = FakeLeases()
    with pytest.raises(error):
        await members.group.grant(*arguments)
    assert not members.calls


async def test_other_calls_with_invalid_arguments_are_not_sent() -> None:
    members = FakeLeases()
    for wrong, error in (("7", TypeError), (2**63, InvalidRequestError)):
        lease: Any = wrong
        with pytest.raises(error):
            await members.group.revoke(lease)
        with pytest.raises(error):
            await members.group.keep_alive_once(lease)
        with pytest.raises(error):
            await members.group.time_to_live(lease)
    with pytest.raises(TypeError):
        await members.group.time_to_live(7, keys=1)  # type: ignore[arg-type] # wrong on purpose
    assert not members.calls

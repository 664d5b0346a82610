"""error_handler/token_manager.py: tokens: one fetch for all who wait, each with a time and an end of its own."""

import asyncio
import logging
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from etcd_aio.base.deadline import NEVER
from etcd_aio.error_handler.token_manager import TokenManager, private_copy
from etcd_aio.error_handler.token_state import TokenState
from etcd_aio.errors import (
    AuthenticationFailedError,
    AuthOldRevisionError,
    ClientClosedError,
    EtcdError,
    EtcdTimeoutError,
    InvalidTokenError,
    NoAvailableEndpointsError,
    PermissionDeniedError,
    TokenUnavailableError,
    UserEmptyError,
    with_history,
)
from etcd_aio.transport.metadata import RequestMetadata, token_of
from tests.support.virtual_time import VirtualTimeLoop, tasks, timers, turns

pytestmark = pytest.mark.anyio

REFUSED = InvalidTokenError()
JWT = "e30.eyJyZXZpc2lvbiI6N30.c2lnbg"  # of revision 7


class World:
    """A token manager, and a function that gives tokens after a second."""

    def __init__(self, *answers: str | Exception) -> None:
        self.loop = asyncio.get_running_loop()
        self.answers = deque(answers)
        self.fetched: list[EtcdError | None] = []
        self.metadata = RequestMetadata("3.7", require_leader=True)
        self.outage: EtcdError | None = None
        self.tokens = TokenManager(
            self.fetch,
            self.metadata,
            TokenState(is_due=True),
            outage_error=lambda: self.outage,
            random=lambda: 0.5,
        )

    async def fetch(self, why: EtcdError | None) -> str:
        self.fetched.append(why)
        await asyncio.sleep(1)
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def carried(self) -> str:
        return token_of(self.metadata.with_leader)


@asynccontextmanager
async def world(*answers: str | Exception) -> AsyncIterator[World]:
    made = World(*answers)
    yield made
    await made.tokens.aclose()
    await turns()
    assert not tasks()
    assert not timers()
    assert made.carried == ""


async def test_all_calls_wait_for_one_fetch_of_the_first_token() -> None:
    async with world("a-c4n4ry") as made:
        await asyncio.gather(*(made.tokens.obtain(NEVER) for _ in range(500)))
        assert made.fetched == [None]
        assert made.carried == "a-c4n4ry"
        await made.tokens.obtain(NEVER)
        assert made.fetched == [None]


async def test_all_calls_refused_with_one_token_wait_for_one_fetch_and_late_ones_for_none() -> None:
    async with world("a", "b", "c") as made:
        await made.tokens.obtain(NEVER)
        found = await asyncio.gather(*(made.tokens.renew("a", REFUSED, NEVER) for _ in range(500)))
        assert found == [True] * 500
        assert made.fetched == [None, REFUSED]
        started = made.loop.time()
        assert not await made.tokens.renew("a", REFUSED, NEVER)
        assert made.loop.time() == started
        assert await made.tokens.renew("b", REFUSED, NEVER)
        assert made.carried == "c"


async def test_who_is_cancelled_or_out_of_time_leaves_the_others_waiting() -> None:
    async with world("a") as made:
        waiting = [asyncio.create_task(made.tokens.obtain(NEVER)) for _ in range(3)]
        late = asyncio.create_task(made.tokens.obtain(made.loop.time() + 0.5))
        await turns()
        waiting[0].cancel()
        with pytest.raises(EtcdTimeoutError):
            await late
        await asyncio.gather(*waiting[1:])
        assert waiting[0].cancelled()
        assert made.fetched == [None]


async def test_the_fetch_goes_on_for_the_next_call() -> None:
    async with world("a") as made:
        with pytest.raises(EtcdTimeoutError):
            await made.tokens.obtain(made.loop.time() + 0.5)
        await made.tokens.obtain(made.loop.time() + 0.6)
        assert made.fetched == [None]


async def test_an_outage_during_a_fetch_raises_the_error_of_the_outage() -> None:
    async with world("a") as made:
        made.outage = NoAvailableEndpointsError()
        with pytest.raises(NoAvailableEndpointsError):
            await made.tokens.obtain(made.loop.time() + 0.5)


async def test_a_wrong_password_is_tried_once_and_remembered_for_a_second(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with world(AuthenticationFailedError(), AuthenticationFailedError(), "a") as made:
        found = await asyncio.gather(*(made.tokens.obtain(NEVER) for _ in range(5)), return_exceptions=True)
        assert [type(error) for error in found] == [AuthenticationFailedError] * 5
        assert len({id(error) for error in found}) == 5, "each has an error of its own to raise"
        started = made.loop.time()
        while made.loop.time() < started + 0.99:
            with pytest.raises(AuthenticationFailedError):
                await made.tokens.obtain(NEVER)
            await asyncio.sleep(0.1)
        assert len(made.fetched) == 1
        await asyncio.sleep(0.1)
        with pytest.raises(AuthenticationFailedError):
            await made.tokens.obtain(NEVER)
        await asyncio.sleep(1.1)
        await made.tokens.obtain(NEVER)
        assert (len(made.fetched), made.carried) == (3, "a")
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.WARNING, logging.DEBUG]


async def test_calls_with_time_left_try_again_after_a_temporary_failure() -> None:
    async with world(NoAvailableEndpointsError(), EtcdTimeoutError(), "a") as made:
        with pytest.raises(NoAvailableEndpointsError):
            await made.tokens.obtain(made.loop.time() + 1.5)
        await made.tokens.obtain(NEVER)
        assert len(made.fetched) == 3


async def test_a_new_token_that_is_refused_is_not_renewed_in_a_busy_loop() -> None:
    async with world("a", "b", "c") as made:
        await made.tokens.obtain(NEVER)
        await made.tokens.renew("a", REFUSED, NEVER)
        made.tokens.refused_for_good("b", REFUSED, made.loop.time(), was_renewed=True)
        with pytest.raises(InvalidTokenError):
            await made.tokens.obtain(NEVER)
        await asyncio.sleep(1)
        await made.tokens.obtain(NEVER)
        assert (len(made.fetched), made.carried) == (3, "c")


async def test_a_call_that_is_not_repeated_has_the_next_one_begin_with_a_new_token() -> None:
    async with world("a", "b", "c") as made:
        await made.tokens.obtain(NEVER)
        made.tokens.refused_for_good("a", REFUSED, made.loop.time(), was_renewed=False)
        assert made.tokens.state.is_due
        await made.tokens.obtain(NEVER)
        assert made.carried == "b"
        made.tokens.refused_for_good("b", AuthOldRevisionError(), made.loop.time(), was_renewed=True)
        await made.tokens.obtain(NEVER)
        assert made.carried == "b", "the users were changed: that is nothing to a simple token"
        made.tokens.refused_for_good("b", REFUSED, made.loop.time(), was_renewed=False)
        await made.tokens.obtain(NEVER)
        assert made.carried == "c"
        made.tokens.refused_for_good("b", REFUSED, made.loop.time(), was_renewed=True)
        assert not made.tokens.state.is_due, "it was renewed since"
        assert made.tokens.state.remembered(made.loop.time()) is None, (
            "nor does the refusal say anything of the new one"
        )


@pytest.mark.parametrize(("token", "is_kept"), [("b", True), (JWT, False)])
async def test_a_simple_token_that_one_member_does_not_know_yet_is_good_for_the_others(
    token: str, *, is_kept: bool
) -> None:
    async with world("a", token, "c") as made:
        await made.tokens.obtain(NEVER)
        await made.tokens.renew("a", REFUSED, NEVER)
        made.tokens.refused_for_good(token, REFUSED, made.loop.time(), was_renewed=True, by_one=True)
        assert made.tokens.state.is_due is not is_kept
        assert (made.tokens.state.remembered(made.loop.time()) is None) is is_kept


@pytest.mark.parametrize("may_repeat", [True, False])
async def test_where_nothing_gets_a_token_at_most_the_call_is_repeated(may_repeat: bool) -> None:
    metadata = RequestMetadata("3.7", require_leader=True)
    tokens = TokenManager(None, metadata, TokenState(is_due=False), may_repeat=may_repeat, random=lambda: 0.5)
    assert tokens.may_renew(REFUSED) is may_repeat
    assert tokens.may_renew(AuthOldRevisionError()) is may_repeat
    assert not tokens.may_renew(UserEmptyError())
    assert not tokens.may_renew(PermissionDeniedError())
    assert await tokens.renew("", REFUSED, NEVER)
    tokens.refused_for_good("", REFUSED, 0.0, was_renewed=True)
    assert not tokens.state.is_due
    await tokens.aclose()


async def test_a_close_ends_every_wait_at_once() -> None:
    async with world("a-c4n4ry") as made:
        waiting = [asyncio.create_task(made.tokens.obtain(NEVER)) for _ in range(3)]
        await turns()
        started = made.loop.time()
        await made.tokens.aclose()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(error) for error in found] == [ClientClosedError] * 3
        assert made.loop.time() == started
        with pytest.raises(ClientClosedError):
            await made.tokens.obtain(NEVER)


async def test_an_unexpected_error_reaches_the_waiting_calls_and_shows_no_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world(ValueError("of the user's own")) as made:
        with pytest.raises(EtcdError, match="ValueError") as caught:
            await made.tokens.obtain(NEVER)
        assert isinstance(caught.value.__cause__, ValueError)
    assert "own" not in caplog.text


def test_an_error_of_ones_own_shares_nothing_that_grows() -> None:
    cause = ValueError()
    error = with_history(AuthenticationFailedError(), (), maybe_applied=False)
    error.add_note("of another call")
    error.__cause__ = cause
    found = private_copy(error)
    found.add_note("mine")
    assert error.__notes__ == ["of another call"]
    assert (found.__notes__, found.__cause__, found.message) == (["mine"], cause, error.message)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="asyncio.eager_task_factory came with Python 3.12")
async def test_a_fetch_that_ends_at_once_is_no_fetch_that_never_ends_where_tasks_are_eager() -> None:
    if sys.version_info >= (3, 12):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    given = iter(["a", "b"])

    async def fetch(why: EtcdError | None) -> str:
        del why
        return next(given)

    metadata = RequestMetadata("3.7", require_leader=True)
    tokens = TokenManager(fetch, metadata, TokenState(is_due=True), random=lambda: 0.5)
    async with asyncio.timeout(1):
        await tokens.obtain(NEVER)
        assert await tokens.renew("a", REFUSED, NEVER)
    assert token_of(metadata.plain) == "b"
    await tokens.aclose()


async def test_a_token_that_is_due_again_as_soon_as_it_is_there_is_waited_for_until_the_deadline() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    state = TokenState(is_due=True)
    rounds = iter(range(10))

    async def fetch(why: EtcdError | None) -> str:
        """Blocks the loop, as no function should, and its token is refused at once."""
        del why
        next(rounds)
        loop.block(0.3)
        loop.call_soon(lambda: state.refused(state.token, loop.time(), lambda: 0.0))
        return "a"

    tokens = TokenManager(fetch, RequestMetadata("3.7", require_leader=True), state, random=lambda: 0.5)
    started = loop.time()
    with pytest.raises(EtcdTimeoutError):
        await tokens.obtain(started + 1)
    assert loop.time() == pytest.approx(started + 1.2)
    await tokens.aclose()


async def test_a_temporary_failure_is_followed_by_a_growing_wait_that_all_calls_share() -> None:
    failures = [EtcdTimeoutError() for _ in range(4)]
    async with world(*failures, "a") as made:
        started = made.loop.time()
        early = asyncio.create_task(made.tokens.obtain(NEVER))
        await asyncio.sleep(1.05)  # in the first wait
        await asyncio.gather(*(made.tokens.obtain(NEVER) for _ in range(50)))
        await early
        assert made.loop.time() - started == pytest.approx(5 * 1 + 0.1 + 0.2 + 0.4 + 0.8)
        assert len(made.fetched) == 5


async def test_fetches_that_fail_at_once_are_no_busy_loop() -> None:
    fetched = 0

    async def fetch(why: EtcdError | None) -> str:
        nonlocal fetched
        del why
        fetched += 1
        raise EtcdTimeoutError

    metadata = RequestMetadata("3.7", require_leader=True)
    tokens = TokenManager(fetch, metadata, TokenState(is_due=True), random=lambda: 0.5)
    loop = asyncio.get_running_loop()
    with pytest.raises(EtcdTimeoutError):
        await tokens.obtain(loop.time() + 5)
    assert fetched == 6
    await tokens.aclose()
    assert not tasks()


async def test_a_fetch_that_is_cancelled_does_not_say_that_the_client_is_closed() -> None:
    async with world("a") as made:
        waiting = asyncio.create_task(made.tokens.obtain(NEVER))
        await turns()
        (fetching,) = (task for task in tasks() if task.get_name() == "etcd_aio token")
        fetching.cancel()
        with pytest.raises(TokenUnavailableError, match="cancelled"):
            await waiting
        await made.tokens.obtain(NEVER)


async def test_a_remembered_refusal_has_nothing_of_the_call_that_met_it() -> None:
    async with world("a") as made:
        await made.tokens.obtain(NEVER)
        error = InvalidTokenError()
        made.tokens.refused_for_good("a", error, made.loop.time(), was_renewed=True)
        error.call = "put 'first'"
        with_history(error, (), maybe_applied=True, seconds=0.5)
        with pytest.raises(InvalidTokenError) as caught:
            await made.tokens.obtain(NEVER)
        assert (caught.value.call, caught.value.maybe_applied, caught.value.seconds) == ("", False, 0.0)


async def test_a_fetch_that_is_cancelled_before_its_first_step_is_not_waited_for_again() -> None:
    async with world("a") as made:
        waiting = asyncio.ensure_future(made.tokens.obtain(NEVER))
        made.loop.call_soon(lambda: [task.cancel() for task in tasks() if task.get_name() == "etcd_aio token"])
        with pytest.raises(TokenUnavailableError, match="was cancelled"):
            await waiting
        await made.tokens.obtain(NEVER)
        assert made.carried == "a"

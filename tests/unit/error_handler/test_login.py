"""error_handler/login.py: what is asked for a token, and what the answers mean."""

import asyncio

import pytest

from etcd_aio.error_handler import RetryPolicy
from etcd_aio.error_handler.credentials import Password, TokenSource
from etcd_aio.error_handler.login import FUNCTION_TIMEOUT, TIMEOUT
from etcd_aio.errors import (
    AuthenticationFailedError,
    EtcdError,
    EtcdTimeoutError,
    NoAvailableEndpointsError,
    TokenUnavailableError,
    UserEmptyError,
)
from etcd_aio.methods import AUTHENTICATE
from etcd_aio.pb import AuthenticateRequest
from tests.support.answers import asked, refused, requests
from tests.support.calls import Calls, leader_changed, unknown
from tests.support.fake_engine import Refuse
from tests.support.tokens import Doorman

pytestmark = pytest.mark.anyio

NOT_ENABLED = "etcdserver: authentication is not enabled"


def logins(calls: Calls) -> list[str]:
    return asked(calls, AUTHENTICATE)


async def new(**options: object) -> tuple[Calls, Doorman]:
    calls = Calls(credentials=Password("web", "pw-c4n4ry"), **options)  # type: ignore[arg-type]
    doorman = Doorman(calls)
    await calls.ready()
    return calls, doorman


async def test_the_first_call_logs_in_and_no_other() -> None:
    calls, doorman = await new()
    await asyncio.gather(*(calls.read() for _ in range(50)), *(calls.put() for _ in range(50)))
    await calls.read()
    assert logins(calls) == ["m1"]
    (request,) = requests(calls, AUTHENTICATE, AuthenticateRequest)
    assert (request.name, request.password) == ("web", "pw-c4n4ry")
    (login, *others) = calls.engine.attempts
    assert dict(login.metadata).keys() == {"client-api-version", "hasleader"}
    assert login.is_heavy
    assert not any(one.is_heavy for one in others)
    assert {dict(one.metadata)["token"] for one in others} == {"t1-c4n4ry"}
    assert doorman.refusals == 0
    await calls.aclose()


async def test_a_login_is_retried_like_a_read(caplog: pytest.LogCaptureFixture) -> None:
    calls, _ = await new()
    calls["m1"].answers.append(unknown())
    calls["m2"].answers.append(leader_changed())
    await calls.read()
    assert logins(calls) == ["m1", "m2", "m3"]
    assert "no token" not in caplog.text, "it was one login"
    await calls.aclose()


async def test_a_cluster_that_wants_no_token_gets_none_until_it_does() -> None:
    calls, doorman = await new()
    doorman.is_enabled = False
    await calls.read()
    await calls.read()
    assert logins(calls) == ["m1"]
    doorman.is_enabled = True
    assert doorman.refusals == 0
    await calls.put()
    assert (doorman.refusals, len(logins(calls))) == (1, 2)
    doorman.is_enabled = False
    await calls.put()
    await calls.aclose()


async def test_a_member_that_has_not_heard_of_it_yet_is_not_believed() -> None:
    calls, doorman = await new()
    doorman.is_enabled = False
    await calls.read()
    doorman.is_enabled = True
    doorman.logins.extend([refused(NOT_ENABLED), refused(NOT_ENABLED)])
    await calls.put()
    assert (doorman.refusals, len(logins(calls))) == (1, 4)
    await calls.aclose()


async def test_but_not_for_ever() -> None:
    calls, doorman = await new()
    doorman.is_enabled = False
    await calls.read()
    doorman.is_enabled = True
    doorman.logins.extend([refused(NOT_ENABLED)] * 100)
    with pytest.raises(UserEmptyError):
        await calls.put()
    assert len(logins(calls)) == 1 + 6
    await calls.aclose()


async def test_a_wrong_password_is_tried_once_for_all() -> None:
    calls, doorman = await new()
    doorman.password = "other-c4n4ry"
    found = await asyncio.gather(*(calls.put() for _ in range(20)), return_exceptions=True)
    assert {type(error) for error in found} == {AuthenticationFailedError}
    assert logins(calls) == ["m1"]
    assert all(attempt.path == AUTHENTICATE.path for attempt in calls.engine.attempts)
    doorman.password = "pw-c4n4ry"
    await asyncio.sleep(1.1)
    await calls.put()
    await calls.aclose()


async def test_an_outage_names_every_endpoint() -> None:
    calls = Calls(credentials=Password("web", "pw-c4n4ry"))
    for name in calls.names:
        calls.engine[name].dial = Refuse()
    with pytest.raises(NoAvailableEndpointsError) as caught:
        await calls.read(timeout=2)
    assert set(caught.value.errors) == set(calls.names)
    await calls.aclose()


async def test_a_function_is_asked_first_and_after_each_refusal() -> None:
    given = iter(["f1-c4n4ry", "f2-c4n4ry"])

    async def give() -> str:
        await asyncio.sleep(0.1)
        return next(given)

    calls = Calls(credentials=TokenSource(give))
    doorman = Doorman(calls)
    doorman.valid = {"f1-c4n4ry"}
    await calls.ready()
    await asyncio.gather(*(calls.read() for _ in range(20)))
    doorman.valid = {"f2-c4n4ry"}
    await asyncio.gather(*(calls.put() for _ in range(20)))
    assert not logins(calls)
    assert next(given, None) is None
    await calls.aclose()


@pytest.mark.parametrize("wrong", [None, b"c4n4ry", "c4n4ry\n", OSError("of the user's own")])
async def test_a_function_that_gives_no_token(wrong: object) -> None:
    async def give() -> str:
        if isinstance(wrong, Exception):
            raise wrong
        return wrong  # type: ignore[return-value]

    calls = await Calls(credentials=TokenSource(give)).ready()
    with pytest.raises(TokenUnavailableError) as caught:
        await calls.read()
    assert "c4n4ry" not in str(caught.value)
    assert "own" not in str(caught.value), "what it raised may tell anything"
    assert caught.value.__cause__ is (wrong if isinstance(wrong, Exception) else None)
    assert not calls.engine.attempts
    await calls.aclose()


async def test_a_login_stays_with_its_member_and_serves_the_calls_that_come_later() -> None:
    calls, _ = await new()
    for name in calls.names:
        calls.engine[name].latency = 12.0
    with pytest.raises(EtcdTimeoutError, match="while a token was fetched"):
        await calls.read()
    with pytest.raises(EtcdTimeoutError):
        await calls.put()
    waiting = asyncio.create_task(calls.read(timeout=20))
    await asyncio.sleep(1)
    calls["m1"].connection.give_up("it looks bad")
    for name in calls.names:
        calls.engine[name].latency = 0.0
    await waiting
    assert logins(calls) == ["m1"]
    (login,) = (attempt for attempt in calls.engine.attempts if attempt.path == AUTHENTICATE.path)
    assert login.deadline - login.at == TIMEOUT
    await calls.aclose()


async def test_refused_logins_are_no_busy_loop_where_a_call_is_one_attempt() -> None:
    calls, doorman = await new(policy=RetryPolicy(max_attempts=1))
    doorman.logins.extend([leader_changed()] * 10_000)
    with pytest.raises(EtcdError):
        await calls.read()
    assert len(logins(calls)) == 6
    await calls.aclose()


async def test_a_function_that_hangs_is_given_up_and_asked_again() -> None:
    asked = 0

    async def give() -> str:
        nonlocal asked
        asked += 1
        if asked == 1:
            await asyncio.Event().wait()
        return "f-c4n4ry"

    calls = await Calls(credentials=TokenSource(give)).ready()
    started = calls.loop.time()
    with pytest.raises(EtcdTimeoutError):
        await calls.read()
    with pytest.raises(TokenUnavailableError, match="within 10 s"):
        await calls.read(timeout=20)
    assert calls.loop.time() - started == pytest.approx(FUNCTION_TIMEOUT)
    await asyncio.sleep(1.5)
    await calls.read()
    assert asked == 2
    await calls.aclose()


async def test_a_function_in_which_something_was_cancelled_is_no_closed_client() -> None:
    async def give() -> str:
        inner = asyncio.create_task(asyncio.sleep(10))
        asyncio.get_running_loop().call_later(1, inner.cancel)
        await inner
        return "f-c4n4ry"

    calls = await Calls(credentials=TokenSource(give)).ready()
    with pytest.raises(TokenUnavailableError, match="token= was cancelled") as caught:
        await calls.read()
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    await calls.aclose()


async def test_a_timeout_inside_of_the_function_is_reported_as_its_own_error() -> None:
    async def give() -> str:
        async with asyncio.timeout(1):
            await asyncio.sleep(2)
        return "f-c4n4ry"

    calls = await Calls(credentials=TokenSource(give)).ready()
    with pytest.raises(TokenUnavailableError, match="token= raised TimeoutError"):
        await calls.read()
    await calls.aclose()

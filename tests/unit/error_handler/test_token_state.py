"""error_handler/token_state.py: which refusals call for another token, and how long a failure counts."""

import base64
import json

import pytest

from etcd_aio.error_handler.token_state import (
    REMEMBERED,
    TokenRefusals,
    TokenRemedy,
    TokenState,
    auth_revision,
    is_spent,
)
from etcd_aio.errors import (
    AuthenticationFailedError,
    AuthOldRevisionError,
    EtcdError,
    EtcdTimeoutError,
    InvalidTokenError,
    UserEmptyError,
)

RENEW, REPEAT, RAISE = TokenRemedy.RENEW, TokenRemedy.REPEAT, TokenRemedy.RAISE
SIMPLE = "AdRrPNmbHTWHmxSO.15"
INVALID, OLD, EMPTY = InvalidTokenError(), AuthOldRevisionError(), UserEmptyError()


def refuse(state: TokenState, used: str, now: float = 100.0, chance: float = 0.5) -> None:
    state.refused(used, now, lambda: chance)


def test_only_the_refusal_of_the_token_that_is_carried_calls_for_another() -> None:
    state = TokenState(is_due=True)
    assert not state.has_newer("")
    state.fetched("a")
    assert not state.is_due
    refuse(state, "older")
    assert not state.is_due, "it was renewed since"
    assert state.has_newer("older")
    refuse(state, "a")
    assert state.is_due
    assert not state.has_newer("older"), "the one that is carried is refused too"
    state.fetched("b")
    assert state.has_newer("a")


def test_no_token_can_be_refused_too() -> None:
    state = TokenState(is_due=True)
    state.fetched("")  # authentication was not enabled
    assert not state.is_due
    refuse(state, "")  # and was enabled since
    assert state.is_due


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 0.8), (0.5, 1.0), (0.999999, 1.2)])
def test_a_failure_counts_for_about_a_second(chance: float, seconds: float) -> None:
    state = TokenState(is_due=True)
    error = AuthenticationFailedError()
    state.failed(error, 100.0, lambda: chance)
    assert state.remembered(100.0) is error
    assert state.remembered(100.0 + seconds * REMEMBERED - 0.001) is error
    assert state.remembered(100.0 + seconds * REMEMBERED + 0.001) is None
    assert state.remembered(100.0) is None, "it is not kept for longer than needed"


def test_a_new_token_and_the_close_clear_the_remembered_failure() -> None:
    state = TokenState(is_due=True)
    state.failed(AuthenticationFailedError(), 100.0, lambda: 0.5)
    state.fetched("a-c4n4ry")
    assert state.remembered(100.0) is None
    state.failed(AuthenticationFailedError(), 100.0, lambda: 0.5)
    state.forget()
    assert state.token == ""
    assert state.remembered(100.0) is None


def test_what_passes_is_not_remembered_but_puts_the_next_login_off_and_longer_each_time() -> None:
    state = TokenState(is_due=True)
    assert state.wait(100.0) == 0
    waits = []
    for _ in range(7):
        state.failed(EtcdTimeoutError(), 100.0, lambda: 0.5)
        assert state.remembered(100.0) is None
        waits.append(state.wait(100.0))
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0])
    assert state.wait(101.0) == pytest.approx(1.0)
    assert state.wait(103.0) == 0
    state.fetched("a")
    state.failed(EtcdTimeoutError(), 200.0, lambda: 0.5)
    assert state.wait(200.0) == pytest.approx(0.1), "a token has come in between"


def test_clients_that_failed_together_do_not_come_back_together() -> None:
    waits = []
    chances = iter([0.0, 0.999999])
    for _ in range(2):
        state = TokenState(is_due=True)
        state.failed(EtcdTimeoutError(), 100.0, lambda: next(chances))
        waits.append(state.wait(100.0))
    assert waits == pytest.approx([0.05, 0.15], abs=0.001)


def test_only_the_second_of_two_losses_in_a_row_puts_the_login_off() -> None:
    state = TokenState(is_due=True)
    state.fetched("a")
    refuse(state, "a", 100.0)
    refuse(state, "a", 100.0)
    assert state.wait(100.0) == 0, "two requests were refused, and one token was lost"
    state.fetched("b")
    refuse(state, "b", 109.0, chance=0.25)
    assert state.wait(109.0) == pytest.approx(0.25)
    state.fetched("c")
    refuse(state, "c", 120.0)
    assert state.wait(120.0) == 0


# One call.


def part(claims: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def jwt(revision: object, user: str = "web") -> str:
    return f"{part({'alg': 'RS256'})}.{part({'username': user, 'revision': revision})}.c2lnbmF0dXJl"


def judged(*refusals: tuple[EtcdError, str], may_renew: bool = True, endpoints: int = 3) -> list[TokenRemedy]:
    call = TokenRefusals()
    return [call.judge(error, token, may_renew=may_renew, endpoints=endpoints) for error, token in refusals]


def test_a_jwt_tells_its_revision() -> None:
    assert auth_revision(jwt(7)) == 7


@pytest.mark.parametrize(
    "token", ["", SIMPLE, "a.b.c", "a.?.c", f"a.{part([1])}.c", f"a.{part({})}.c", jwt("7"), "a." + "A" * 5 + ".c"]
)
def test_another_token_tells_none(token: str) -> None:
    assert auth_revision(token) is None


@pytest.mark.parametrize("may_renew", [True, False])
@pytest.mark.parametrize("token", [SIMPLE, ""])
def test_a_simple_token_is_repeated_as_often_as_users_change_without_a_login(token: str, may_renew: bool) -> None:
    assert judged(*[(OLD, token)] * 50, may_renew=may_renew) == [REPEAT] * 50
    assert not is_spent(OLD, token)


def test_a_jwt_is_renewed_as_often_as_users_change() -> None:
    assert judged(*[(OLD, jwt(revision)) for revision in range(50)]) == [RENEW] * 50
    assert is_spent(OLD, jwt(1))


def test_a_new_jwt_that_is_refused_for_the_same_revision_is_refused_for_good() -> None:
    assert judged((OLD, jwt(1)), (OLD, jwt(2, "a")), (OLD, jwt(2, "b"))) == [RENEW, RENEW, RAISE]
    assert judged((OLD, jwt(1)), (OLD, jwt(1))) == [RENEW, RAISE], "the same one came back"
    assert judged((OLD, jwt(1)), may_renew=False) == [RAISE]


def test_a_new_token_that_one_member_does_not_know_is_good_elsewhere() -> None:
    assert judged((INVALID, "a"), (INVALID, "b"), (INVALID, "b")) == [RENEW, REPEAT, REPEAT]


@pytest.mark.parametrize(
    ("endpoints", "remedies"),
    [
        (1, [RENEW, RENEW, RAISE]),
        (3, [RENEW, REPEAT, REPEAT, RENEW, REPEAT, REPEAT, RAISE]),
    ],
)
def test_a_few_new_jwts_that_all_members_refuse_are_a_final_answer(endpoints: int, remedies: list[TokenRemedy]) -> None:
    tokens = [jwt(1, "a"), *[jwt(1, "b")] * endpoints, *[jwt(1, "c")] * endpoints]
    assert judged(*[(INVALID, token) for token in tokens], endpoints=endpoints) == remedies


@pytest.mark.parametrize("endpoints", [1, 3])
def test_each_new_simple_token_has_twice_the_rounds_and_there_is_always_another_one(endpoints: int) -> None:
    """A member that lags behind does not know the newest, so tokens must become old."""
    tries = [2 * endpoints, 4 * endpoints, 8 * endpoints, 16 * endpoints]
    tokens = ["a", *(f"b{number}" for number, times in enumerate(tries) for _ in range(times))]
    rounds = [remedy for times in tries for remedy in [*[REPEAT] * (times - 1), RENEW]]
    assert judged(*[(INVALID, token) for token in tokens], endpoints=endpoints) == [RENEW, *rounds]


def test_the_same_token_again_is_no_other_one() -> None:
    assert judged((INVALID, "a"), (INVALID, "a")) == [RENEW, RAISE]
    assert judged((EMPTY, ""), (EMPTY, "")) == [RENEW, RAISE]
    assert judged((INVALID, "a"), may_renew=False) == [RAISE]
    assert is_spent(INVALID, "a")


def test_users_that_change_do_not_use_up_the_patience_with_a_restart() -> None:
    refusals = [(OLD, "a")] * 9 + [(INVALID, "a"), (INVALID, "b"), (OLD, "b")]
    assert judged(*refusals) == [REPEAT] * 9 + [RENEW, REPEAT, REPEAT]

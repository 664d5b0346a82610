"""Token refusals: which of them call for another token, which for patience, and which are final."""

import base64
import json

import pytest

from etcd_aio.error_handler.token_refusals import TokenRefusals, TokenRemedy, auth_revision, is_spent
from etcd_aio.errors import AuthOldRevisionError, EtcdError, InvalidTokenError, UserEmptyError

RENEW, REPEAT, RAISE = TokenRemedy.RENEW, TokenRemedy.REPEAT, TokenRemedy.RAISE
SIMPLE = "AdRrPNmbHTWHmxSO.15"
INVALID, OLD, EMPTY = InvalidTokenError(), AuthOldRevisionError(), UserEmptyError()


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
def test_a_few_new_tokens_that_all_members_refuse_are_a_final_answer(
    endpoints: int, remedies: list[TokenRemedy]
) -> None:
    tokens = ["a", *"b" * endpoints, *"c" * endpoints]
    assert judged(*[(INVALID, token) for token in tokens], endpoints=endpoints) == remedies


def test_the_same_token_again_is_no_other_one() -> None:
    assert judged((INVALID, "a"), (INVALID, "a")) == [RENEW, RAISE]
    assert judged((EMPTY, ""), (EMPTY, "")) == [RENEW, RAISE]
    assert judged((INVALID, "a"), may_renew=False) == [RAISE]
    assert is_spent(INVALID, "a")


def test_users_that_change_do_not_use_up_the_patience_with_a_restart() -> None:
    refusals = [(OLD, "a")] * 9 + [(INVALID, "a"), (INVALID, "b"), (OLD, "b")]
    assert judged(*refusals) == [REPEAT] * 9 + [RENEW, REPEAT, REPEAT]

"""Token state: whose refusal calls for another token, and how long a failure counts."""

import pytest

from etcd_aio.error_handler.token_state import REMEMBERED, TokenState
from etcd_aio.errors import AuthenticationFailedError


def test_only_the_refusal_of_the_token_that_is_carried_calls_for_another() -> None:
    state = TokenState(is_due=True)
    assert not state.has_newer("")
    state.fetched("a")
    assert not state.is_due
    state.refused("older")
    assert not state.is_due, "it was renewed since"
    assert state.has_newer("older")
    state.refused("a")
    assert state.is_due
    assert not state.has_newer("older"), "the one that is carried is refused too"
    state.fetched("b")
    assert state.has_newer("a")


def test_no_token_can_be_refused_too() -> None:
    state = TokenState(is_due=True)
    state.fetched("")  # authentication was not enabled
    assert not state.is_due
    state.refused("")  # and was enabled since
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


def test_a_token_ends_the_memory_of_failures_and_so_does_the_close() -> None:
    state = TokenState(is_due=True)
    state.failed(AuthenticationFailedError(), 100.0, lambda: 0.5)
    state.fetched("a-c4n4ry")
    assert state.remembered(100.0) is None
    state.failed(AuthenticationFailedError(), 100.0, lambda: 0.5)
    state.forget()
    assert state.token == ""
    assert state.remembered(100.0) is None

"""Token state: whose refusal calls for another token, and how long a failure counts."""

import pytest

from etcd_aio.error_handler.token_state import REMEMBERED, TokenState
from etcd_aio.errors import AuthenticationFailedError, EtcdTimeoutError


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


def test_a_token_ends_the_memory_of_failures_and_so_does_the_close() -> None:
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

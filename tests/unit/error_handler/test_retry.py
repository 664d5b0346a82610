import math
from typing import Any

import pytest

from etcd_aio.backoff import Backoff
from etcd_aio.error_handler.retry import RetryBudget, RetryPolicy, RetryThrottling, wait_before
from etcd_aio.errors import ConfigError

BACKOFF = Backoff(initial=1.0, multiplier=2.0, maximum=16.0, jitter=0.0)


def wait(repetition: int, endpoints: int, *, is_throttled: bool = False, pushback: float | None = None) -> float:
    return wait_before(
        repetition,
        endpoints=endpoints,
        backoff=BACKOFF,
        is_throttled=is_throttled,
        pushback=pushback,
        random=lambda: 0.5,
    )


@pytest.mark.parametrize(
    ("endpoints", "waits"),
    [
        (1, [1, 2, 4, 8, 16, 16, 16, 16, 16]),
        (2, [0, 1, 0, 2, 0, 4, 0, 8, 0]),
        (3, [0, 1, 0, 2, 0, 4, 0, 8, 0]),
        (4, [0, 0, 1, 0, 0, 2, 0, 0, 4]),
        (5, [0, 0, 1, 0, 0, 2, 0, 0, 4]),
    ],
)
def test_a_wait_is_due_once_a_quorum_was_tried(endpoints: int, waits: list[float]) -> None:
    assert [wait(repetition, endpoints) for repetition in range(1, 10)] == waits


def test_what_the_server_asks_for_goes_before_everything() -> None:
    assert wait(1, 3, pushback=7.5) == 7.5
    assert wait(2, 3, pushback=0.0) == 0.0
    assert wait(2, 3, is_throttled=True, pushback=0.25) == 0.25


def test_throttled_calls_take_the_longest_wait_before_every_repetition() -> None:
    assert [wait(repetition, 3, is_throttled=True) for repetition in (1, 2, 3)] == [16.0, 16.0, 16.0]


def test_a_budget_is_exhausted_at_half_and_successes_fill_it_again() -> None:
    budget = RetryBudget(RetryThrottling(max_tokens=4, token_ratio=0.5))
    budget.on_failure()
    assert not budget.is_exhausted
    budget.on_failure()
    assert budget.is_exhausted
    budget.on_success()
    assert not budget.is_exhausted


def test_a_budget_neither_overflows_nor_goes_below_nothing() -> None:
    budget = RetryBudget(RetryThrottling(max_tokens=4, token_ratio=1.0))
    for _ in range(100):
        budget.on_success()
    budget.on_failure()
    budget.on_failure()
    assert budget.is_exhausted
    for _ in range(100):
        budget.on_failure()
    for _ in range(3):
        budget.on_success()
    assert not budget.is_exhausted


def test_the_defaults_are_the_go_clients_where_it_has_any() -> None:
    policy = RetryPolicy()
    assert (policy.max_attempts, policy.initial_backoff) == (100, 0.025)
    assert policy.backoff().wait(1000, lambda: 0.5) == policy.max_backoff


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"initial_backoff": -1.0},
        {"initial_backoff": math.nan},
        {"initial_backoff": 2.0, "max_backoff": 1.0},
        {"max_backoff": math.inf},
        {"backoff_multiplier": 0.9},
        {"jitter": 1.5},
        {"jitter": math.nan},
    ],
)
def test_a_policy_that_cannot_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RetryPolicy(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"max_tokens": 0}, {"max_tokens": 1001}, {"max_tokens": math.nan}, {"token_ratio": 0}, {"token_ratio": math.nan}],
)
def test_a_budget_that_cannot_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RetryThrottling(**wrong)

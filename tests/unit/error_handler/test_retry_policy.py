"""error_handler/retry_policy.py: the budget, the defaults of the Go client, and values that cannot work."""

import math
from typing import Any

import pytest

from etcd_aio.error_handler.retry_policy import RetryBudget, RetryPolicy, RetryThrottling
from etcd_aio.errors import ConfigError


def test_a_budget_is_exhausted_at_half_and_successes_refill_it() -> None:
    budget = RetryBudget(RetryThrottling(max_tokens=4, token_ratio=0.5))
    budget.on_failure()
    assert not budget.is_exhausted
    budget.on_failure()
    assert budget.is_exhausted
    budget.on_success()
    assert not budget.is_exhausted


def test_a_budget_stays_between_zero_and_its_maximum() -> None:
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


def test_the_defaults_are_those_of_the_go_client() -> None:
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
def test_a_policy_that_cannot_work_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RetryPolicy(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"max_tokens": 0}, {"max_tokens": 1001}, {"max_tokens": math.nan}, {"token_ratio": 0}, {"token_ratio": math.nan}],
)
def test_a_budget_that_cannot_work_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RetryThrottling(**wrong)

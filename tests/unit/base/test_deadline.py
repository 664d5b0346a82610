"""base/deadline.py: timeouts become instants, `None` means never, and the time left is never negative."""

import math

import pytest

from etcd_aio.base.deadline import NEVER, deadline_after, time_left
from etcd_aio.errors import InvalidRequestError


def test_a_timeout_becomes_the_instant_that_many_seconds_later() -> None:
    assert deadline_after(2.5, 1000.0) == 1002.5
    assert deadline_after(2, 1000.0) == 1002.0


def test_no_timeout_means_never() -> None:
    assert deadline_after(None, 1000.0) == NEVER
    assert deadline_after(math.inf, 1000.0) == NEVER


def test_a_timeout_of_zero_is_over_at_once() -> None:
    assert deadline_after(0, 1000.0) == 1000.0


@pytest.mark.parametrize("timeout", [-1, -0.001, -math.inf, math.nan, 1e10, 10**400])
def test_a_timeout_that_no_clock_can_measure_is_rejected(timeout: float) -> None:
    with pytest.raises(InvalidRequestError, match="timeout"):
        deadline_after(timeout, 1000.0)


@pytest.mark.parametrize("timeout", ["1", True, b"1", [1]])
def test_a_timeout_that_is_not_a_number_is_a_type_error(timeout: float) -> None:
    with pytest.raises(TypeError, match="timeout must be a number of seconds or None"):
        deadline_after(timeout, 1000.0)


def test_the_time_left_is_never_negative() -> None:
    assert time_left(1002.5, 1000.0) == 2.5
    assert time_left(1000.0, 1000.0) == 0.0
    assert time_left(999.0, 1000.0) == 0.0
    assert time_left(NEVER, 1000.0) == math.inf

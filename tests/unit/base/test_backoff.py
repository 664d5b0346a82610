"""base/backoff.py: waits grow up to a maximum, with jitter to both sides; wrong arguments are refused."""

import math

import pytest

from etcd_aio.base.backoff import Backoff, jittered


def middle() -> float:
    return 0.5


def test_waits_grow_up_to_the_maximum() -> None:
    backoff = Backoff(initial=1.0, multiplier=2.0, maximum=5.0, jitter=0.2)
    assert [backoff.wait(repetition, middle) for repetition in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 8.0), (0.5, 10.0), (0.75, 11.0)])
def test_jitter_is_a_fraction_to_both_sides(chance: float, seconds: float) -> None:
    assert jittered(10.0, 0.2, lambda: chance) == pytest.approx(seconds)
    assert jittered(10.0, 0.0, lambda: chance) == 10.0


def test_jitter_spreads_a_wait_to_both_sides() -> None:
    backoff = Backoff(initial=1.0, multiplier=1.0, maximum=1.0, jitter=0.2)
    assert backoff.wait(0, lambda: 0.0) == pytest.approx(0.8)
    assert backoff.wait(0, lambda: 0.999999) == pytest.approx(1.2, abs=1e-5)


def test_the_longest_wait_is_the_maximum_with_its_jitter() -> None:
    backoff = Backoff(initial=0.1, multiplier=1.0, maximum=2.0, jitter=0.5)
    assert backoff.longest(middle) == 2.0
    assert backoff.longest(lambda: 0.0) == 1.0


@pytest.mark.parametrize("multiplier", [1.001, 1.6, 1e10, 1e300])
def test_any_growth_reaches_the_maximum_and_none_overflows(multiplier: float) -> None:
    backoff = Backoff(initial=0.025, multiplier=multiplier, maximum=1.0, jitter=0.0)
    assert backoff.wait(10_000, middle) == 1.0
    assert backoff.wait(10**12, middle) == 1.0


def test_an_initial_wait_of_zero_stays_zero() -> None:
    backoff = Backoff(initial=0.0, multiplier=2.0, maximum=1.0, jitter=0.2)
    assert backoff.wait(0, middle) == 0.0
    assert backoff.wait(10_000, middle) == 0.0


@pytest.mark.parametrize(
    ("initial", "multiplier", "maximum", "jitter"),
    [
        (-1.0, 2.0, 1.0, 0.1),
        (2.0, 2.0, 1.0, 0.1),
        (1.0, 0.5, 1.0, 0.1),
        (1.0, 2.0, 1.0, -0.1),
        (1.0, 2.0, 1.0, 1.1),
        (math.nan, 2.0, 1.0, 0.1),
        (1.0, math.nan, 1.0, 0.1),
        (1.0, 2.0, math.nan, 0.1),
        (1.0, 2.0, 1.0, math.nan),
        (1.0, 2.0, math.inf, 0.1),
        (1.0, math.inf, 1.0, 0.1),
    ],
)
def test_arguments_that_give_no_series_of_waits_are_rejected(
    initial: float, multiplier: float, maximum: float, jitter: float
) -> None:
    with pytest.raises(ValueError, match="backoff"):
        Backoff(initial, multiplier, maximum, jitter)

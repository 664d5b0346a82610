import math

import pytest

from etcd_aio.backoff import Backoff


def middle() -> float:
    return 0.5


def test_waits_grow_up_to_the_cap() -> None:
    backoff = Backoff(initial=1.0, multiplier=2.0, maximum=5.0, jitter=0.2)
    assert [backoff.wait(repetition, middle) for repetition in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_jitter_spreads_a_wait_to_both_sides() -> None:
    backoff = Backoff(initial=1.0, multiplier=1.0, maximum=1.0, jitter=0.2)
    assert backoff.wait(0, lambda: 0.0) == pytest.approx(0.8)
    assert backoff.wait(0, lambda: 0.999999) == pytest.approx(1.2, abs=1e-5)


def test_the_longest_wait_is_the_cap_with_its_jitter() -> None:
    backoff = Backoff(initial=0.1, multiplier=1.0, maximum=2.0, jitter=0.5)
    assert backoff.longest(middle) == 2.0
    assert backoff.longest(lambda: 0.0) == 1.0


@pytest.mark.parametrize("multiplier", [1.001, 1.6, 1e10, 1e300])
def test_any_growth_reaches_the_cap_and_none_overflows(multiplier: float) -> None:
    backoff = Backoff(initial=0.025, multiplier=multiplier, maximum=1.0, jitter=0.0)
    assert backoff.wait(10_000, middle) == 1.0
    assert backoff.wait(10**12, middle) == 1.0


def test_no_wait_at_all_is_a_backoff_too() -> None:
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
def test_what_is_no_series_of_waits_is_refused(
    initial: float, multiplier: float, maximum: float, jitter: float
) -> None:
    with pytest.raises(ValueError, match="backoff"):
        Backoff(initial, multiplier, maximum, jitter)

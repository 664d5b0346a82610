"""http2/limits.py: the budget of frames that bring nothing."""

from etcd_aio.http2.limits import (
    BURST,
    MOST,
    PER_SECOND,
    PER_STREAM_GIVEN_UP,
    PER_USEFUL_FRAME,
    REMEMBERED,
    FloodBudget,
)


def spendable(budget: FloodBudget, now: float) -> int:
    count = 0
    while budget.spend(now):
        count += 1
    return count


def test_a_burst_is_free_and_one_more_is_too_many() -> None:
    assert spendable(FloodBudget(5.0), 5.0) == BURST


def test_time_gives_back_up_to_the_burst() -> None:
    budget = FloodBudget(0.0)
    spendable(budget, 0.0)
    assert spendable(budget, 1.0) == PER_SECOND - 1  # the one that was too many is paid first
    assert spendable(budget, 1000.0) == BURST


def test_a_useful_frame_gives_back_but_cannot_be_saved_up() -> None:
    budget = FloodBudget(0.0)
    for _ in range(1000):
        budget.useful()
    assert spendable(budget, 0.0) == BURST
    budget.useful()
    assert spendable(budget, 0.0) == PER_USEFUL_FRAME - 1


def test_what_costs_more_is_paid_for() -> None:
    budget = FloodBudget(0.0)
    assert [budget.spend(0.0, 400.0) for _ in range(3)] == [True, True, False]


def test_what_is_earned_cannot_be_saved_up() -> None:
    budget = FloodBudget(0.0)
    budget.earn(1000.0)
    assert spendable(budget, 0.0) == BURST
    budget.earn(5.0)
    assert spendable(budget, 0.0) == 4  # the one that was too many is paid first
    budget.earn(5 * BURST)
    assert spendable(budget, 0.0) == BURST


def test_a_stream_given_up_is_worth_what_may_be_on_its_way() -> None:
    budget = FloodBudget(0.0)
    budget.gave_up(1, 0)
    assert spendable(budget, 0.0) == BURST + PER_STREAM_GIVEN_UP


def test_streams_given_up_are_worth_so_much_and_no_more() -> None:
    budget = FloodBudget(0.0)
    for number in range(1_000):
        budget.gave_up(number, 0)
    assert spendable(budget, 0.0) == MOST


def test_time_takes_nothing_of_it_away() -> None:
    budget = FloodBudget(0.0)
    budget.gave_up(1, 0)
    assert budget.spend(100.0)
    assert spendable(budget, 200.0) == BURST + PER_STREAM_GIVEN_UP - 1


def test_what_was_left_of_the_window_of_a_stream_given_up_may_still_come() -> None:
    budget = FloodBudget(0.0)
    budget.gave_up(1, 100)
    assert [budget.is_late(1, size) for size in (60, 60, 40, 1)] == [True, False, True, False]
    assert not budget.is_late(3, 1)


def test_only_the_latest_streams_are_remembered() -> None:
    budget = FloodBudget(0.0)
    for number in range(2 * REMEMBERED):
        budget.gave_up(number, 10)
    known = [number for number in range(2 * REMEMBERED) if budget.is_late(number, 1)]
    assert known == list(range(REMEMBERED, 2 * REMEMBERED))

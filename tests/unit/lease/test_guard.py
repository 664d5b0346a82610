"""lease/guard.py, lease/guarded_lease.py: a lease that two threads use: deadlines, feeding, loss."""

import threading

import pytest

from etcd_aio.errors import LeaseExpiredError, LeaseLostError
from etcd_aio.lease.guard import GuardedState

ROUNDS = 200


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def state_of(clock: Clock, watchdog: float | None = None) -> GuardedState:
    state = GuardedState(watchdog, clock)
    state.begin(7, 10, clock.time + 10)
    return state


def test_a_lease_lasts_until_its_deadline_and_stays_lost(clock: Clock) -> None:
    state = state_of(clock)
    clock.time = 1009.9
    assert (state.until, state.look()) == (1010, None)
    clock.time = 1010
    assert isinstance(state.look(), LeaseExpiredError)
    state.deadline = 2000  # a renewal that comes too late
    assert isinstance(state.look(), LeaseExpiredError)
    assert state.until < 0
    assert not state.is_starved


def test_a_lease_that_is_not_fed_is_lost_although_it_is_renewed(clock: Clock) -> None:
    state = state_of(clock, watchdog=3)
    clock.time, state.deadline = 1002.5, 1100
    state.feed()
    assert state.until == 1005.5
    clock.time = 1005.5
    with pytest.raises(LeaseLostError, match=r"lease 0x7 was let go: the program has not fed it for 3 s") as raised:
        state.feed()
    assert state.is_starved
    with pytest.raises(LeaseLostError) as again:
        state.feed()
    assert again.value is raised.value


def test_the_first_reason_of_a_loss_counts(clock: Clock) -> None:
    state = state_of(clock, watchdog=3)
    revoked = LeaseLostError("revoked")
    assert state.lose(revoked) is revoked
    assert state.lose(LeaseLostError("later")) is revoked
    clock.time = 1003
    assert state.look() is revoked
    assert not state.is_starved


def test_a_loss_that_was_noticed_by_the_clock_gets_its_cause_later(clock: Clock) -> None:
    state = state_of(clock)
    clock.time = 1010
    noticed = state.look()
    told = LeaseExpiredError("no renewal was acknowledged in time")
    told.__cause__ = OSError("no route")
    assert state.lose(told) is noticed
    assert noticed is not None
    assert noticed.__cause__ is told.__cause__


def test_a_feed_and_a_look_at_the_same_time_agree() -> None:
    for _ in range(ROUNDS):
        clock = Clock()
        state = state_of(clock, watchdog=3)
        clock.time = 1003
        told: list[object] = []

        def feed(state: GuardedState = state, told: list[object] = told) -> None:
            try:
                state.feed()
            except LeaseLostError as error:
                told.append(error)
            else:
                told.append(None)

        threads = [threading.Thread(target=feed), threading.Thread(target=lambda: told.append(state.look()))]  # noqa: B023 - it ends in this round
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told == [state.error, state.error]

"""lease/patience.py: when a renewal is due, and how long its answer may take."""

import pytest

from etcd_aio.lease.patience import FEW, Patience, due_at


@pytest.mark.parametrize(("leases", "share"), [(1, 4), (FEW, 4), (FEW + 1, 3), (10_000, 3)])
@pytest.mark.parametrize("ttl", [1, 2, 8, 10, 60, 3600, 9_000_000_000])
def test_a_renewal_is_due_after_a_quarter_of_the_ttl_and_of_many_leases_after_a_third(
    ttl: int, leases: int, share: int
) -> None:
    sent = 1234.5678
    due = due_at(ttl, sent + ttl, leases) - sent
    assert ttl / share - ttl / 64 - 1e-6 <= due <= ttl / share + 1e-6


def test_leases_that_are_due_at_nearly_the_same_instant_share_it() -> None:
    dues = {due_at(10, 10 + number / 1000, 10_000) for number in range(10_000)}
    assert len(dues) <= 65


@pytest.mark.parametrize("ttl", [2, 4, 8, 10, 30, 60])
def test_there_is_room_for_two_silent_members_and_for_an_election(ttl: int) -> None:
    patience = Patience()
    sent = ttl / 4
    for _ in range(2):
        sent += patience.held(ttl, ttl - sent, sent)
    assert ttl - sent >= (ttl / 2 if ttl >= 4 else ttl / 4)
    attempts = 0
    while sent - ttl / 4 < 2.0 and sent < ttl:
        sent += patience.held(ttl, ttl - sent, sent)
        attempts += 1
        assert attempts < 10
    assert ttl - sent >= ttl / 4 or ttl < 8, "an election of two seconds ends in time"


@pytest.mark.parametrize("ttl", [4, 8, 10, 28])
@pytest.mark.parametrize("waited", [1 / 4, 1 / 3])
def test_an_answer_that_takes_a_quarter_of_the_ttl_is_awaited_in_the_end(ttl: int, waited: float) -> None:
    patience = Patience()
    sent = ttl * waited
    while (seconds := patience.held(ttl, ttl - sent, sent)) < ttl / 4:
        sent += seconds
        # Others become due meanwhile, which have more time left: they must not end the stream sooner.
        patience.held(ttl, ttl * (1 - waited), sent)
        assert sent < ttl
    assert sent + seconds < ttl
    assert patience.held(ttl, ttl * (1 - waited), sent) == ttl / 4


def quick(patience: Patience) -> float:
    """Seconds for a lease of 8 s that has just become due."""
    return patience.held(8, 6.0, 100.0)


def test_if_all_answers_are_slow_more_patience_is_learned_and_forgotten() -> None:
    patience = Patience()
    patience.on_answer(0.01)
    patience.on_answer(0.7)
    assert quick(patience) == 0.5, "one says nothing"
    patience.on_answer(0.6)
    assert quick(patience) == 1.2
    patience.on_answer(None)
    assert quick(patience) == 1.2, "others say nothing of the member"
    patience.on_answer(5.0)
    patience.on_answer(5.0)
    assert quick(patience) == 2.0, "a quarter of the TTL is the limit"
    patience.on_answer(0.01)
    assert quick(patience) == 0.5


def test_the_first_answer_of_all_says_what_is_usual() -> None:
    patience = Patience()
    patience.on_answer(0.6)
    assert quick(patience) == 1.2
    patience.on_answer(0.01)
    assert quick(patience) == 0.5


def test_it_has_bounds() -> None:
    assert Patience().held(2, 1.5, 0.0) == 0.25
    assert Patience().held(2, 0.1, 0.0) == 0.25
    assert Patience().held(3600, 2700.0, 0.0) == 7.0
    patience = Patience()
    patience.held(3600, 100.0, 0.0)
    assert patience.held(3600, 900.0, 1000.0) == 7.0
    assert patience.held(2, 0.1, 1000.0) == 0.25


def test_a_caller_waits_twice_as_long_after_each_silent_stream() -> None:
    patience = Patience()
    found = []
    for _ in range(5):
        found.append(patience.single())
        patience.on_silence()
    assert found == [1.0, 2.0, 4.0, 7.0, 7.0]
    patience.on_answer(None)
    assert patience.single() == 1.0

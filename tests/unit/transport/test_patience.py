"""transport/patience.py: it grows with timeouts, once for each wave, and an answer shows how much is enough."""

from etcd_aio.transport.patience import LONGEST, Patience


def exact() -> float:
    return 0.0


def grown(patience: Patience, base: float = 2.0) -> list[float]:
    """The seconds of dials that all time out, until they do not change any more."""
    seconds = [patience.of("a", base, exact)]
    while len(seconds) < 2 or seconds[-1] != seconds[-2]:
        patience.timed_out("a", seconds[-1])
        seconds.append(patience.of("a", base, exact))
    return seconds


def test_it_doubles_with_each_timeout_in_a_row() -> None:
    assert grown(Patience()) == [2.0, 4.0, 8.0, 16.0, LONGEST, LONGEST]
    assert grown(Patience(), 15.0) == [15.0, LONGEST, LONGEST]
    assert grown(Patience(), 30.0) == [30.0, 30.0], "what the user asks for holds"


def test_those_that_give_up_together_count_once() -> None:
    patience = Patience()
    for _ in range(100):
        patience.timed_out("a", 2.0)
    assert patience.of("a", 2.0, exact) == 4.0


def test_each_peer_is_known_for_itself() -> None:
    patience = Patience()
    patience.timed_out("a", 2.0)
    assert patience.of("b", 2.0, exact) == 2.0


def test_only_what_has_grown_is_jittered_so_that_a_wave_falls_apart() -> None:
    patience = Patience()
    assert patience.of("a", 2.0, lambda: 0.9) == 2.0
    patience.timed_out("a", 2.0)
    assert 4.0 < patience.of("a", 2.0, lambda: 0.5) < patience.of("a", 2.0, lambda: 0.9) < 5.0


def test_an_answer_shows_how_much_is_enough() -> None:
    patience = Patience()
    patience.timed_out("a", 8.0)
    patience.answered("a", 3.0)
    assert patience.of("a", 2.0, exact) == 6.0, "a member that is slow stays slow for a while"
    patience.answered("a", 5.0)
    assert patience.of("a", 2.0, exact) == 6.0, "it only shrinks"
    patience.answered("a", 0.01)
    assert patience.of("a", 2.0, exact) == 2.0
    patience.timed_out("a", 8.0)
    patience.answered("a")
    assert patience.of("a", 2.0, exact) == 2.0, "a refusal is an answer"


def test_it_is_bounded() -> None:
    patience = Patience()
    for number in range(10_000):
        patience.timed_out(number, 2.0)
    assert sum(patience.of(number, 2.0, exact) > 2 for number in range(10_000)) <= 1000
    assert patience.of(9_999, 2.0, exact) == 4.0

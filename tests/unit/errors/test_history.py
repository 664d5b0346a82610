"""History: what is kept of the attempts of a call, and how it is noted."""

import pytest

from etcd_aio.errors import Attempt, ConnectError, Delivery, EtcdTimeoutError, StatusCode, with_history


def attempt(number: int, message: str = "gone", delivery: Delivery = Delivery.UNKNOWN) -> Attempt:
    return Attempt(f"m{number}:2379", StatusCode.UNAVAILABLE, delivery, 0.001 * number, message)


def test_history_is_kept_and_noted_oldest_first() -> None:
    error = EtcdTimeoutError()
    attempts = (attempt(1, "gone"), attempt(2, "refused", Delivery.UNSENT))
    assert with_history(error, attempts, maybe_applied=True, seconds=3.0) is error
    assert (error.attempts, error.endpoint, error.seconds) == (attempts, "m2:2379", 3.0)
    assert error.maybe_applied
    assert error.__notes__ == [
        "attempt 1 on m1:2379: no answer after 1 ms: gone (UNAVAILABLE)",
        "attempt 2 on m2:2379: not sent after 2 ms: refused (UNAVAILABLE)",
    ]


def test_history_without_attempts_leaves_the_endpoint_alone() -> None:
    error = ConnectError()
    error.endpoint = "m9:2379"
    with_history(error, (), maybe_applied=False)
    assert error.endpoint == "m9:2379"
    assert not hasattr(error, "__notes__")


def test_attempts_in_a_row_that_ended_alike_share_a_line() -> None:
    answered = Delivery.ANSWERED
    alike = [attempt(1 + number % 3, "etcdserver: no leader", answered) for number in range(18)]
    error = with_history(EtcdTimeoutError(), (*alike, attempt(1), attempt(1)), maybe_applied=False)
    assert error.__notes__ == [
        "attempts 1 to 18 on m1:2379, m2:2379 and m3:2379: "
        "answered after 1 ms to 3 ms: etcdserver: no leader (UNAVAILABLE)",
        "attempts 19 to 20 on m1:2379: no answer after 1 ms: gone (UNAVAILABLE)",
    ]


def test_only_attempts_that_ended_alike_share_a_line() -> None:
    one, two = attempt(1), attempt(1, delivery=Delivery.UNSENT)
    error = with_history(EtcdTimeoutError(), (one, two, one), maybe_applied=False)
    assert [note.split(":")[0] for note in error.__notes__] == [f"attempt {number} on m1" for number in (1, 2, 3)]


@pytest.mark.parametrize(("count", "left_out"), [(10, 0), (11, 1), (25, 15)])
def test_only_the_last_ten_lines_are_noted_and_the_rest_counted(count: int, left_out: int) -> None:
    attempts = tuple(attempt(number, f"message {number}") for number in range(1, count + 1))
    error = with_history(EtcdTimeoutError(), attempts, maybe_applied=False)
    assert error.attempts == attempts
    notes = list(error.__notes__)
    if left_out:
        assert notes.pop(0) == f"({left_out} earlier lines left out)"
    assert [note.split(":")[0] for note in notes] == [
        f"attempt {number} on m{number}" for number in range(left_out + 1, count + 1)
    ]

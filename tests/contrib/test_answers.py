"""contrib/answers.py: a write that is sent again until it is answered."""

import pytest

from etcd_aio.contrib.answers import until_answered
from etcd_aio.errors import (
    CompactedError,
    ConnectionLostError,
    EtcdError,
    EtcdTimeoutError,
    NoAvailableEndpointsError,
    UnavailableError,
)


class Server:
    """Takes all the time that an attempt has, but for those that it answers.

    Args:
        answers: the error of each attempt, in their order; None is an answer.
    """

    def __init__(self, *answers: type[EtcdError] | None) -> None:
        self.answers = [*answers]
        self.now = 0.0
        self.waited: list[float] = []

    def send(self, seconds: float) -> str:
        self.waited.append(seconds)
        error = self.answers.pop(0)
        if error is None:
            return "answer"
        self.now += seconds
        raise error

    def ask(self, seconds: float) -> str:
        return until_answered(self.send, seconds, clock=lambda: self.now)


def test_an_answer_is_returned() -> None:
    server = Server(None)
    assert server.ask(60) == "answer"
    assert server.waited == [2.0]


def test_each_attempt_has_twice_the_time_of_the_one_before() -> None:
    server = Server(EtcdTimeoutError, UnavailableError, EtcdTimeoutError, None)
    assert server.ask(60) == "answer"
    assert server.waited == [2.0, 4.0, 8.0, 16.0]


def test_an_outage_that_is_shorter_is_not_noticed() -> None:
    server = Server(ConnectionLostError, NoAvailableEndpointsError, NoAvailableEndpointsError, None)
    assert server.ask(60) == "answer"


def test_the_last_attempt_has_the_rest_of_the_time() -> None:
    server = Server(*[EtcdTimeoutError] * 3)
    with pytest.raises(EtcdTimeoutError):
        server.ask(10)
    assert server.waited == [2.0, 4.0, 4.0]
    assert server.now == 10


def test_other_errors_are_raised_at_once() -> None:
    server = Server(CompactedError)
    with pytest.raises(CompactedError):
        server.ask(60)
    assert server.waited == [2.0]

"""Alarms that interrupt a blocking call as Ctrl-C does, at a moment that the call itself chooses."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def alarm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An alarm interrupts the call that sets it; that has all the time to end that a slow machine needs."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("etcd_aio.portal.call._INTERRUPTED_SECONDS", 30.0)
    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def set_alarm() -> None:
    """In the call: an alarm that is set before it could come first."""
    signal.setitimer(signal.ITIMER_REAL, 0.05)

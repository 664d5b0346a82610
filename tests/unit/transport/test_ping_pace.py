"""transport/ping_pace.py: an endpoint that complains is pinged less, and no other."""

import logging

import pytest

from etcd_aio.transport.ping_pace import SLOWEST, PingPace
from tests.support.transport import target

COMPLAINT = "the server sent GOAWAY: ENHANCE_YOUR_CALM (too_many_pings)"


def test_each_complaint_doubles_up_to_a_limit() -> None:
    pace = PingPace()
    factors = []
    for _ in range(8):
        factors.append(pace.factor(target(1)))
        pace.went_away(target(1), COMPLAINT)
    assert factors == [1, 2, 4, 8, 16, 32, SLOWEST, SLOWEST]
    assert pace.factor(target(2)) == 1


@pytest.mark.parametrize("reason", ["the server sent GOAWAY: NO_ERROR", "the server sent GOAWAY: ENHANCE_YOUR_CALM"])
def test_other_reasons_change_nothing(reason: str) -> None:
    pace = PingPace()
    pace.went_away(target(1), reason)
    assert pace.factor(target(1)) == 1


def test_it_is_logged_once_for_each_endpoint(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "etcd_aio")
    pace = PingPace()
    for port in (1, 2, 1, 2):
        pace.went_away(target(port), COMPLAINT)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "127.0.0.1:1 " in caplog.messages[0]
    assert "keepalive_time" in caplog.messages[0]

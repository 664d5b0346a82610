"""transport/uploads.py: how long silence proves nothing, in bytes and seconds."""

import pytest

from etcd_aio.transport.uploads import LONGEST, SLOWEST, Uploads


class Request:
    def __init__(self, size: int, unsent: int = 0) -> None:
        self.size = size
        self.unsent = bytes(unsent)


@pytest.fixture
def uploads() -> Uploads:
    return Uploads()


def begin(uploads: Uploads, now: float, size: int, unsent: int = 0) -> Request:
    request = Request(size, unsent)
    uploads.began(request, size, now)
    return request


def test_without_a_large_request_silence_counts_at_once(uploads: Uploads) -> None:
    assert uploads.drained_by(1000.0) <= 1000.0
    uploads.ended(Request(1), 1000.0, 1000.0, is_answered=True)
    assert uploads.drained_by(1000.0) <= 1000.0


def test_what_was_written_has_the_time_of_a_slow_link(uploads: Uploads) -> None:
    begin(uploads, 1000.0, 80_000, unsent=40_000)
    assert uploads.drained_by(990.0) == 1000.0 + 40_000 / SLOWEST
    assert uploads.drained_by(1007.0) == 1007.0 + 40_000 / SLOWEST, "bytes that come show that it goes on"


def test_what_waits_for_a_window_needs_no_time(uploads: Uploads) -> None:
    begin(uploads, 1000.0, 80_000, unsent=80_000)
    assert uploads.drained_by(1000.0) <= 1000.0


def test_several_go_one_behind_the_other(uploads: Uploads) -> None:
    begin(uploads, 1000.0, 40_000)
    begin(uploads, 1001.0, 20_000)
    assert uploads.drained_by(1000.0) == 1001.0 + 60_000 / SLOWEST


def test_an_answer_shows_how_fast_the_link_is(uploads: Uploads) -> None:
    first = begin(uploads, 1000.0, 100_000)
    uploads.ended(first, 1000.01, 1000.01, is_answered=True)
    assert uploads.drained_by(1000.01) <= 1000.01
    begin(uploads, 1001.0, 1_000_000)
    assert uploads.drained_by(1001.0) - 1001.0 == pytest.approx(0.4)


def test_a_link_is_never_slower_than_the_slowest_and_no_wait_is_endless(uploads: Uploads) -> None:
    first = begin(uploads, 1000.0, 20_000)
    uploads.ended(first, 1100.0, 1100.0, is_answered=True)
    begin(uploads, 1200.0, 20_000)
    assert uploads.drained_by(1200.0) == 1200.0 + 20_000 / SLOWEST
    begin(uploads, 1200.0, 50_000_000)
    assert uploads.drained_by(1200.0) == 1200.0 + LONGEST


def test_what_was_abandoned_is_still_on_its_way(uploads: Uploads) -> None:
    request = begin(uploads, 1000.0, 160_000)
    uploads.ended(request, 1003.0, 1002.0, is_answered=False)
    assert uploads.drained_by(1002.0) == 1002.0 + 160_000 / SLOWEST
    later = begin(uploads, 1006.0, 20_000)
    uploads.ended(later, 1007.0, 1007.0, is_answered=True)
    assert uploads.drained_by(1007.0) <= 1007.0, "what came behind it has arrived"

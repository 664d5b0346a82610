"""A peer's text: escaped, and cut between characters."""

import pytest

from etcd_aio.errors import AttemptFailure, Delivery, StatusCode, sanitize
from etcd_aio.errors.text import MAX_MESSAGE_BYTES, shown_seconds


# Characters of one to four bytes, and what is escaped to more than it was.
@pytest.mark.parametrize("char", ["a", "é", "€", "🦊", "\x00", "\x1b", "\u2028", "\U000e0001", "\ud800"])
@pytest.mark.parametrize(
    "length", [0, 1, 400, MAX_MESSAGE_BYTES - 1, MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES + 1, 100_000]
)
def test_a_text_is_cut_to_its_limit_between_characters(char: str, length: int) -> None:
    text = sanitize(char * length)
    assert len(text.encode()) <= MAX_MESSAGE_BYTES
    whole = sanitize(char) * length
    if len(whole.encode()) <= MAX_MESSAGE_BYTES:
        assert text == whole
    else:
        assert text.endswith("... (cut)")
        assert whole.startswith(text.removesuffix("... (cut)"))
        assert len(text.encode()) > MAX_MESSAGE_BYTES - 4  # no more is lost than a part of one character


def test_an_attempt_failure_carries_no_raw_text() -> None:
    failure = AttemptFailure(StatusCode.UNKNOWN, "one\r\ntwo\x1b[2J" + "x" * 10_000, Delivery.ANSWERED)
    assert failure.message.startswith("one\\r\\ntwo\\x1b[2J")
    assert str(failure).isprintable()
    assert len(failure.message.encode()) <= MAX_MESSAGE_BYTES


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0 ms"), (0.0034, "3 ms"), (0.25, "0.25 s"), (1.9999999, "2 s"), (4.34, "4.3 s"), (75.2, "75 s")],
)
def test_a_duration_is_short(seconds: float, shown: str) -> None:
    assert shown_seconds(seconds) == shown

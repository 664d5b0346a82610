"""Retry hints: four, each explained."""

from etcd_aio.errors import RetryHint


def test_there_are_four_hints() -> None:
    assert [hint.name for hint in RetryHint] == [
        "RAISE",
        "REFRESH_TOKEN",
        "RETRY_ELSEWHERE",
        "RETRY_IF_REPEATABLE",
    ]

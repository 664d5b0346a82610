"""Remedy: four words, each explained."""

from etcd_aio.errors import Remedy


def test_there_are_four_words() -> None:
    assert [remedy.name for remedy in Remedy] == ["RAISE", "REFRESH_TOKEN", "RETRY_ELSEWHERE", "RETRY_IF_REPEATABLE"]

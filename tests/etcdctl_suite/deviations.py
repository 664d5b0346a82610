"""Tests that etcdctl passes and etcd-aio does not, each with the reason; at most ten."""

from typing import Final

KNOWN: Final[dict[str, dict[str, str]]] = {"3.7": {}, "3.6": {}, "3.5": {}}
"""The reason by minor version and test."""


def known(release: str) -> dict[str, str]:
    """The reasons for a minor version, by test."""
    return KNOWN[release]

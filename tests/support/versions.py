"""Which etcd a test runs on: what an older one lacks is skipped, and the reason names the release that has it.

Knows: the binary that tests get unless they ask for another. Never knows: why a test needs it; that it says itself.
"""

import pytest

from etcd_aio.testing import EtcdNotFoundError, find_etcd
from etcd_aio.testing.binaries import version_numbers


def is_at_least(version: str) -> bool:
    """Whether the etcd that tests get is of `version` or newer."""
    wanted = version_numbers(version if version.count(".") == 2 else f"{version}.0")
    return find_etcd().version_info >= wanted


def need(version: str, why: str) -> None:
    """Skip the test on an etcd older than `version`."""
    if not is_at_least(version):
        pytest.skip(f"needs etcd {version}, and this is {find_etcd().version}: {why}")


def need_beside(*versions: str) -> None:
    """Skip the test, which chooses its servers itself, where one of them is not found."""
    for version in versions:
        try:
            find_etcd(version)
        except EtcdNotFoundError:
            pytest.skip(f"needs etcd {version}, which is not on this machine: see `nox -s servers`")

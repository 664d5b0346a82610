"""The etcd that tests run on: a test that needs a newer one is skipped, and the reason names the needed release."""

import pytest

from etcd_aio.testing import EtcdNotFoundError, find_etcd
from etcd_aio.testing.binaries import version_numbers


def is_at_least(*versions: str) -> bool:
    """Whether the etcd that tests get has what came with these releases, one of each minor version that got it."""
    found = find_etcd().version_info
    wanted = [version_numbers(one if one.count(".") == 2 else f"{one}.0") for one in versions]
    return any(found >= one for one in wanted if one[:2] == found[:2]) or found[:2] > max(wanted)[:2]


def need(*versions: str, why: str) -> None:
    """Skip the test on an etcd that is older: see `is_at_least`."""
    if not is_at_least(*versions):
        pytest.skip(f"needs etcd {' or '.join(versions)}, and this is {find_etcd().version}: {why}")


def need_beside(*versions: str) -> None:
    """Skip the test, which chooses its servers itself, where one of them is not found."""
    for version in versions:
        try:
            find_etcd(version)
        except EtcdNotFoundError:
            pytest.skip(f"needs etcd {version}, which is not on this machine: see `nox -s servers`")


def skip_on(version: str, *, why: str) -> None:
    """Skip the test on one release, which has a defect that older and newer ones do not have."""
    if find_etcd().version == version:
        pytest.skip(f"etcd {version}: {why}")

"""Large reads beside a watch and a lease on one client, over TLS, beside the same in Go (etcd-io/etcd#15402)."""

from pathlib import Path

import pytest

from benchmarks.big_reads import READERS, both, make_authority, server_of
from tests.support.versions import need_beside

pytestmark = [pytest.mark.anyio, pytest.mark.nightly]

SECONDS = 15.0  # three times the TTL of the lease
TIMES = 10  # how much longer than in Go an event may take, besides the second below
SLACK = 1.0  # seconds


@pytest.mark.parametrize("version", ["3.4.25", "3.5.35", "3.7.3"])
async def test_a_watch_and_a_lease_go_on_beside_large_reads(version: str, tmp_path: Path) -> None:
    need_beside(version)
    authority = make_authority(tmp_path)
    async with server_of(version, authority) as server:
        ours, go = await both(server, authority.ca, SECONDS)
    assert ours.reads >= READERS, "there was no load"
    assert (ours.seen, len(ours.latencies)) == (ours.puts, ours.puts), "events were lost"
    assert ours.lives, "the lease of 5 seconds was not renewed"
    if go is None:
        pytest.skip("the Go client cannot be built here: nothing was compared")
    assert ours.part(0.99) <= TIMES * go.part(0.99) + SLACK

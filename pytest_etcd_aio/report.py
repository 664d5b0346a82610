"""What a run and a failed test report about etcd."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from etcd_aio import Client
from etcd_aio.observing import StreamStatistics
from pytest_etcd_aio.cluster import Cluster
from pytest_etcd_aio.fakes import default_release
from pytest_etcd_aio.options import read_options
from pytest_etcd_aio.runner import LOOP
from pytest_etcd_aio.server import Server
from pytest_etcd_aio.wanted import Wanted

if TYPE_CHECKING:
    from pytest_etcd_aio.pool import Pool

_LINES: Final = 12  # of the log of each server


def header(config: pytest.Config, *, has_servers: bool, has_fakes: bool) -> str:
    """The etcd that tests use: `etcd: 3.6.16 (PATH), fake 3.7`."""
    from pytest_etcd_aio.pool import Pool

    options = read_options(config)
    parts = [Pool(options).describe()] if has_servers else []
    if has_fakes:
        parts.append(f"fake {default_release(options.version)}")
    return f"etcd: {', '.join(parts)}"


def sections(item: pytest.Item, pool: "Pool | None") -> Iterator[tuple[str, str]]:
    """The sections of the report of a test that failed: the logs of its servers, and what its clients saw."""
    values: dict[str, object] = getattr(item, "funcargs", {})
    servers = [value for value in values.values() if isinstance(value, Server | Cluster)]
    wanted = values.get("_etcd_wanted")
    if pool is not None and isinstance(wanted, Wanted):
        servers += [each for each in pool.running(wanted) if each not in servers]
    if pool is not None and servers:
        pool.has_failures = True
    for member in (member for server in servers for member in (*getattr(server, "members", ()), server)):
        if isinstance(member, Server):
            state = "paused" if member.is_paused else "running" if member.is_running else "ended"
            yield f"etcd server {member.name}: {member.endpoint}, {state}", member.log_tail(_LINES)
            if pool is not None and pool.keeps_data:
                yield f"etcd data of {member.name}", str(member.data_dir)
    loop = item.stash.get(LOOP, None)
    for name, value in values.items():
        if isinstance(value, Client):
            lines = [repr(value), *map(str, value.statistics())]
            if loop is not None and not loop.is_closed:
                lines += map(str, loop.run(_streams(value)))
            yield f"etcd client {name}", "\n".join(lines)


async def _streams(client: Client) -> tuple[StreamStatistics, ...]:
    """What a client says about its streams, which it counts in seconds of the loop that runs."""
    return client.streams()

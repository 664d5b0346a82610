"""cli/health.py: the verb health: one line, one exit code, and the reasons by endpoint."""

import asyncio
import json

import pytest

from etcd_aio.cli.outcome import ExitCode
from etcd_aio.fake import FakeEtcd
from tests.support.command_here import CommandLine

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]


async def test_every_endpoint_counts_or_the_quorum(fake: FakeEtcd, command: CommandLine) -> None:
    assert await command("health") == ExitCode.OK
    assert command.out == b"healthy: 3 of 3 endpoints\n"
    fake.members[0].stop()
    assert await command("health") == ExitCode.INTERRUPTED
    assert command.out == b"unhealthy: 2 of 3 endpoints\n"
    (reason,) = command.err.splitlines()
    assert reason.startswith(fake.endpoints[0])
    assert await command("health", "--quorum", "-w", "json") == ExitCode.OK
    found = json.loads(command.out)
    assert found["healthy"] is True
    assert [row["health"] for row in found["endpoints"]] == [False, True, True]
    fake.members[1].stop()
    assert await command("health", "--quorum", "--cluster") == ExitCode.INTERRUPTED
    assert len(command.err.splitlines()) == 3


async def test_waiting_ends_as_soon_as_the_cluster_is_healthy_or_at_the_limit(
    fake: FakeEtcd, command: CommandLine
) -> None:
    fake.members[0].stop()
    fake.members[1].stop()
    loop = asyncio.get_running_loop()
    loop.call_later(5, fake.members[0].start)
    began = loop.time()
    assert await command("health", "--wait=60s", "--quorum") == ExitCode.OK
    assert 5 <= loop.time() - began < 20
    began = loop.time()
    assert await command("health", "--wait=5s") == ExitCode.INTERRUPTED
    assert 5 <= loop.time() - began < 20
    assert command.out == b"unhealthy: 2 of 3 endpoints\n"

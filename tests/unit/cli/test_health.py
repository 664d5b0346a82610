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


async def test_what_members_say_of_themselves_is_shown_too(fake: FakeEtcd, command: CommandLine) -> None:
    first, second, third = fake.endpoints
    async with fake.client() as client:
        await client.maintenance.raise_alarm("corrupt", fake.members[0].id)
    assert await command("endpoint", "health", "--verbose") == ExitCode.ERROR
    assert command.out.decode().splitlines()[:7] == [
        f"{first} livez ok",
        "  [+]serializable_read ok",
        f"{first} readyz failed: data_corruption",
        "  [-]data_corruption failed: alarm activated: CORRUPT",
        "  [+]linearizable_read ok",
        "  [+]non_learner ok",
        "  [+]serializable_read ok",
    ]
    assert await command("health", "--verbose", "-w", "json") == ExitCode.INTERRUPTED
    row = json.loads(command.out)["endpoints"][0]
    assert row["livez"] == {
        "path": "/livez",
        "ok": True,
        "checks": [{"name": "serializable_read", "ok": True, "reason": ""}],
    }
    assert row["readyz"]["checks"][0]["reason"] == "alarm activated: CORRUPT"
    async with fake.client() as client:
        await client.maintenance.disarm()
    fake.members[2].stop()
    assert await command("health", "--verbose") == ExitCode.INTERRUPTED
    lines = command.out.decode().splitlines()
    assert lines[0] == "unhealthy: 2 of 3 endpoints"
    assert f"{second} readyz ok" in lines
    assert any(line.startswith(f"{third} readyz unknown: ") for line in lines)
    assert await command("endpoint", "health", "--verbose", "-w", "table") == ExitCode.ERROR
    assert "READYZ" in command.out.decode()
    assert await command("endpoint", "health", "--verbose", "-w", "fields") == ExitCode.ERROR
    assert '"Readyz" : ok\n' in command.out.decode()
    assert await command("endpoint", "health", "-w", "json") == ExitCode.ERROR
    assert "readyz" not in command.out.decode()


async def test_an_older_release_has_one_word(command: CommandLine) -> None:
    async with FakeEtcd("3.4") as old:
        assert await command("endpoint", "health", "--verbose", fake=old) == ExitCode.OK
    assert command.out.decode().splitlines()[1:] == [
        f"{old.endpoints[0]} livez ok (by /health: this release has no /livez)",
        "  [+]health ok",
        f"{old.endpoints[0]} readyz ok (by /health: this release has no /readyz)",
        "  [+]health ok",
    ]

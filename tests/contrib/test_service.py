"""The example service on three real members: reads while members die and freeze, readiness, one job, live settings."""

import asyncio
import contextlib
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from etcd_aio import Client
from etcd_aio.testing import EtcdCluster
from etcd_aio.testing.ports import free_ports
from tests.examples.paths import ROOT
from tests.support.servers import QUICK_ELECTIONS
from tests.support.until import PATIENCE, until

sys.path.append(str(ROOT / "examples"))
from service.instances import Instance

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]

PREFIX = "example/service/"


class Service:
    """Instances of the service, and a client of each over HTTP.

    Attributes:
        cluster: the members of etcd.
        instances: the instances.
        client: a client of etcd.
    """

    def __init__(self, cluster: EtcdCluster, instances: list[Instance], client: Client) -> None:
        self.cluster = cluster
        self.instances = instances
        self.client = client
        self.http = httpx.AsyncClient(timeout=30)

    async def get(self, instance: Instance, path: str) -> httpx.Response:
        return await self.http.get(instance.url + path)

    async def json(self, instance: Instance, path: str) -> Any:
        answer = await self.get(instance, path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def until_json(self, instance: Instance, path: str, expected: object) -> None:
        """Wait until this is the answer."""
        async with asyncio.timeout(PATIENCE):
            while await self.json(instance, path) != expected:  # noqa: ASYNC110 # nothing signals it
                await asyncio.sleep(0)

    async def until_ready(self, *, ready: bool = True) -> None:
        """Wait until all instances say so."""
        async with asyncio.timeout(PATIENCE):
            for instance in self.instances:
                while True:
                    with contextlib.suppress(httpx.TransportError):  # it is starting
                        if (await self.get(instance, "/readyz")).status_code == (200 if ready else 503):
                            break
                    await asyncio.sleep(0.05)


@pytest.fixture
async def service(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    """The service. Elections are etcd's own, unless they are the subject: a busy machine causes none of those."""
    async with EtcdCluster(size=3, **getattr(request, "param", {})) as cluster, contextlib.AsyncExitStack() as stack:
        await cluster.wait_healthy()
        client = await stack.enter_async_context(Client(cluster.endpoints))
        ports = free_ports(2)
        instances = [stack.enter_context(Instance(port, cluster.endpoints, tmp_path / f"{port}.log")) for port in ports]
        service = Service(cluster, instances, client)
        await stack.enter_async_context(service.http)
        await service.until_ready()
        yield service
    for instance in instances:
        log = (tmp_path / f"{instance.address.split(':')[1]}.log").read_text()
        assert "Traceback" not in log, log
        assert "Application shutdown complete" in log


@pytest.mark.parametrize("service", [pytest.param(QUICK_ELECTIONS, id="quick elections")], indirect=True)
@pytest.mark.nightly  # `nox -s service -- test` has it too
async def test_the_service_lives_through_failures_of_members(service: Service, record_property: Any) -> None:
    first, second = service.instances
    await service.until_json(first, "/peers", sorted([first.address, second.address]))
    assert (await service.json(first, "/notes/first"))["text"] == "written by the first instance"
    assert (await service.http.put(f"{first.url}/notes/a", json={"text": "b"})).status_code == 204
    assert (await service.json(second, "/notes/a"))["text"] == "b"

    # Reads of notes, all the time, while members are killed and frozen one after the other.
    reads: list[float] = []
    failed: list[object] = []
    stops = asyncio.Event()

    async def read(instance: Instance) -> None:
        while not stops.is_set():
            began = time.monotonic()
            try:
                answer = await service.get(instance, "/notes/a")
                if answer.status_code != 200 or answer.json() != {"text": "b"}:
                    failed.append((answer.status_code, answer.text))
            except httpx.HTTPError as error:
                failed.append(error)
            reads.append(time.monotonic() - began)
            await asyncio.sleep(0.01)

    async def some_reads(count: int = 30) -> None:
        wanted = len(reads) + count
        await until(lambda: len(reads) >= wanted, tasks)

    reported: list[tuple[int, str]] = []

    async def follow_reports() -> None:
        async with service.client.watch(f"{PREFIX}report", start_revision=1) as watcher:
            async for event in watcher:
                content = httpx.Response(200, content=event.value).json()
                reported.append((content["token"], content["by"]))

    tasks = [asyncio.create_task(read(instance)) for instance in service.instances for _ in range(2)]
    following = asyncio.create_task(follow_reports())
    async with asyncio.timeout(PATIENCE):
        await some_reads()
        leader = await service.cluster.leader()
        await leader.kill()
        await some_reads()
        await service.cluster.leader(other_than=leader)
        await some_reads()
        await leader.restart()
        await service.cluster.wait_healthy()
        for frozen in service.cluster.members[:2]:
            frozen.pause()
            await some_reads()
            frozen.resume()
            await service.cluster.wait_healthy()
        before = len(reported)
        await until(lambda: len(reported) > before, [following])  # the job goes on
    stops.set()
    await asyncio.gather(*tasks)
    assert not failed
    record_property("reads", (len(reads), max(reads)))

    # Two of three members are frozen: no quorum. The service is alive, and not ready.
    for member in service.cluster.members[:2]:
        member.pause()
    await service.until_ready(ready=False)
    for instance in service.instances:
        assert (await service.get(instance, "/livez")).status_code == 200
        assert (await service.json(instance, "/"))["greeting"] == "Hello"  # from memory
        assert first.address not in (await service.get(instance, "/readyz")).text
    for member in service.cluster.members[:2]:
        member.resume()
    await service.until_ready()

    # The instance of the job is killed: the other one takes over when the lease ends; and when it stops, at once.
    leading, other = (first, second) if reported[-1][1] == first.address else (second, first)
    leading.kill()
    await until(lambda: reported[-1][1] == other.address, [following])
    leading.start()
    await service.until_ready()
    other.send(signal.SIGTERM)
    await until(lambda: reported[-1][1] == leading.address, [following])
    other.stop()
    other.start()
    await service.until_ready()
    following.cancel()
    await asyncio.wait([following])
    assert [token for token, _ in reported] == sorted(token for token, _ in reported)  # never an old leader again
    assert all(len({by for token, by in reported if token == one}) == 1 for one, _ in reported)


async def test_settings_are_seen_at_once(service: Service, record_property: Any) -> None:
    first = service.instances[0]
    seconds: list[float] = []
    for number in range(20):
        text = f"greeting {number}"
        await service.client.put(f"{PREFIX}config/greeting", text)
        began = time.monotonic()
        await service.until_json(first, "/", {"greeting": text, "from": first.address})
        seconds.append(time.monotonic() - began)
    record_property("settings_seen", (statistics.median(seconds), max(seconds)))
    sys.stderr.write(
        f"settings seen after {statistics.median(seconds) * 1000:.1f} ms, at most {max(seconds) * 1000:.1f}\n"
    )
    await service.client.put(f"{PREFIX}config/limits/note_characters", "-1")  # invalid: the last good ones stay
    await service.client.put(f"{PREFIX}config/greeting", "not seen")
    assert (await service.json(first, "/"))["greeting"] == "greeting 19"
    await service.client.put(f"{PREFIX}config/limits/note_characters", "3")
    await service.until_json(first, "/", {"greeting": "not seen", "from": first.address})
    assert (await service.http.put(f"{first.url}/notes/a", json={"text": "long"})).status_code == 422

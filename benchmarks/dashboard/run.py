"""A run for the dashboard: clients at work on three real members while one is killed and one is frozen, and Prometheus.

Prometheus scrapes this process each second, and evaluates the queries of the panels afterwards.
"""

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

from benchmarks.dashboard.panels import Panel
from etcd_aio import Client, EtcdError
from etcd_aio.contrib.prometheus import instrument
from etcd_aio.testing import EtcdCluster
from etcd_aio.testing.ports import free_ports

_BEFORE: Final = 30.0  # seconds of quiet before each fault, and after the last
_FAULT: Final = 25.0  # seconds of each fault
_STEP: Final = 1  # seconds between two scrapes, and two points
_RATE_INTERVAL: Final = "5s"  # of Grafana: four scrapes and the step
_PACE: Final = 0.05  # seconds between the calls of a worker

_CONFIG: Final = """
global: {{scrape_interval: {step}s}}
scrape_configs:
  - job_name: demo
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a panel: its name, and its points as seconds since the beginning and values."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: what happened, and when it began and ended, in seconds since the beginning."""

    name: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Run:
    """What a run has found: the lines of each panel, in their order.

    Attributes:
        server: the release of etcd.
        prometheus: the release of Prometheus.
        seconds: how long it took.
        faults: what was done to the members.
        panels: the lines of each panel.
    """

    server: str
    prometheus: str
    seconds: float
    faults: tuple[Fault, ...]
    panels: tuple[tuple[Series, ...], ...]


async def measure(panels: Sequence[Panel], prometheus: str) -> Run:
    """Make a run. It takes three minutes.

    Args:
        panels: whose queries are evaluated.
        prometheus: the program.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    observers = [instrument(registry, handling_seconds=True)]
    exporter_port, port = free_ports(2)
    server, thread = start_http_server(exporter_port, "127.0.0.1", registry)
    async with EtcdCluster(3, start_timeout=120) as cluster, _prometheus(prometheus, port, exporter_port) as release:
        async with (
            Client(cluster.endpoints, observers=observers, name="orders") as orders,
            Client(cluster.endpoints, observers=observers, name="stock") as stock,
        ):
            workers = [asyncio.create_task(_work(orders, f"orders/{number}")) for number in range(4)]
            workers += [asyncio.create_task(_follow(stock)), asyncio.create_task(_work(stock, "stock/0"))]
            began = time.time()
            faults = await _faults(cluster, began)
            ended = time.time()
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
        found = [
            tuple(
                [
                    series
                    for query in panel.queries
                    for series in await _evaluate(port, query.filled(_RATE_INTERVAL), query.name_of, began, ended)
                ]
            )
            for panel in panels
        ]
        version = cluster.members[0].version
    server.shutdown()
    thread.join()
    return Run(version, release, ended - began, faults, tuple(found))


async def _faults(cluster: EtcdCluster, began: float) -> tuple[Fault, ...]:
    found = []
    await asyncio.sleep(_BEFORE)
    leader = await cluster.leader()
    at = time.time() - began
    await leader.kill()
    await asyncio.sleep(_FAULT)
    await leader.restart()
    found.append(Fault("the leader is killed", at, time.time() - began))
    await asyncio.sleep(_BEFORE)
    follower = (await cluster.followers())[0]
    at = time.time() - began
    follower.pause()
    await asyncio.sleep(_FAULT)
    follower.resume()
    found.append(Fault("a follower is frozen", at, time.time() - began))
    await asyncio.sleep(_BEFORE)
    return tuple(found)


async def _work(client: Client, key: str) -> None:
    """Put and get, twenty calls in a second."""
    number = 0
    while True:
        with suppress(EtcdError):
            await (client.get(key) if number % 4 else client.put(key, str(number)))
        number += 1
        await asyncio.sleep(_PACE)


async def _follow(client: Client) -> None:
    """Watch what the others put, and hold a lease. A lease that is lost is followed by another."""
    while True:
        with suppress(EtcdError):
            async with client.lease(10, on_lost="signal"), client.watch(prefix="orders/") as watcher:
                async for _ in watcher:
                    pass


@asynccontextmanager
async def _prometheus(program: str, port: int, exporter_port: int) -> AsyncIterator[str]:
    """Run Prometheus; yields its release."""
    directory = Path(tempfile.mkdtemp(prefix="etcd_aio-dashboard-"))
    config = directory / "prometheus.yml"
    config.write_text(_CONFIG.format(step=_STEP, port=exporter_port))
    process = await asyncio.create_subprocess_exec(
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(60):
            while True:
                with suppress(OSError):
                    build = await _ask(port, "status/buildinfo")
                    break
                await asyncio.sleep(0.2)
        yield str(build["version"])
    finally:
        process.terminate()
        await process.wait()
        shutil.rmtree(directory, ignore_errors=True)


async def _evaluate(
    port: int, expression: str, name_of: Callable[[dict[str, str]], str], began: float, ended: float
) -> list[Series]:
    asked = urlencode({"query": expression, "start": began, "end": ended, "step": _STEP})
    data = await _ask(port, f"query_range?{asked}")
    found = []
    for one in data["result"]:
        points = tuple((float(at) - began, float(value)) for at, value in one["values"] if value != "NaN")
        found.append(Series(name_of(one["metric"]), points))
    return sorted(found, key=lambda series: series.name)


async def _ask(port: int, path: str) -> dict[str, Any]:
    def read() -> dict[str, Any]:
        with urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=10) as reply:
            data: dict[str, Any] = json.load(reply)["data"]
            return data

    return await asyncio.to_thread(read)

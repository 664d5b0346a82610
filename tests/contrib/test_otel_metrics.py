"""contrib/otel/observer.py, contrib/otel/instruments.py, contrib/otel/addresses.py, contrib/clients.py: metrics for
OpenTelemetry: durations with the advised buckets, own counters, and gauges read when collected.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from etcd_aio.contrib.otel import OtelObserver, semconv
from etcd_aio.contrib.otel.addresses import address_of
from etcd_aio.errors import PermissionDeniedError
from etcd_aio.fake import FakeEtcd
from tests.contrib.spans import Traced
from tests.support.until import until

pytestmark = pytest.mark.anyio


def by_status(points: list[tuple[Mapping[str, Any], Any]]) -> dict[tuple[str, str], Any]:
    """The values by method and status; of all endpoints together."""
    found: dict[tuple[str, str], Any] = {}
    for attributes, value in points:
        key = attributes["rpc.method"].rpartition("/")[2], attributes["rpc.response.status_code"]
        found[key] = found.get(key, 0) + value
    return found


async def test_calls_are_counted_with_their_attempts() -> None:
    traced = Traced()
    async with FakeEtcd(members=3) as fake, fake.client(observers=[traced.observer]) as client:
        with fake.fault("KV/Range", status="UNAVAILABLE", times=2):
            await client.get("a")
        await client.put("a", "1")
        with fake.fault("KV/Put", status="PERMISSION_DENIED"), pytest.raises(PermissionDeniedError):
            await client.put("a", "1")
    metrics = traced.metrics()
    calls = {("Range", "OK"): 1, ("Put", "OK"): 1, ("Put", "PERMISSION_DENIED"): 1}
    assert by_status(metrics["rpc.client.call.duration"]) == calls
    assert by_status(metrics["etcd_aio.client.attempts"]) == {**calls, ("Range", "OK"): 3}
    assert by_status(metrics["etcd_aio.client.retries"]) == {("Range", "OK"): 2}
    errors = [attributes.get("error.type") for attributes, _ in metrics["rpc.client.call.duration"]]
    assert sorted(filter(None, errors)) == ["PERMISSION_DENIED"]


async def test_durations_have_the_advised_buckets() -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        await client.get("a")
    data = traced.reader.get_metrics_data()
    assert data is not None
    (found,) = [
        metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "rpc.client.call.duration"
    ]
    assert found.unit == "s"
    (point,) = found.data.data_points
    bounds: Any = point
    assert tuple(bounds.explicit_bounds) == semconv.DURATION_BUCKETS


async def test_watches_streams_and_endpoints() -> None:
    traced = Traced()
    async with FakeEtcd(members=3) as fake, fake.client(observers=[traced.observer]) as client:
        await until(lambda: all(one.state.name == "READY" for one in client.statistics()))
        async with client.watch("a") as watcher:
            await client.put("a", "1")
            await anext(watcher)
            metrics = await asyncio.to_thread(traced.metrics)  # as exporters do
            assert metrics["etcd_aio.client.watch.events"] == [({}, 1)]
            watch = {"rpc.method": "etcdserverpb.Watch/Watch", "etcd_aio.stream.state": "open"}
            assert metrics["etcd_aio.client.streams"] == [(watch, 1)]
            up = [(address_of(endpoint), 1) for endpoint in client.endpoints]
            assert metrics["etcd_aio.client.endpoint.up"] == up
            assert len(metrics["etcd_aio.client.endpoint.latency"]) == 3
            (stream,) = client.streams()
            next(one for one in fake.members if one.endpoint == stream.endpoint).stop()
            await until(lambda: "etcd_aio.client.stream.moves" in traced.metrics())
    assert "etcd_aio.client.endpoint.up" not in traced.metrics(), "a closed client has no endpoints"


async def test_keys_and_leases_make_no_series() -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:

        async def work(first: int, last: int) -> int:
            for number in range(first, last):
                await client.put(f"key{number}", "v")
                async with client.lease(60 + number):
                    pass
            return sum(len(points) for points in traced.metrics().values())

        once = await work(0, 1)
        assert await work(1, 100) == once


@pytest.mark.parametrize(
    ("endpoint", "address", "port"),
    [
        ("m1:2379", "m1", 2379),
        ("https://m1.example.com:1", "m1.example.com", 1),
        ("[::1]:2379", "::1", 2379),
        ("http://[fe80::1]:2379", "fe80::1", 2379),
        ("unix:/run/etcd.sock", "/run/etcd.sock", None),
        ("unixs:///run/etcd.sock", "/run/etcd.sock", None),
    ],
)
def test_an_endpoint_is_an_address_and_a_port(endpoint: str, address: str, port: int | None) -> None:
    port_of = {} if port is None else {"server.port": port}
    assert address_of(endpoint) == {"server.address": address, **port_of}


def test_no_endpoint_is_no_address() -> None:
    assert address_of("") == {}


async def test_observers_of_one_provider_share_its_gauges() -> None:
    traced = Traced()
    second = OtelObserver(traced.provider, traced.meters)
    up = "etcd_aio.client.endpoint.up"
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer], name="one") as one:
        await one.get("a")
        async with fake.client(observers=[second, traced.observer], name="two") as two:
            await two.get("a")
            names = [attributes[semconv.CLIENT_NAME] for attributes, _ in traced.metrics()[up]]
            assert names == ["one", "two"]
            second.turn_off()
            assert [attributes[semconv.CLIENT_NAME] for attributes, _ in traced.metrics()[up]] == names
            traced.observer.turn_off()
            assert up not in traced.metrics(), "an observer that is off measures nothing"


async def test_providers_have_the_gauges_of_their_own_observers() -> None:
    traced, other = Traced(), Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        await client.get("a")
        assert "etcd_aio.client.endpoint.up" in traced.metrics()
        assert "etcd_aio.client.endpoint.up" not in other.metrics()

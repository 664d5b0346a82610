"""contrib/prometheus.py, contrib/clients.py: Go's names, an attempt counts, gauges are read when collected."""

import asyncio
import gc
import os
import threading
from collections.abc import Mapping
from contextlib import aclosing, suppress

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from etcd_aio.contrib.prometheus import instrument
from etcd_aio.errors import AuthenticationFailedError, PermissionDeniedError
from etcd_aio.fake import FakeEtcd
from tests.support.until import until

pytestmark = pytest.mark.anyio


class Metrics:
    """A registry, and its values by name and labels."""

    def __init__(self, *, handling_seconds: bool = False) -> None:
        self.registry = CollectorRegistry()
        self.observer = instrument(self.registry, handling_seconds=handling_seconds)

    def values(self) -> Mapping[str, float]:
        """The series, as Prometheus reads them."""
        lines = generate_latest(self.registry).decode().splitlines()
        found = [line.rsplit(" ", 1) for line in lines if line and not line.startswith("#")]
        return {name: float(value) for name, value in found}

    def named(self, name: str) -> Mapping[str, float]:
        """The series of one metric, by their labels."""
        values = self.values().items()
        return {key.removeprefix(name): value for key, value in values if key == name or key.startswith(f"{name}{{")}


def rpc(name: str, kind: str = "unary", **labels: str) -> str:
    service, _, method = name.partition("/")
    found = {"grpc_method": method, "grpc_service": f"etcdserverpb.{service}", "grpc_type": kind, **labels}
    return "{" + ",".join(f'{key}="{found[key]}"' for key in sorted(found)) + "}"


async def test_calls_have_the_names_and_labels_of_go() -> None:
    metrics = Metrics()
    async with FakeEtcd() as fake, fake.client(observers=[metrics.observer]) as client:
        await client.put("a", "1")
        await client.put("b", "1")
        await client.get("a")
        with fake.fault("KV/Range", status="PERMISSION_DENIED", times=1), pytest.raises(PermissionDeniedError):
            await client.get("a")
    put, read = rpc("KV/Put"), rpc("KV/Range")
    assert metrics.named("grpc_client_started_total") == {put: 2, read: 2}
    assert metrics.named("grpc_client_msg_sent_total") == {put: 2, read: 2}
    assert metrics.named("grpc_client_msg_received_total") == {put: 2, read: 1}
    assert metrics.named("grpc_client_handled_total") == {
        rpc("KV/Put", grpc_code="OK"): 2,
        rpc("KV/Range", grpc_code="OK"): 1,
        rpc("KV/Range", grpc_code="PermissionDenied"): 1,
    }
    assert not [name for name in metrics.values() if "_created" in name]
    assert not [name for name in metrics.values() if "handling_seconds" in name]


async def test_each_attempt_counts_and_a_retry_has_its_reason() -> None:
    metrics = Metrics()
    async with FakeEtcd(members=3) as fake, fake.client(observers=[metrics.observer]) as client:
        with fake.fault("KV/Range", status="UNAVAILABLE", times=2):
            await client.get("a")
    assert metrics.named("grpc_client_started_total") == {rpc("KV/Range"): 3}
    assert metrics.named("grpc_client_handled_total") == {
        rpc("KV/Range", grpc_code="Unavailable"): 2,
        rpc("KV/Range", grpc_code="OK"): 1,
    }
    assert metrics.named("etcd_aio_retries_total") == {'{reason="Unavailable"}': 2}
    assert sum(metrics.named("etcd_aio_attempts_total").values()) == 3


async def test_a_hedged_read_has_two_attempts_of_which_one_is_cancelled() -> None:
    metrics = Metrics()
    async with FakeEtcd(members=2) as fake, fake.client(observers=[metrics.observer], hedge_after=0.01) as client:
        await until(lambda: [one.state.name for one in client.statistics()] == ["READY", "READY"])
        with fake.fault("KV/Range", hang=True, times=1):
            await client.get("a")
    assert metrics.named("grpc_client_handled_total") == {
        rpc("KV/Range", grpc_code="Canceled"): 1,
        rpc("KV/Range", grpc_code="OK"): 1,
    }
    assert metrics.named("etcd_aio_retries_total") == {'{reason="hedge"}': 1}


async def test_a_streamed_reply_is_one_rpc_whose_messages_count() -> None:
    metrics = Metrics()
    async with (
        FakeEtcd() as fake,
        fake.client(observers=[metrics.observer]) as client,
        aclosing(client.maintenance.snapshot()) as chunks,
    ):
        number = len([chunk async for chunk in chunks])
    assert number
    snapshot = rpc("Maintenance/Snapshot", "server_stream")
    assert metrics.named("grpc_client_started_total")[snapshot] == 1
    assert metrics.named("grpc_client_handled_total") == {
        rpc("Maintenance/Snapshot", "server_stream", grpc_code="OK"): 1
    }
    assert metrics.named("grpc_client_msg_received_total")[snapshot] >= number


async def test_durations_are_observed_on_request() -> None:
    metrics = Metrics(handling_seconds=True)
    async with FakeEtcd() as fake, fake.client(observers=[metrics.observer]) as client:
        await client.get("a")
    assert metrics.named("grpc_client_handling_seconds_count") == {rpc("KV/Range"): 1}


async def test_closed_clients_leave_no_gauges() -> None:
    """An alert on a revision that does not move would last for ever. Another open client of the name keeps it."""
    metrics = Metrics()
    gauges = ("etcd_aio_watch_revision", "etcd_aio_lease_remaining_seconds_min", "etcd_aio_endpoint_up")
    label = '{client="job"}'
    async with FakeEtcd() as fake, fake.client(name="job", observers=[metrics.observer]):
        async with fake.client(name="job", observers=[metrics.observer]) as client, client.watch("a") as watcher:
            lease = await client.leases.grant(600)
            await client.put("a", "1", lease=lease.id)
            await anext(watcher)
            async with client.lease(60) as kept:
                kept.orphan()
            async with client.lock("l"):
                assert label in metrics.named(gauges[1])
        assert label in metrics.named(gauges[0])
    assert [metrics.named(name) for name in gauges] == [{}, {}, {}]


async def test_gauges_are_read_when_they_are_collected() -> None:
    metrics = Metrics()
    async with FakeEtcd(members=2) as fake, fake.client(observers=[metrics.observer]) as client:
        await until(lambda: [one.state.name for one in client.statistics()] == ["READY", "READY"])
        one, two = (f'{{endpoint="{endpoint}"}}' for endpoint in client.endpoints)
        assert metrics.named("etcd_aio_endpoint_up") == {one: 1, two: 1}
        async with client.watch("a") as watcher, client.lease(60):
            revision = (await client.put("a", "1")).revision
            await anext(watcher)
            assert metrics.named("etcd_aio_streams")['{method="Watch/Watch",state="open"}'] == 1
            assert metrics.values()["etcd_aio_watch_revision"] == revision
            assert metrics.values()["etcd_aio_watch_events_total"] == 1
            assert 50 < metrics.values()["etcd_aio_lease_remaining_seconds_min"] <= 60
        assert "etcd_aio_lease_remaining_seconds_min" not in metrics.values()
        fake.members[0].stop()
        await until(lambda: metrics.named("etcd_aio_endpoint_up") == {one: 0, two: 1})
        fake.members[0].start()
        await until(lambda: metrics.named("etcd_aio_endpoint_up") == {one: 1, two: 1})
        assert metrics.named("etcd_aio_endpoint_connects_total") == {one: 2, two: 1}
    assert metrics.named("etcd_aio_endpoint_up") == {}, "a closed client has no endpoints"
    assert metrics.named("etcd_aio_endpoint_connects_total") == {one: 2, two: 1}, "a counter never falls"


async def test_connections_made_between_two_collections_are_counted_at_the_close() -> None:
    metrics = Metrics()
    async with FakeEtcd() as fake:
        for _ in range(3):
            async with fake.client(observers=[metrics.observer]) as client:
                await client.get("a")
    assert sum(metrics.named("etcd_aio_endpoint_connects_total").values()) == 3


async def test_another_thread_may_collect() -> None:
    metrics = Metrics()
    async with FakeEtcd() as fake, fake.client(observers=[metrics.observer]) as client:
        await client.get("a")
        found = await asyncio.to_thread(metrics.named, "etcd_aio_endpoint_up")
    assert list(found.values()) == [1]


async def test_a_loop_that_is_blocked_is_left_out() -> None:
    metrics = Metrics()
    found: list[Mapping[str, float]] = []
    async with FakeEtcd() as fake, fake.client(observers=[metrics.observer]) as client:
        await client.get("a")
        thread = threading.Thread(target=lambda: found.append(metrics.values()))
        thread.start()
        thread.join()  # blocks the loop
    assert not [name for name in found[0] if name.startswith("etcd_aio_endpoint_up")]
    assert found[0]["grpc_client_started_total" + rpc("KV/Range")] == 1


async def test_a_client_that_is_dropped_is_forgotten() -> None:
    metrics = Metrics()
    async with FakeEtcd() as fake:
        client = fake.client(observers=[metrics.observer])
        await client.get("a")
        await client.aclose()
        del client
        gc.collect()
        assert metrics.named("etcd_aio_endpoint_up") == {}


async def test_keys_and_leases_make_no_series() -> None:
    metrics = Metrics()
    async with FakeEtcd() as fake, fake.client(observers=[metrics.observer]) as client:

        async def work(first: int, last: int) -> int:
            for number in range(first, last):
                await client.put(f"key{number}", "v")
                async with client.lease(60 + number):
                    pass
            return len(metrics.values())

        once = await work(0, 1)
        assert await work(1, 200) == once


async def test_a_stream_that_moves_is_counted() -> None:
    metrics = Metrics()
    watch, leases = '{method="Watch/Watch"}', '{method="Lease/LeaseKeepAlive"}'
    async with FakeEtcd(members=3) as fake, fake.client(observers=[metrics.observer]) as client, client.watch("a"):
        assert metrics.named("etcd_aio_stream_moves_total") == {watch: 0, leases: 0}
        (stream,) = client.streams()
        next(one for one in fake.members if one.endpoint == stream.endpoint).stop()
        await until(lambda: metrics.named("etcd_aio_stream_moves_total")[watch] > 0)
        assert metrics.named("etcd_aio_stream_moves_total")[leases] == 0


async def test_a_client_with_a_name_has_it_as_a_label_and_shares_no_series() -> None:
    metrics = Metrics(handling_seconds=True)
    async with (
        FakeEtcd() as fake,
        fake.client(observers=[metrics.observer], name="orders") as orders,
        fake.client(observers=[metrics.observer]) as plain,
    ):
        async with orders.watch("a") as watcher, orders.lease(60):
            await plain.put("a", "1")
            await anext(watcher)
            named = [line for line in metrics.values() if 'client="orders"' in line]
            unnamed = [line for line in metrics.values() if "client=" not in line]
        with fake.fault("KV/Range", status="UNAVAILABLE", times=1):
            await orders.get("a")
        values = metrics.values()
    assert len(named) + len(unnamed) <= len(values), "no label is empty"
    names = {line.partition("{")[0] for line in named}
    assert {"etcd_aio_endpoint_up", "etcd_aio_streams", "etcd_aio_lease_remaining_seconds_min"} <= names
    assert values['etcd_aio_watch_events_total{client="orders"}'] == 1
    assert values["etcd_aio_watch_events_total"] == 0
    assert values['etcd_aio_retries_total{client="orders",reason="Unavailable"}'] == 1
    read = rpc("KV/Range", client="orders", grpc_code="Unavailable")
    assert values[f"grpc_client_handled_total{read}"] == 1
    assert values[f"grpc_client_handling_seconds_count{rpc('KV/Put')}"] == 1
    assert not [line for line in values if 'client=""' in line]


async def test_logins_are_counted_by_their_outcome() -> None:
    metrics = Metrics()
    async with FakeEtcd() as fake:
        async with fake.client() as client:
            await client.auth.user_add("root", "pw")
            await client.auth.user_grant_role("root", "root")
            await client.auth.enable()
        for password in ("pw", "wrong"):
            user = ("root", password)
            async with fake.client(auth=user, allow_insecure_auth=True, observers=[metrics.observer]) as client:
                with suppress(AuthenticationFailedError):
                    await client.get("a")
    assert metrics.named("etcd_aio_logins_total") == {'{outcome="success"}': 1, '{outcome="failure"}': 1}


async def test_an_observer_that_is_given_twice_counts_once() -> None:
    metrics = Metrics()
    async with FakeEtcd() as fake, fake.client(observers=[metrics.observer, metrics.observer]) as client:
        await client.put("a", "1")
    assert metrics.values()[f"grpc_client_started_total{rpc('KV/Put')}"] == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on Windows")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
async def test_a_child_process_has_no_gauges_of_its_parent() -> None:
    metrics = Metrics()
    gauges = {"etcd_aio_watch_revision", "etcd_aio_lease_remaining_seconds_min"}
    async with (
        FakeEtcd() as fake,
        fake.client(observers=[metrics.observer]) as client,
        client.watch("a") as watcher,
        client.lease(60),
    ):
        await client.put("a", "1")
        await anext(watcher)
        assert gauges <= metrics.values().keys()
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.write(writer, b"has" if gauges & metrics.values().keys() else b"none")
            finally:
                os._exit(0)
        await asyncio.to_thread(os.waitpid, child, 0)
        os.close(writer)
        with os.fdopen(reader, "rb") as answer:
            assert answer.read() == b"none"


def test_a_registry_with_metrics_of_these_names_stays_as_it_is() -> None:
    registry = CollectorRegistry()
    Counter("grpc_client_handled", "That of another library.", registry=registry)
    before = generate_latest(registry)
    for _ in range(2):
        with pytest.raises(ValueError, match="grpc_client_handled"):
            instrument(registry)
        assert generate_latest(registry) == before


def test_a_registry_has_one_observer() -> None:
    registry = CollectorRegistry()
    assert instrument(registry) is instrument(registry)
    assert instrument(CollectorRegistry()) is not instrument(registry)
    with pytest.raises(ValueError, match="handling_seconds=False"):
        instrument(registry, handling_seconds=True)

"""contrib/otel/observer.py: one trace through client and real servers, in each release that exports spans."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from etcd_aio import Client
from etcd_aio.testing import EtcdNotFoundError, EtcdServer, find_etcd
from tests.contrib.collector import SERVER, Collector
from tests.contrib.spans import Traced
from tests.contrib.trace_tree import moved_call
from tests.support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.cluster]


@asynccontextmanager
async def tracing_server(version: str, collector: Collector) -> AsyncIterator[EtcdServer]:
    """A server that samples no trace by itself, and continues those that come sampled."""
    try:
        binary = find_etcd(version)
    except EtcdNotFoundError as error:
        pytest.skip(str(error))
    if binary.version_info < (3, 5, 11):
        pytest.skip("etcd continues sampled traces from 3.5.11 on")
    prefix = "experimental-" if binary.version_info < (3, 6, 0) else ""
    flags = [
        f"--{prefix}enable-distributed-tracing",
        f"--{prefix}distributed-tracing-address={collector.address}",
        f"--{prefix}distributed-tracing-service-name=etcd",
    ]
    environment = {"OTEL_BSP_SCHEDULE_DELAY": "100"}  # milliseconds between two exports
    async with EtcdServer(binary=binary, flags=flags, env=environment) as server:
        yield server


@pytest.mark.parametrize("version", ["3.5", "3.6", "3.7"])
async def test_the_server_continues_the_trace_of_a_call_that_is_sampled_and_of_no_other(version: str) -> None:
    traced, silent = Traced(), Traced(ParentBased(ALWAYS_OFF))
    async with (
        Collector() as collector,
        tracing_server(version, collector) as server,
        Client(server.endpoint, observers=[silent.observer]) as untraced,
        Client(server.endpoint, observers=[traced.observer]) as client,
    ):
        await untraced.put("a", "0")
        async with client.watch("a") as watcher, client.lease(60) as lease:
            await lease.keep_alive_once()
            with traced.tracer.start_as_current_span("request") as request:
                await client.put("a", "1")
                await client.get("a")
            await anext(watcher)
        own = {span.name: span for span in traced.spans}
        wanted = {"etcdserverpb.KV/Put", "etcdserverpb.KV/Range"}
        await until(lambda: wanted <= {span.name for span in collector.spans if span.kind == SERVER})
        spans = list(collector.spans)
    trace = request.get_span_context().trace_id
    for name in wanted:
        (continued,) = [span for span in spans if span.name == name]
        context = own[name].get_span_context()
        assert context is not None
        assert (continued.trace, continued.parent, continued.kind) == (trace, context.span_id, SERVER)
    ours = {context.trace_id for span in traced.spans if (context := span.get_span_context()) is not None}
    assert {span.trace for span in spans} <= ours, (
        "the server traces nothing by itself, and no call that is not sampled"
    )
    assert not [span.name for span in spans if span.name.endswith(("Watch/Watch", "LeaseKeepAlive"))]


async def test_a_call_that_moves_is_one_trace_with_both_attempts_and_the_span_of_the_server_that_answered() -> None:
    try:
        find_etcd(">=3.6")
    except EtcdNotFoundError as error:
        pytest.skip(str(error))
    root, call, *rest = (await moved_call()).splitlines()
    assert root.startswith("GET /config  ")
    assert call.startswith("└─ etcdserverpb.KV/Range  ")
    assert "etcd_aio.attempts=2" in call
    failed, *_ = [line for line in rest if "etcd_aio.attempt at m" in line and ": OK" not in line]
    answered, *_ = [line for line in rest if "etcd_aio.attempt at m" in line and ": OK, answered" in line]
    assert rest.index(failed) < rest.index(answered)
    assert [
        line for line in rest if line.startswith(("   ├─ etcdserverpb", "   └─ etcdserverpb")) and "(server)" in line
    ]

"""contrib/otel/observer.py: one span for each call, however it ends, with attempts as events, and its parent."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import anyio.lowlevel
import pytest
from opentelemetry import baggage, context
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.propagate import get_global_textmap, set_global_textmap
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind
from opentelemetry.trace import StatusCode as SpanStatus

from etcd_aio import EtcdTimeoutError
from etcd_aio.errors import ConnectionLostError, PermissionDeniedError
from etcd_aio.fake import FakeEtcd
from etcd_aio.transport import (
    Connection,
    ConnectionOwner,
    Engine,
    Metadata,
    Target,
    TransportOptions,
)
from tests.contrib.spans import Traced
from tests.support.until import until

pytestmark = pytest.mark.anyio

SAMPLED = 1  # the flag in a traceparent


def attempts_of(span: ReadableSpan) -> list[object]:
    """The statuses of the attempts."""
    assert {event.name for event in span.events} <= {"etcd_aio.attempt"}
    return [dict(event.attributes or {})["rpc.response.status_code"] for event in span.events]


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


async def test_a_call_is_one_span_of_the_rpc_conventions() -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        await client.put("the-key", "the-value")
    span = traced.span
    assert (span.name, span.kind, span.status.status_code) == (
        "etcdserverpb.KV/Put",
        SpanKind.CLIENT,
        SpanStatus.UNSET,
    )
    host, _, port = client.endpoints[0].rpartition(":") if client.endpoints else ("", "", "0")
    assert dict(span.attributes or {}) == {
        "rpc.system.name": "grpc",
        "rpc.method": "etcdserverpb.KV/Put",
        "rpc.response.status_code": "OK",
        "server.address": host.removeprefix("http://"),
        "server.port": int(port),
    }
    assert attempts_of(span) == ["OK"]
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.schema_url == "https://opentelemetry.io/schemas/1.44.0"
    assert "the-" not in span.to_json()


async def test_a_failure_that_a_retry_cured_is_no_error() -> None:
    traced = Traced()
    async with FakeEtcd(members=3) as fake, fake.client(observers=[traced.observer]) as client:
        with fake.fault("KV/Range", status="UNAVAILABLE", times=1):
            await client.get("a")
    span = traced.span
    assert span.status.status_code is SpanStatus.UNSET
    assert attempts_of(span) == ["UNAVAILABLE", "OK"]
    found = dict(span.attributes or {})
    assert (found["rpc.response.status_code"], found["etcd_aio.attempts"]) == ("OK", 2)
    assert "error.type" not in found


async def test_a_write_that_may_have_been_applied_says_so() -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        with fake.fault("KV/Put", reset=True, times=1), pytest.raises(ConnectionLostError):
            await client.put("a", "1")
    span = traced.span
    assert (span.status.status_code, span.status.description) == (SpanStatus.ERROR, "ConnectionLostError")
    found = dict(span.attributes or {})
    assert found["etcd_aio.maybe_applied"] is True
    assert found["error.type"] == found["rpc.response.status_code"] == "UNAVAILABLE"


async def test_a_refusal_is_an_error_that_names_no_key() -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        with fake.fault("KV/Range", status="PERMISSION_DENIED"), pytest.raises(PermissionDeniedError):
            await client.get("the-key")
    span = traced.span
    assert (span.status.status_code, span.status.description) == (SpanStatus.ERROR, "PermissionDeniedError")
    assert dict(span.attributes or {})["error.type"] == "PERMISSION_DENIED"
    assert "the-" not in span.to_json()


async def test_a_timeout_is_an_error() -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        with fake.fault("KV/Range", hang=True), pytest.raises(EtcdTimeoutError):
            await client.get("a", timeout=0.05)
    span = traced.span
    assert span.status.status_code is SpanStatus.ERROR
    assert dict(span.attributes or {})["error.type"] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize("is_error", [False, True])
async def test_a_cancelled_call_is_an_error_only_on_request(is_error: bool) -> None:
    traced = Traced(cancelled_is_error=is_error)
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        with fake.fault("KV/Put", hang=True) as fault:
            writing = asyncio.create_task(client.put("a", "1"))
            await until(lambda: fault.hits == 1)
            writing.cancel()
            await asyncio.wait([writing])
        assert writing.cancelled()
    found = dict(traced.span.attributes or {})
    assert (found["rpc.response.status_code"], found["etcd_aio.maybe_applied"]) == ("CANCELLED", True)
    assert (traced.span.status.status_code is SpanStatus.ERROR) == ("error.type" in found) == is_error


async def test_a_call_cancelled_at_any_turn_has_a_span_that_ends() -> None:
    is_cancelled = True
    for turns in range(40):
        traced = Traced()
        async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
            task = asyncio.create_task(client.get("a"))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        assert traced.begun == len(traced.spans) <= 1
        is_cancelled = task.cancelled()
        if traced.spans:
            status = "CANCELLED" if is_cancelled else "OK"
            assert dict(traced.span.attributes or {})["rpc.response.status_code"] == status
    assert not is_cancelled, "the last turns are later than the call"


async def test_concurrent_calls_have_the_spans_of_their_own_tasks_as_parents() -> None:
    traced = Traced()
    parents: dict[str, int] = {}
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:

        async def request(number: int) -> None:
            with traced.tracer.start_as_current_span(f"request {number}") as span:
                parents[f"request {number}"] = span.get_span_context().span_id
                await client.get("a")
                await anyio.lowlevel.checkpoint()
                await client.put("a", str(number))

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(request, number)
    calls = [span for span in traced.spans if span.name.startswith("etcdserverpb")]
    assert len(calls) == 10
    assert sorted(parent_of(span) for span in calls) == sorted([*parents.values(), *parents.values()])


async def test_both_attempts_of_a_hedged_read_are_events_of_its_span() -> None:
    traced = Traced()
    async with FakeEtcd(members=2) as fake, fake.client(observers=[traced.observer], hedge_after=0.01) as client:
        await until(lambda: [one.state.name for one in client.statistics()] == ["READY", "READY"])
        with fake.fault("KV/Range", hang=True, times=1), traced.tracer.start_as_current_span("request") as request:
            await client.get("a")
    call, outer = traced.spans
    assert outer.name == "request"
    assert parent_of(call) == request.get_span_context().span_id
    assert sorted(map(str, attempts_of(call))) == ["CANCELLED", "OK"]


async def test_calls_of_the_client_itself_are_no_children_of_the_request_that_began_them() -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer], auto_sync=0.02) as client:
        with traced.tracer.start_as_current_span("request"):
            await client.get("a")
        await until(lambda: any(span.name.endswith("MemberList") for span in traced.spans))
    own = [span for span in traced.spans if span.name.endswith("MemberList")]
    assert own
    assert all(span.parent is None for span in own)


class Overhears:
    """An engine that keeps the metadata of what is sent."""

    def __init__(self, fake: FakeEtcd) -> None:
        self._fake = fake
        self.sent: list[tuple[str, dict[str, str]]] = []

    def headers(self, method: str) -> list[dict[str, str]]:
        return [metadata for path, metadata in self.sent if path.endswith(method)]

    def engine(self, options: TransportOptions) -> Engine:
        made = self._fake.engine(options)
        connect = made.connect

        async def connect_and_listen(target: Target, owner: ConnectionOwner) -> Connection:
            connection = await connect(target, owner)
            unary, open_stream = connection.unary, connection.open_stream

            async def heard_unary(path: str, payload: bytes, metadata: Metadata, *rest: object) -> object:
                self.sent.append((path, dict(metadata)))
                return await unary(path, payload, metadata, *rest)  # type: ignore[arg-type]

            async def heard_stream(path: str, metadata: Metadata, *rest: object) -> object:
                self.sent.append((path, dict(metadata)))
                return await open_stream(path, metadata, *rest)  # type: ignore[arg-type]

            connection.unary, connection.open_stream = heard_unary, heard_stream  # type: ignore[method-assign, assignment]
            return connection

        made.connect = connect_and_listen  # type: ignore[method-assign]
        return made


async def test_the_trace_context_goes_with_calls_and_never_with_lasting_streams() -> None:
    traced = Traced()
    async with FakeEtcd() as fake:
        heard = Overhears(fake)
        async with fake.client(observers=[traced.observer], engine=heard.engine) as client:
            token = context.attach(baggage.set_baggage("tenant", "blue"))
            with traced.tracer.start_as_current_span("request") as request:
                async with client.lease(60) as lease, client.watch("a") as watcher:
                    await lease.keep_alive_once()
                    await client.put("a", "1")
                    await anext(watcher)
            context.detach(token)
    (put,) = heard.headers("KV/Put")
    _, trace, parent, flags = put["traceparent"].split("-")
    span = next(span for span in traced.spans if span.name.endswith("KV/Put"))
    own = span.get_span_context()
    assert own is not None
    assert (int(trace, 16), int(parent, 16)) == (request.get_span_context().trace_id, own.span_id)
    assert int(flags, 16) & SAMPLED
    assert put["baggage"] == "tenant=blue"
    streams = [*heard.headers("Watch/Watch"), *heard.headers("Lease/LeaseKeepAlive")]
    assert len(streams) == 2
    assert not [metadata for metadata in streams if "traceparent" in metadata or "baggage" in metadata]
    assert not [span.name for span in traced.spans if span.name.endswith(("Watch/Watch", "LeaseKeepAlive"))]


@pytest.mark.parametrize("propagate", [False, True])
async def test_a_trace_that_is_not_sampled_goes_on_as_such(propagate: bool) -> None:
    traced = Traced(ALWAYS_OFF, propagate=propagate)
    async with FakeEtcd() as fake:
        heard = Overhears(fake)
        async with fake.client(observers=[traced.observer], engine=heard.engine) as client:
            await client.get("a")
    assert traced.begun == 0
    (metadata,) = heard.headers("KV/Range")
    assert ("traceparent" in metadata) == propagate
    assert not int(metadata.get("traceparent", "0").rpartition("-")[2], 16) & SAMPLED


async def test_each_streamed_reply_is_one_span() -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        fake.load({f"k{number}": "x" * 1000 for number in range(100)})
        chunks = [chunk async for chunk in client.maintenance.snapshot()]
    assert chunks
    assert [span.name for span in traced.spans] == ["etcdserverpb.Maintenance/Snapshot"]


async def test_nothing_is_traced_under_suppression() -> None:
    traced = Traced()
    async with FakeEtcd() as fake:
        heard = Overhears(fake)
        async with fake.client(observers=[traced.observer], engine=heard.engine) as client:
            with suppress_instrumentation():
                await client.get("a")
            assert traced.begun == 0
            assert "rpc.client.call.duration" not in traced.metrics()
            await client.get("a")
    assert [("traceparent" in one) for one in heard.headers("KV/Range")] == [False, True]
    assert traced.begun == 1


async def test_an_exporter_that_uses_the_client_is_not_traced() -> None:
    traced = Traced()
    exported: list[asyncio.Task[object]] = []

    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:

        async def export(span: ReadableSpan) -> None:
            await client.put(f"spans/{span.name}", "1")

        def on_end(span: ReadableSpan) -> None:
            with suppress_instrumentation():  # as span processors do
                exported.append(asyncio.create_task(export(span)))

        traced.on_end = on_end  # type: ignore[method-assign]
        await client.get("a")
        await asyncio.gather(*exported)
        assert list(fake.keys()) == [b"spans/etcdserverpb.KV/Range"]
    assert traced.begun == len(exported) == 1


@contextmanager
def propagator(chosen: TextMapPropagator) -> Iterator[None]:
    before = get_global_textmap()
    set_global_textmap(chosen)
    try:
        yield
    finally:
        set_global_textmap(before)


async def test_a_propagator_that_fails_harms_no_call_and_leaves_no_span_open(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(TextMapPropagator):
        def extract(self, *args: object, **kwargs: object) -> context.Context:
            raise ValueError

        def inject(self, *args: object, **kwargs: object) -> None:
            raise ValueError("a bug in the propagator")

        @property
        def fields(self) -> set[str]:
            return set()

    traced = Traced()
    with propagator(Broken()):
        async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
            assert (await client.put("a", "1")).revision > 0
    assert traced.begun == len(traced.spans) == 1
    assert [record.getMessage() for record in caplog.records] == ["observer OtelObserver failed; the client continues"]


async def test_database_attributes_are_added_on_request() -> None:
    traced = Traced(db_attributes=True, attempt_events=False)
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        await client.get("a")
    found = dict(traced.span.attributes or {})
    assert (found["db.system.name"], found["db.operation.name"]) == ("etcd", "Range")
    assert not traced.span.events


async def test_the_calls_of_a_lease_belong_to_the_code_that_enters_and_leaves_it() -> None:
    traced = Traced()
    async with FakeEtcd() as fake, fake.client(observers=[traced.observer]) as client:
        with traced.tracer.start_as_current_span("request") as request:
            async with client.lease(60):
                pass
    of_lease = {span.name: span for span in traced.spans if "Lease/" in span.name}
    assert set(of_lease) == {"etcdserverpb.Lease/LeaseGrant", "etcdserverpb.Lease/LeaseRevoke"}
    for span in of_lease.values():
        assert parent_of(span) == request.get_span_context().span_id

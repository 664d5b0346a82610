"""Metrics for Prometheus: `Client(observers=[instrument()])`.

What happens is counted when it happens; what can be read from a client at any time is read when metrics are collected.
The metrics `grpc_client_...` have the names and labels of Go's interceptors (go-grpc-middleware), so that dashboards
made for Go services fit. As there, an attempt counts: a call that was retried once counts twice.

Clients that have a name have it as the label `client` of all their series; the others share theirs, without that label.
No label names a key, a lease or a watch.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from math import inf
from typing import Final
from weakref import WeakKeyDictionary

from etcd_aio.contrib.missing import missing

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
    from prometheus_client.core import GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as _error:
    raise missing(__name__, "prometheus_client", _error, "prometheus") from _error

from etcd_aio.contrib.clients import Clients, ready_endpoints, stream_counts
from etcd_aio.errors import StatusCode
from etcd_aio.methods import ALL, BIDIRECTIONAL, LEASE_KEEP_ALIVE, SERVER_STREAMING, UNARY, WATCH, Cardinality
from etcd_aio.observing import (
    AttemptEnded,
    CallObserver,
    CallStarted,
    LeaseChange,
    LoginEnded,
    ObservedClient,
    Observer,
    StreamChange,
    WatchAdvance,
)
from etcd_aio.types import EndpointStatistics, Health, StreamStatistics

_CODES: Final = {
    code: "Canceled" if code is StatusCode.CANCELLED else code.name.title().replace("_", "") for code in StatusCode
} | {StatusCode.OK: "OK"}
"""Statuses as Go names them."""

_TYPES: Final[dict[Cardinality, str]] = {
    UNARY: "unary",
    SERVER_STREAMING: "server_stream",
    BIDIRECTIONAL: "bidi_stream",
}
_TYPE_OF: Final = {method.path: _TYPES[method.cardinality] for method in ALL}
_LASTING: Final = (WATCH.name, LEASE_KEEP_ALIVE.name)
_HEDGE: Final = "hedge"
_RPC: Final = ("grpc_type", "grpc_service", "grpc_method")
_CLIENT: Final = "client"


def instrument(registry: CollectorRegistry = REGISTRY, *, handling_seconds: bool = False) -> Observer:
    """Return the observer that counts for a registry. A registry has one, so a repetition returns the same.

    The gauges need the process that has the clients: they are not in prometheus_client's multiprocess mode.

    Args:
        registry: where the metrics are. Default: the registry of the process.
        handling_seconds: also observe the duration of each attempt, in `grpc_client_handling_seconds`. Default: False,
            as Go's interceptors, since a histogram is many series.

    Raises:
        ValueError: the registry has an observer with another `handling_seconds`, or metrics of these names that
            another library made.
    """
    found = _observers.get(registry)
    if found is None:
        found = _observers[registry] = _PrometheusObserver(registry, handling_seconds=handling_seconds)
    if found.has_handling_seconds != handling_seconds:
        raise ValueError(f"the registry was instrumented with handling_seconds={not handling_seconds}")
    return found


def _tidy(metrics: Iterable[Metric]) -> list[Metric]:
    """Leave out the instants when series began, which double their number, and the label of clients without a name."""
    found = list(metrics)
    for metric in found:
        metric.samples = [
            sample if sample.labels.get(_CLIENT, "-") else sample._replace(labels=_without_client(sample.labels))
            for sample in metric.samples
            if not sample.name.endswith("_created")
        ]
    return found


def _without_client(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name != _CLIENT}


class _Counter(Counter):
    def collect(self) -> Iterable[Metric]:
        return _tidy(super().collect())


class _Histogram(Histogram):
    def collect(self) -> Iterable[Metric]:
        return _tidy(super().collect())


class _RpcSeries:
    """The series of one RPC of one client, looked up once."""

    __slots__ = ("_handled", "_rpc", "attempts_at", "client", "handled", "received", "seconds", "sent", "started")

    def __init__(self, metrics: "_PrometheusObserver", path: str, client: str) -> None:
        service, _, method = path[1:].partition("/")
        self._rpc = (_TYPE_OF.get(path, "unary"), service, method)
        self.client = client
        self.attempts_at = metrics.attempts_at.setdefault(client, {})
        self.started = metrics.started.labels(*self._rpc, client)
        self.sent = metrics.sent.labels(*self._rpc, client)
        self.received = metrics.received.labels(*self._rpc, client)
        self.seconds = None if metrics.seconds is None else metrics.seconds.labels(*self._rpc, client)
        self._handled = metrics.handled
        self.handled: dict[StatusCode, Counter] = {}

    def count_handled(self, status: StatusCode) -> None:
        """An attempt has ended."""
        child = self.handled.get(status)
        if child is None:
            child = self.handled[status] = self._handled.labels(*self._rpc, _CODES[status], self.client)
        child.inc()


class _CountedCall(CallObserver):
    """One call."""

    __slots__ = ("_failure", "_is_continued", "_metrics", "_row", "_under_way")

    def __init__(self, metrics: "_PrometheusObserver", row: _RpcSeries, *, is_continued: bool) -> None:
        self._metrics = metrics
        self._row = row
        self._is_continued = is_continued
        self._under_way = 0
        self._failure: StatusCode | None = None

    def attempt_started(self, endpoint: str) -> None:
        if self._under_way:
            self._metrics.retries.labels(_HEDGE, self._row.client).inc()
        elif self._failure is not None:
            self._metrics.retries.labels(_CODES[self._failure], self._row.client).inc()
            self._is_continued = False  # a stream is opened again
        self._under_way += 1
        if not self._is_continued:
            self._row.started.inc()
            self._row.sent.inc()

    def attempt_ended(self, attempt: AttemptEnded) -> None:
        row, status = self._row, attempt.status
        self._under_way -= 1
        if status is StatusCode.OK:
            row.received.inc()
        else:
            self._failure = status
        if self._is_continued:
            return  # its RPC was counted with the first message
        row.count_handled(status)
        if row.seconds is not None:
            row.seconds.observe(attempt.seconds)
        attempts = row.attempts_at.get(attempt.endpoint)
        if attempts is None:
            attempts = self._metrics.attempts.labels(attempt.endpoint, row.client)
            row.attempts_at[attempt.endpoint] = attempts
        attempts.inc()


class _PrometheusObserver(Observer):
    """Counts what clients report, and collects their statistics."""

    def __init__(self, registry: CollectorRegistry, *, handling_seconds: bool) -> None:
        made: list[Collector] = [_Collector(self)]  # first, since collecting counts connections

        def counter(name: str, text: str, labels: Iterable[str] = ()) -> Counter:
            made.append(metric := _Counter(name, text, (*labels, _CLIENT), registry=None))
            return metric

        self.has_handling_seconds = handling_seconds
        self.started = counter("grpc_client_started_total", "Attempts that began.", _RPC)
        self.handled = counter("grpc_client_handled_total", "Attempts that ended, by status.", (*_RPC, "grpc_code"))
        self.received = counter("grpc_client_msg_received_total", "Messages received.", _RPC)
        self.sent = counter("grpc_client_msg_sent_total", "Messages sent.", _RPC)
        self.seconds: Histogram | None = None
        if handling_seconds:
            labels = (*_RPC, _CLIENT)
            self.seconds = _Histogram("grpc_client_handling_seconds", "Durations of attempts.", labels, registry=None)
            made.append(self.seconds)
        self.attempts = counter("etcd_aio_attempts_total", "Attempts that ended, by endpoint.", ["endpoint"])
        self.retries = counter(
            "etcd_aio_retries_total", "Attempts after the first, by the failure before, or a hedge.", ["reason"]
        )
        self._connects = counter("etcd_aio_endpoint_connects_total", "Connections that became ready.", ["endpoint"])
        self._moves = counter("etcd_aio_stream_moves_total", "How often a stream was lost or left.", ["method"])
        self._events = counter("etcd_aio_watch_events_total", "Events of watches.")
        self._leases_lost = counter("etcd_aio_leases_lost_total", "Leases that were lost although they were needed.")
        self._logins = counter("etcd_aio_logins_total", "Logins.", ["outcome"])
        self.attempts_at: dict[str, dict[str, Counter]] = {}  # by client and endpoint
        self._rows: dict[tuple[str, str], _RpcSeries] = {}
        self._clients = Clients()
        self._connected: WeakKeyDictionary[ObservedClient, dict[str, int]] = WeakKeyDictionary()
        # By client; and when each lease expires unless it is renewed.
        self._revisions: dict[str, int] = {}
        self._leases: dict[tuple[str, int], float] = {}
        _register_all(registry, made)

    def client_started(self, client: ObservedClient) -> None:
        self._connected[client] = {}
        # Series that begin at 0: the rate of one that begins at 1 does not show the first time.
        for metric in (self._events, self._leases_lost):
            metric.labels(client.name)
        for method in _LASTING:
            self._moves.labels(method, client.name)
        self._clients.add(client)

    def client_closed(self, client: ObservedClient) -> None:
        self._clients.discard(client)
        self._look_at(client)
        self._forget_closed()

    def call_started(self, call: CallStarted) -> CallObserver | None:
        row = self._rows.get((call.client, call.path))
        if row is None:
            row = self._rows[call.client, call.path] = _RpcSeries(self, call.path, call.client)
        return _CountedCall(self, row, is_continued=call.is_continued)

    def stream_changed(self, change: StreamChange) -> None:
        if change.event == "lost":
            self._moves.labels(change.method, change.client).inc()

    def watch_advanced(self, advance: WatchAdvance) -> None:
        self._events.labels(advance.client).inc(advance.events)
        self._revisions[advance.client] = advance.revision

    def lease_changed(self, change: LeaseChange) -> None:
        if change.event in {"granted", "renewed"}:
            self._leases[change.client, change.lease] = time.monotonic() + change.ttl
        else:
            self._leases.pop((change.client, change.lease), None)
        if change.event == "lost":
            self._leases_lost.labels(change.client).inc()

    def login_ended(self, login: LoginEnded) -> None:
        self._logins.labels("success" if login.error is None else "failure", login.client).inc()

    def _forget_closed(self) -> None:
        """Drop what the gauges have of names that no open client has: it would not change any more."""
        names = self._clients.names()
        for name in self._revisions.keys() - names:
            self._revisions.pop(name, None)
        for name, lease in tuple(self._leases):
            if name not in names:
                self._leases.pop((name, lease), None)

    def forget(self) -> None:
        """Forget watches and leases, which are those of the parent, in the child of a fork."""
        self._revisions.clear()
        self._leases.clear()

    def collect(self) -> Iterator[Metric]:
        """The gauges, as of now."""
        self._forget_closed()
        read = self._clients.read(self._look_at)
        up, latency, streams_of, remaining, revision = _gauges()
        for labels, ready in ready_endpoints(statistics for statistics, _ in read).items():
            up.add_metric(labels, float(any(endpoint.health is Health.HEALTHY for endpoint in ready)))
            if ready:
                latency.add_metric(labels, max(endpoint.latency for endpoint in ready))
        for kind, number in stream_counts(streams for _, streams in read):
            streams_of.add_metric(kind, number)
        for client, seconds in self._seconds_left().items():
            remaining.add_metric([client], seconds)
        for client, last in tuple(self._revisions.items()):
            revision.add_metric([client], last)
        yield from _tidy((up, latency, streams_of, remaining, revision))

    def _seconds_left(self) -> dict[str, float]:
        """Until the first lease of each client expires. Leases that have expired are forgotten."""
        now = time.monotonic()
        first: dict[str, float] = {}
        for (client, lease), deadline in tuple(self._leases.items()):  # another thread may collect
            if deadline <= now:
                self._leases.pop((client, lease), None)
            else:
                first[client] = min(first.get(client, inf), deadline - now)
        return first

    def _look_at(self, client: ObservedClient) -> tuple[tuple[EndpointStatistics, ...], tuple[StreamStatistics, ...]]:
        """Read the statistics of a client, in its loop, and count the connections made since the last time."""
        statistics = client.statistics()
        connected = self._connected[client]
        for one in statistics:
            before, connected[one.endpoint] = connected.get(one.endpoint, 0), one.connects
            made = one.connects - before if one.connects >= before else one.connects  # the endpoint is a new one
            if made:
                self._connects.labels(one.endpoint, client.name).inc(made)
        return statistics, client.streams()


def _register_all(registry: CollectorRegistry, made: Iterable[Collector]) -> None:
    """Register all of them, or none: half of them would break each scrape of the application."""
    with ExitStack() as undoing:
        for one in made:
            registry.register(one)
            undoing.callback(registry.unregister, one)
        undoing.pop_all()


_GAUGES: Final = (
    ("etcd_aio_endpoint_up", "1 if the endpoint is connected and healthy.", ("endpoint", _CLIENT)),
    ("etcd_aio_endpoint_latency_seconds", "Moving average over successful attempts.", ("endpoint", _CLIENT)),
    ("etcd_aio_streams", "Streams of watches and leases.", ("method", "state", _CLIENT)),
    ("etcd_aio_lease_remaining_seconds_min", "Until the first lease expires unless it is renewed.", (_CLIENT,)),
    ("etcd_aio_watch_revision", "Revision of the last event that a watch got.", (_CLIENT,)),
)


def _gauges() -> tuple[GaugeMetricFamily, ...]:
    """The gauges, still without values. An endpoint of several clients of one name is up if one of them says so."""
    return tuple(GaugeMetricFamily(name, text, labels=labels) for name, text, labels in _GAUGES)


class _Collector(Collector):
    """Collects the gauges of an observer."""

    def __init__(self, observer: _PrometheusObserver) -> None:
        self._observer = observer

    def describe(self) -> Iterable[Metric]:
        """The gauges without values: the registry asks for their names before there are clients."""
        return _gauges()

    def collect(self) -> Iterable[Metric]:
        return self._observer.collect()


_observers: Final[WeakKeyDictionary[CollectorRegistry, _PrometheusObserver]] = WeakKeyDictionary()


def _forget() -> None:
    for observer in tuple(_observers.values()):
        observer.forget()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget)

"""Instruments: the metrics of an OtelObserver. They are made once, with the observer."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Meter, Observation

from etcd_aio.contrib.clients import Clients, ready_endpoints, stream_counts
from etcd_aio.contrib.otel import semconv
from etcd_aio.contrib.otel.addresses import address_of
from etcd_aio.types import EndpointStatistics, Health


class Instruments:
    """The metrics. No attribute names a key, a lease or a watch, so that the number of series is bounded.

    Args:
        meter: makes the instruments.
        clients: those whose gauges are read when metrics are collected.
    """

    def __init__(self, meter: Meter, clients: Clients) -> None:
        self._duration = meter.create_histogram(
            semconv.CALL_DURATION,
            "s",
            "Duration of calls, with all their attempts.",
            explicit_bucket_boundaries_advisory=semconv.DURATION_BUCKETS,
        )
        self._attempts = meter.create_counter(semconv.CLIENT_ATTEMPTS, "{attempt}", "Attempts of calls.")
        self._retries = meter.create_counter(semconv.CLIENT_RETRIES, "{attempt}", "Attempts after the first of a call.")
        self._moves = meter.create_counter(semconv.CLIENT_STREAM_MOVES, "{stream}", "Streams that were lost or left.")
        self._events = meter.create_counter(semconv.CLIENT_WATCH_EVENTS, "{event}", "Events that watches got.")
        self._lost = meter.create_counter(semconv.CLIENT_LEASE_LOST, "{lease}", "Leases that were lost while needed.")
        self._gauges = Gauges(clients)
        meter.create_observable_gauge(
            semconv.CLIENT_ENDPOINT_UP,
            [self._gauges.up],
            "1",
            "1 if the endpoint is connected and healthy.",
        )
        meter.create_observable_gauge(
            semconv.CLIENT_ENDPOINT_LATENCY, [self._gauges.latency], "s", "Moving average over successful attempts."
        )
        meter.create_observable_gauge(
            semconv.CLIENT_STREAMS, [self._gauges.streams], "{stream}", "Streams of watches and leases."
        )

    def on_call(
        self, seconds: float, attempts: int, attributes: Mapping[str, str | int], context: Context | None
    ) -> None:
        """A call has ended."""
        self._duration.record(seconds, attributes, context)
        if attempts:
            self._attempts.add(attempts, attributes, context)
        if attempts > 1:
            self._retries.add(attempts - 1, attributes, context)

    def on_stream_lost(self, method: str, client: str) -> None:
        """A stream was lost."""
        self._moves.add(1, {semconv.RPC_METHOD: method, **of_client(client)})

    def on_events(self, number: int, client: str) -> None:
        """A watch got events."""
        self._events.add(number, of_client(client))

    def on_lease_lost(self, client: str) -> None:
        """A lease was lost."""
        self._lost.add(1, of_client(client))


class Gauges:
    """The values that are read of clients when metrics are collected.

    An endpoint of several clients of one name is up if one of them says so.

    Args:
        clients: those that are read.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def up(self, options: CallbackOptions) -> Iterable[Observation]:
        """Whether endpoints are connected and healthy."""
        del options
        return self._of_endpoints(lambda ready: int(any(endpoint.health is Health.HEALTHY for endpoint in ready)))

    def latency(self, options: CallbackOptions) -> Iterable[Observation]:
        """Latencies of the endpoints that are connected."""
        del options
        return self._of_endpoints(lambda ready: max((endpoint.latency for endpoint in ready), default=None))

    def streams(self, options: CallbackOptions) -> Iterable[Observation]:
        """How many streams are open, and how many wait for a member."""
        del options
        for (method, state, client), number in stream_counts(self._clients.read(lambda client: client.streams())):
            labels = {semconv.RPC_METHOD: method_name(method), semconv.STREAM_STATE: state, **of_client(client)}
            yield Observation(number, labels)

    def _of_endpoints(self, value_of: Callable[[list[EndpointStatistics]], float | None]) -> Iterator[Observation]:
        read = self._clients.read(lambda client: client.statistics())
        for (name, client), ready in ready_endpoints(read).items():
            value = value_of(ready)
            if value is not None:
                yield Observation(value, {**address_of(name), **of_client(client)})


def of_client(name: str) -> dict[str, str]:
    """The attribute of a client that has a name."""
    return {semconv.CLIENT_NAME: name} if name else {}


def method_name(method: str) -> str:
    """The name of an RPC as gRPC has it, such as "etcdserverpb.Watch/Watch"."""
    return f"etcdserverpb.{method}"

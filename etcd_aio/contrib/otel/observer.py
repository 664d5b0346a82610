"""OtelObserver: a span for each call, with its attempts as events; metrics; and the trace context for the server.

Streams of watches and leases have metrics, and neither a span nor a trace context: they outlive the requests that
opened them, and others share them.
"""

from typing import Final, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY as _SUPPRESSED,  # as every instrumentation: the API has no public name for it
)
from opentelemetry.context import Context, get_value
from opentelemetry.metrics import MeterProvider, get_meter, get_meter_provider
from opentelemetry.propagate import inject
from opentelemetry.trace import Span, SpanKind, Status, TracerProvider, get_tracer, set_span_in_context
from opentelemetry.trace import StatusCode as SpanStatus

from etcd_aio import EtcdError, __version__
from etcd_aio.contrib.clients import Clients
from etcd_aio.contrib.otel import semconv
from etcd_aio.contrib.otel.addresses import address_of
from etcd_aio.contrib.otel.instruments import Instruments, method_name, of_client
from etcd_aio.observing import (
    AttemptEnded,
    CallObserver,
    CallOutcome,
    CallStarted,
    LeaseChange,
    ObservedClient,
    Observer,
    StreamChange,
    WatchAdvance,
)

_SUPPRESSED_TOO: Final = "suppress_instrumentation"  # the key of older instrumentations
_NAME: Final = "etcd_aio"

_Attributes: TypeAlias = dict[str, str | int]

# A provider has each gauge once: what a second observer adds to one that is there is lost. So observers share them.
_global_clients: Final = Clients()
_clients_of: Final[WeakKeyDictionary[MeterProvider, Clients]] = WeakKeyDictionary()


class OtelObserver(Observer):
    """Traces and measures the calls of clients: `Client(observers=[OtelObserver()])`.

    A span has the name of the RPC, and no key and no value. A failure that was retried with success is not an error of
    the call. In a reply that the server streams, each message is read by a call: only the first has a span. Nothing is
    traced or measured under `suppress_instrumentation()`.

    Args:
        tracer_provider: makes the spans. Default: the global one.
        meter_provider: makes the metrics. Default: the global one.
        propagate: send the trace context with each call, by the global propagator: a server that traces continues it.
        db_attributes: add `db.system.name` and `db.operation.name` to spans, for tools that know databases only.
        attempt_events: add an event to the span for each attempt.
        cancelled_is_error: whether a call that is ended by the cancellation of its own task is an error. Default:
            False: its status is CANCELLED, and its span has no error.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        propagate: bool = True,
        db_attributes: bool = False,
        attempt_events: bool = True,
        cancelled_is_error: bool = False,
    ) -> None:
        self._tracer = get_tracer(_NAME, __version__, tracer_provider, semconv.SCHEMA_URL)
        self._clients = _shared_clients(meter_provider)
        self._seen: WeakSet[ObservedClient] = WeakSet()
        meter = get_meter(_NAME, __version__, meter_provider, semconv.SCHEMA_URL)
        self._propagates = propagate
        self._db_attributes = db_attributes
        self._is_on = True
        self._starts: dict[tuple[str, str, str], _Attributes] = {}
        self._ends: dict[tuple[str, str, str, str, str], tuple[_Attributes, _Attributes]] = {}
        self.instruments = Instruments(meter, self._clients)
        self.attempt_events = attempt_events
        self.cancelled_is_error = cancelled_is_error

    def turn_off(self) -> None:
        """Neither trace nor measure from now on, also not for clients that are there."""
        self._is_on = False
        for client in tuple(self._seen):
            self.client_closed(client)

    def client_started(self, client: ObservedClient) -> None:
        if self._is_on:
            self._seen.add(client)
            self._clients.add(client)

    def client_closed(self, client: ObservedClient) -> None:
        if client in self._seen:
            self._seen.discard(client)
            self._clients.discard(client)

    def call_started(self, call: CallStarted) -> CallObserver | None:
        if not self._is_on or call.is_continued or get_value(_SUPPRESSED) or get_value(_SUPPRESSED_TOO):
            return None
        span = self._tracer.start_span(call.path[1:], kind=SpanKind.CLIENT, attributes=self._start_of(call))
        try:
            return _OtelCall(self, call, span, propagates=self._propagates)
        except BaseException:  # a propagator has raised
            span.end()
            raise

    def stream_changed(self, change: StreamChange) -> None:
        if self._is_on and change.event == "lost":
            self.instruments.on_stream_lost(method_name(change.method), change.client)

    def watch_advanced(self, advance: WatchAdvance) -> None:
        if self._is_on:
            self.instruments.on_events(advance.events, advance.client)

    def lease_changed(self, change: LeaseChange) -> None:
        if self._is_on and change.event == "lost":
            self.instruments.on_lease_lost(change.client)

    def _start_of(self, call: CallStarted) -> _Attributes:
        """The attributes of a span that begins, which samplers see."""
        only = call.endpoints[0] if len(call.endpoints) == 1 else ""
        found = self._starts.get((call.path, only, call.client))
        if found is None:
            found = {semconv.RPC_SYSTEM_NAME: "grpc", semconv.RPC_METHOD: call.path[1:], **address_of(only)}
            found |= of_client(call.client)
            if self._db_attributes:
                found |= {semconv.DB_SYSTEM_NAME: "etcd", semconv.DB_OPERATION_NAME: call.method.partition("/")[2]}
            self._starts[call.path, only, call.client] = found
        return found

    def end_of(self, path: str, client: str, outcome: CallOutcome, error_type: str) -> tuple[_Attributes, _Attributes]:
        """The attributes that a span gets at its end, and those of the metrics of the call."""
        key = path, client, outcome.status.name, outcome.endpoint, error_type
        found = self._ends.get(key)
        if found is None:
            end: _Attributes = {semconv.RPC_STATUS_CODE: outcome.status.name, **address_of(outcome.endpoint)}
            if error_type:
                end[semconv.ERROR_TYPE] = error_type
            rpc: _Attributes = {semconv.RPC_SYSTEM_NAME: "grpc", semconv.RPC_METHOD: path[1:]}
            found = self._ends[key] = end, {**rpc, **of_client(client), **end}
        return found


class _OtelCall(CallObserver):
    """One call."""

    __slots__ = ("_client", "_context", "_observer", "_path", "_span", "metadata")

    def __init__(self, observer: OtelObserver, call: CallStarted, span: Span, *, propagates: bool) -> None:
        self._observer = observer
        self._path = call.path
        self._client = call.client
        self._span = span
        self._context: Context | None = None
        self.metadata = ()
        if span.get_span_context().is_valid:
            self._context = set_span_in_context(span)
            if propagates:
                headers: dict[str, str] = {}
                inject(headers, self._context)
                self.metadata = tuple((name.lower(), value) for name, value in headers.items() if value)

    def attempt_ended(self, attempt: AttemptEnded) -> None:
        if self._observer.attempt_events and self._span.is_recording():
            self._span.add_event(
                semconv.ATTEMPT,
                {
                    **address_of(attempt.endpoint),
                    semconv.RPC_STATUS_CODE: attempt.status.name,
                    semconv.DELIVERY: attempt.delivery.value,
                    semconv.SECONDS: attempt.seconds,
                },
            )

    def ended(self, outcome: CallOutcome) -> None:
        error_type = ""
        if outcome.error is not None and (self._observer.cancelled_is_error or not outcome.is_cancelled):
            error_type = _type_of(outcome)
        end, attributes = self._observer.end_of(self._path, self._client, outcome, error_type)
        span = self._span
        try:
            if span.is_recording():
                span.set_attributes(end)
                if outcome.attempts > 1:
                    span.set_attribute(semconv.ATTEMPTS, outcome.attempts)
                if outcome.maybe_applied:
                    span.set_attribute(semconv.MAYBE_APPLIED, True)
                if error_type:  # not the text, which names keys
                    span.set_status(Status(SpanStatus.ERROR, type(outcome.error).__name__))
        finally:
            span.end()
        self._observer.instruments.on_call(outcome.seconds, outcome.attempts, attributes, self._context)


def _shared_clients(provider: MeterProvider | None) -> Clients:
    """The clients that the gauges of a provider read. The global one may be set after it was asked for."""
    if provider is None or provider is get_meter_provider():
        return _global_clients
    return _clients_of.setdefault(provider, Clients())


def _type_of(outcome: CallOutcome) -> str:
    """The status of a call that failed, or the class of the exception if there was no status."""
    has_status = outcome.is_cancelled or (isinstance(outcome.error, EtcdError) and outcome.error.code is not None)
    return outcome.status.name if has_status else type(outcome.error).__qualname__

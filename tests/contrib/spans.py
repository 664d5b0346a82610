"""Traced: an OtelObserver with its spans and metrics in memory."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

from etcd_aio.contrib.otel import OtelObserver


class Traced(SpanProcessor):
    """The spans that have begun and ended, and the metrics, of an observer.

    Attributes:
        observer: the observer.
        tracer: for spans of the application.
        reader: reads the metrics.
    """

    def __init__(self, sampler: Sampler = ALWAYS_ON, **options: Any) -> None:
        self.begun = 0
        self.spans: list[ReadableSpan] = []
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(self)
        self.tracer = self.provider.get_tracer("tests")
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.observer = OtelObserver(self.provider, self.meters, **options)

    def on_start(self, span: Span, parent_context: object = None) -> None:
        self.begun += 1

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)

    @property
    def span(self) -> ReadableSpan:
        """The only span, which has ended."""
        assert self.begun == len(self.spans), "each span ends"
        (span,) = self.spans
        return span

    def metrics(self) -> dict[str, list[tuple[Mapping[str, Any], Any]]]:
        """The metrics by name: attributes and values. That of a histogram is how many values it has."""
        data = self.reader.get_metrics_data()
        found: dict[str, list[tuple[Mapping[str, Any], Any]]] = {}
        for resource in () if data is None else data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name] = [
                        (dict(one.attributes or {}), getattr(one, "count", None) or getattr(one, "value", None))
                        for one in metric.data.data_points
                    ]
        return found

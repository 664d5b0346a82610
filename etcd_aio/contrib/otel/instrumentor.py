"""EtcdAioInstrumentor: instruments each client that is made from now on; `opentelemetry-instrument` finds it."""

from collections.abc import Collection
from typing import Any

from etcd_aio.contrib.missing import missing

try:
    # mypy takes its module for an empty one, by a comment there.
    from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined] # not exported
except ModuleNotFoundError as _error:
    raise missing("EtcdAioInstrumentor", "opentelemetry-instrumentation", _error) from _error

from etcd_aio.contrib.otel.observer import OtelObserver
from etcd_aio.observing import add_default, remove_default


class EtcdAioInstrumentor(BaseInstrumentor):  # type: ignore[misc] # it is untyped
    """Instruments a whole process: `EtcdAioInstrumentor().instrument(tracer_provider=..., meter_provider=...)`.

    The arguments are those of `OtelObserver`. Clients that were made before are not instrumented. `uninstrument()` ends
    it for all clients at once. `OTEL_PYTHON_DISABLED_INSTRUMENTATIONS=etcd_aio` keeps `opentelemetry-instrument` from
    it.
    """

    _observer: OtelObserver | None = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: this very package is instrumented, which has no version to check."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        self._observer = OtelObserver(**kwargs)
        add_default(self._observer)

    def _uninstrument(self, **kwargs: Any) -> None:
        del kwargs
        if self._observer is not None:
            remove_default(self._observer)
            self._observer.turn_off()
            self._observer = None

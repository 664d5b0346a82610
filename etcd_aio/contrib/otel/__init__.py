"""Traces and metrics for OpenTelemetry: `OtelObserver` for a client, `EtcdAioInstrumentor` for the whole process."""

from typing import TYPE_CHECKING

from etcd_aio.contrib.missing import missing

try:
    import opentelemetry.trace  # noqa: F401 - fails here, with the name of the extra
except ModuleNotFoundError as _error:
    raise missing(__name__, "opentelemetry-api", _error, "otel") from _error

from etcd_aio.contrib.otel.observer import OtelObserver as OtelObserver

if TYPE_CHECKING:
    from etcd_aio.contrib.otel.instrumentor import EtcdAioInstrumentor as EtcdAioInstrumentor


def __getattr__(name: str) -> object:
    """Import the instrumentor at its first use: it needs opentelemetry-instrumentation, which an observer does not."""
    if name == "EtcdAioInstrumentor":
        from etcd_aio.contrib.otel.instrumentor import EtcdAioInstrumentor

        return EtcdAioInstrumentor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The metrics that a member serves over HTTP beside gRPC, at `/metrics`."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeAlias

from etcd_aio.base.aio import start_task
from etcd_aio.base.call_options import Timeout
from etcd_aio.errors import ConnectError, EtcdTimeoutError

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

Get: TypeAlias = Callable[[str, str], Coroutine[object, object, bytes]]
"""Reads a document, such as `/metrics`, from an endpoint."""


async def read_metrics(invoker: "Invoker", get: Get, endpoint: str, timeout: Timeout) -> str:
    """Read the metrics of one member. See `Maintenance.metrics`."""
    deadline = invoker.deadline(timeout, invoker.clock())
    reading = start_task(get(endpoint, "/metrics"), name=f"etcd_aio /metrics {endpoint}")
    try:
        async with asyncio.timeout_at(deadline):
            return (await reading).decode(errors="replace")
    except TimeoutError:
        raise EtcdTimeoutError(f"{endpoint} did not send its metrics in time") from None
    except (OSError, UnicodeError) as error:  # refused, reset, certificates; a host name that cannot be one
        raise ConnectError(f"no metrics from {endpoint}: {error}") from error
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

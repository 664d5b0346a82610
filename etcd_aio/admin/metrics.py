"""Documents that a member serves over HTTP beside gRPC, such as its metrics at `/metrics`."""

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


async def read_document(invoker: "Invoker", get: Get, endpoint: str, path: str, timeout: Timeout) -> str:
    """Read a document of one member. See `Maintenance.metrics`."""
    name = path.partition("?")[0]
    deadline = invoker.deadline(timeout, invoker.clock())
    reading = start_task(get(endpoint, path), name=f"etcd_aio {name} {endpoint}")
    try:
        async with asyncio.timeout_at(deadline):
            return (await reading).decode(errors="replace")
    except TimeoutError:
        raise EtcdTimeoutError(f"{endpoint} did not send {name} in time") from None
    except (OSError, UnicodeError) as error:  # refused, reset, certificates; a host name that cannot be one
        raise ConnectError(f"no {name} from {endpoint}: {error}") from error
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

"""Requests to all endpoints of the client at once."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, TypeVar

from etcd_aio import methods, pb
from etcd_aio.base.aio import start_task
from etcd_aio.types import StatusResult

if TYPE_CHECKING:
    from etcd_aio.error_handler import Invoker

T = TypeVar("T")


async def status_of(invoker: "Invoker", endpoint: str, seconds: float) -> StatusResult:
    """Get the status of the member at one endpoint. Members answer without a leader too."""
    return await invoker.unary(
        methods.STATUS, pb.StatusRequest(), timeout=seconds, needs_leader=False, endpoint=endpoint
    )


async def ask_endpoints(
    endpoints: Iterable[str],
    ask: Callable[[str], Coroutine[object, object, T]],
    *,
    name: str,
    is_enough: Callable[[T], bool] | None = None,
    grace: float = 0.0,
) -> dict[str, T]:
    """Run `ask` for every endpoint at once; return the answers by endpoint.

    Args:
        endpoints: the endpoints.
        ask: sends the request to one endpoint. An exception that it raises ends the other requests.
        name: the name of the tasks.
        is_enough: after an answer for which it is true, the other endpoints have only `grace` left; late ones are
            missing in the result. Default: wait for all.
        grace: seconds.
    """
    tasks = {endpoint: start_task(ask(endpoint), name=f"etcd_aio {name} {endpoint}") for endpoint in endpoints}
    pending = set(tasks.values())
    timeout: float | None = None
    try:
        while pending:
            done, pending = await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                break
            answers = [task.result() for task in done]
            if is_enough is not None and any(is_enough(answer) for answer in answers):
                timeout = grace
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)  # cancelled calls end at once
    return {endpoint: task.result() for endpoint, task in tasks.items() if task not in pending}

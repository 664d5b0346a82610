"""Stream sender: sends the requests of a supervised stream in a task of its own, so that receiving never waits."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Generic

from etcd_aio import codec
from etcd_aio.balancer import Stream
from etcd_aio.base.aio import start_task, wake
from etcd_aio.errors import AttemptFailure
from etcd_aio.methods import Request

_SENT_AT_ONCE: Final = 64  # requests without a turn for other tasks: half a millisecond


class StreamSender(Generic[Request]):
    """The requests that wait to be sent on the open stream.

    Args:
        name: of the task.
        on_error: called with an exception other than a failure of the stream, such as a request that cannot be encoded.
    """

    def __init__(self, name: str, on_error: Callable[[Exception], None]) -> None:
        self._name = name
        self._on_error = on_error
        self._pending: deque[Request] = deque()
        self._waiter: asyncio.Future[None] | None = None  # resolved when there is something to send

    def start(self, stream: Stream) -> "asyncio.Task[None]":
        """Start to send on a new stream; requests that an earlier one did not send are dropped."""
        self._pending.clear()
        return start_task(self._send(stream), name=self._name)

    def add(self, requests: Iterable[Request]) -> None:
        """Send these requests after those that wait."""
        self._pending.extend(requests)
        wake(self._waiter)

    async def _send(self, stream: Stream) -> None:
        try:
            await self._keep_sending(stream)
        except AttemptFailure:
            return  # the stream is over, and the task that receives gets the reason
        except Exception as error:  # its consumer must get the error
            self._on_error(error)

    async def _keep_sending(self, stream: Stream) -> None:
        sent = 0
        while True:
            while self._pending:
                await stream.send(codec.encode(self._pending.popleft()))
                sent += 1
                if not sent % _SENT_AT_ONCE:
                    await asyncio.sleep(0)
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

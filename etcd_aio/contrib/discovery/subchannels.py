"""Subchannel: the channel of grpcio to one endpoint, kept connected, with the calls that are under way on it."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import grpc
import grpc.aio

from etcd_aio.base import start_background_task
from etcd_aio.contrib.discovery.running import Running
from etcd_aio.services import ServiceEndpoint

_CLOSED: Final = grpc.ChannelConnectivity.SHUTDOWN
_PATIENCE: Final = 1.0  # seconds, for what takes a turn of the loop


class Subchannel(Running):
    """The channel to an endpoint.

    Args:
        endpoint: the endpoint, as etcd has it.
        channel: the channel, which belongs to this.
        on_state: called when its state is another one.
    """

    def __init__(self, endpoint: ServiceEndpoint, channel: grpc.aio.Channel, on_state: Callable[[], None]) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.channel = channel
        self.state = grpc.ChannelConnectivity.IDLE
        self._on_state = on_state
        self._is_leaving = False
        self._task = start_background_task(self._watch(), name=f"etcd_aio channel to {endpoint.address}")

    def start(self, method: Callable[..., Any], argument: object, options: dict[str, Any]) -> Any:
        """Start a call on the channel, and count it until it is done."""
        call = method(argument, **options)
        self.began()
        call.add_done_callback(self._done)
        return call

    def _done(self, _: object) -> None:
        self.ended()

    async def _watch(self) -> None:
        """Keep the channel connected, and tell its state, until it is closed."""
        while self.state is not _CLOSED:
            self.state = self.channel.get_state(try_to_connect=not self._is_leaving)
            self._on_state()
            if self.state is not _CLOSED:
                await self.channel.wait_for_state_change(self.state)

    def leave(self, seconds: float) -> "asyncio.Task[None]":
        """Close the channel when its calls have ended, or after so many seconds. Returns the task that does it."""
        self._is_leaving = True
        return start_background_task(self._leave(seconds), name=f"etcd_aio end of channel to {self.endpoint.address}")

    async def _leave(self, seconds: float) -> None:
        try:
            await self.wait_idle(seconds)
        finally:
            await self.channel.close()
            # Closing ends its wait. If it were cancelled, the answer would come to a loop that may have ended by then.
            await asyncio.wait([self._task], timeout=_PATIENCE)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

"""Asks a new peer who it is: whether it is etcd, of which release, and whether its gateway is there."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from etcd_aio.base.deadline import NEVER
from etcd_aio.errors import ConnectError
from etcd_aio.transport.gateway.call import CallOwner, HttpAnswer, HttpCall
from etcd_aio.transport.gateway.channel import Channel
from etcd_aio.transport.gateway.service import Service, check_gate
from etcd_aio.transport.uploads import LARGE

if TYPE_CHECKING:
    import asyncio


class Recognition:
    """Asks for the documents of a `Service` over a socket, whose handshake ends with the verdict. See `CallOwner`.

    The second document is left out where the peer ends the socket behind the first.

    Args:
        service: what the server should be.
        get: makes the request for a document.
        on_recognised: gets what `Service.recognise` returns.
        owner: gets the socket.
    """

    def __init__(
        self,
        service: Service,
        get: Callable[[str], bytes],
        on_recognised: Callable[[str], None],
        owner: CallOwner,
    ) -> None:
        self._service = service
        self._get = get
        self._on_recognised = on_recognised
        self._owner = owner
        self._answer: asyncio.Future[HttpAnswer]

    def begin(self, channel: Channel) -> None:
        """Ask over this socket."""
        self._ask(channel, self._service.document)

    def release(self, channel: Channel, *, keeps_alive: bool) -> None:
        """See `CallOwner`."""
        answer = self._answer.result()
        try:
            if channel.has_answered:
                check_gate(answer)
            else:
                self._on_recognised(self._service.recognise(answer))
                channel.has_answered = True
                if self._service.gate and keeps_alive and channel.is_open:
                    self._ask(channel, self._service.gate)
                    return
        except ConnectError as error:
            channel.has_answered = False
            channel.handshake.fail(error)
        else:
            channel.handshake.succeed()
        self._owner.release(channel, keeps_alive=keeps_alive)

    def _ask(self, channel: Channel, path: str) -> None:
        call = HttpCall(self, self._get(path), limit=LARGE, deadline=NEVER)
        self._answer = call.future

        def on_answer(future: "asyncio.Future[HttpAnswer]") -> None:
            failure = None if future.cancelled() else future.exception()
            if failure is not None:
                channel.handshake.fail(ConnectError(str(failure)))

        call.future.add_done_callback(on_answer)
        call.begin(channel)

"""Listens to what each member says of itself: one stream of gRPC's health service (`Watch`) for each connection.

A member that etcd has told to (`StopGRPCServiceOnDefrag`) says NOT_SERVING before it defragments, and SERVING after it.
So it is left before calls wait for it. Every release that this client supports has the service, which needs neither a
token nor a leader; what stands between may not have it.

The stream is opened when a connection has been in use for a second: short programs and calls of the command line end
before. It is quiet: a connection with nothing else open is not pinged for it. But a member that does not serve gets no
calls, whose silence would show that it is gone; so it is asked now and then, by a call.

Where the service is missing, or the server allows few streams, the connection is not asked again. A stream that ends
for another reason means that nothing is known: the member counts as serving, and is asked again after a growing wait.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from etcd_aio.balancer.connection_record import ConnectionRecord
from etcd_aio.balancer.sub_connection import SubConnection
from etcd_aio.base.aio import start_background_task, start_timer
from etcd_aio.base.backoff import Backoff
from etcd_aio.base.closing import TwoPartClose, Unwinding
from etcd_aio.errors import AttemptFailure, StatusCode
from etcd_aio.methods import HEALTH_CHECK, HEALTH_WATCH
from etcd_aio.transport import Connection

AGAIN_BACKOFF: Final = Backoff(initial=1.0, multiplier=2.0, maximum=120.0, jitter=0.2)
"""Waits before the stream is opened again. A proxy may end one that is quiet for a minute."""

_NOT_BEFORE: Final = 1.0  # seconds that a connection is in use first
_TIMEOUT: Final = 5.0  # seconds until the request is sent
_ASK_AFTER: Final = 10.0  # seconds in which a member that does not serve has said nothing, as the pings of a stream
_WHOLE_SERVER: Final = b""  # a HealthCheckRequest without the name of a service
_NOT_SERVING: Final = b"\x08\x02"  # a HealthCheckResponse: its only field, `status`, is 2
_REFUSED: Final = frozenset(
    {
        StatusCode.UNIMPLEMENTED,
        StatusCode.PERMISSION_DENIED,
        StatusCode.UNAUTHENTICATED,
        StatusCode.RESOURCE_EXHAUSTED,  # the server allows few streams
    }
)


class ServingMonitor(TwoPartClose):
    """Owner of the streams, with a task for each.

    Args:
        random: returns a number in [0, 1), for jitter.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._listening: dict[ConnectionRecord, asyncio.TimerHandle | asyncio.Task[None]] = {}

    def follow(self, ready: Iterable[SubConnection]) -> None:
        """Listen on the connections of these sub-connections, and no others."""
        records = {sub_connection.record: sub_connection for sub_connection in ready}
        for record in [record for record in self._listening if record not in records]:
            self._listening.pop(record).cancel()
        for record, sub_connection in records.items():
            if record not in self._listening:
                self._listening[record] = start_timer(_NOT_BEFORE, self._start, sub_connection, record)

    def close(self) -> Unwinding:
        """End every stream."""
        ending, self._listening = tuple(self._listening.values()), {}
        for one in ending:
            one.cancel()
        return tuple(one for one in ending if isinstance(one, asyncio.Task))

    def _start(self, sub_connection: SubConnection, record: ConnectionRecord) -> None:
        work = self._listen(sub_connection, record)
        self._listening[record] = start_background_task(work, name=f"etcd_aio serving {sub_connection.endpoint_name}")

    async def _listen(self, sub_connection: SubConnection, record: ConnectionRecord) -> None:
        ended = 0  # streams in a row that brought nothing

        def note(message: bytes) -> None:
            nonlocal ended
            ended = 0
            sub_connection.note_serving(message != _NOT_SERVING, record)

        while record.connection is not None:
            try:
                await _receive_all(record.connection, note)
            except AttemptFailure as failure:
                if failure.code in _REFUSED:
                    return
            except Exception as error:  # a defect, or one of the user's engine: no reason to stop anything else
                # No traceback: the text of an unexpected exception may hold a value.
                endpoint = sub_connection.endpoint_name
                text, fields = "endpoint %s: its health service cannot be used: %s", {"endpoint": endpoint}
                sub_connection.log.error(text, endpoint, type(error).__name__, extra=fields)  # noqa: TRY400
                return
            finally:
                sub_connection.note_serving(True, record)
            await asyncio.sleep(AGAIN_BACKOFF.wait(ended, self._random))
            ended += 1


async def _receive_all(connection: Connection, note: Callable[[bytes], None]) -> None:
    """Open the stream, and receive its messages until it ends.

    Raises:
        AttemptFailure: it ended other than with OK.
    """
    deadline = asyncio.get_running_loop().time() + _TIMEOUT
    stream = await connection.open_stream(HEALTH_WATCH.path, (), deadline, is_quiet=True)
    try:
        await stream.send(_WHOLE_SERVER)
        await stream.half_close()
        seconds = None
        while True:
            try:
                async with asyncio.timeout(seconds):
                    message = await stream.receive()
            except TimeoutError:
                await _ask(connection)
                continue
            if not isinstance(message, bytes):
                return
            note(message)
            seconds = _ASK_AFTER if message == _NOT_SERVING else None
    finally:
        stream.cancel()


async def _ask(connection: Connection) -> None:
    """Make a call, so that the connection finds out whether the member is there. The answer comes by the stream."""
    with suppress(AttemptFailure):
        deadline = asyncio.get_running_loop().time() + _TIMEOUT
        await connection.unary(HEALTH_CHECK.path, _WHOLE_SERVER, (), deadline)

"""StreamedReply: a reply that the server streams, taken chunk by chunk over as many streams as it needs.

Knows: one open stream, and that whoever reads can say at every step what is left to read. Never knows: what is read.

Theory of operation. Each step is a call of its own: it takes the next message of the open stream, or opens one for what
is left and takes its first. So a failure has the same meaning at the start and in the midst of a stream: this step's
attempt failed, the stream is gone, and the verdict table says whether another endpoint is asked for what is left. All
of that is inherited from `Call`. Between two steps nothing runs here: the server sends ahead as far as the stream's
window lets it, and no further.

What is not open is not owed: every step that does not end with a message closes the stream, cancelled ones too. A
reading that is dropped without `cancel()` closes its stream when it is collected, so that nobody has to remember. A
connection that drains is not pinned by a reader that takes his time: its stream is closed, and opened elsewhere.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Generic
from weakref import ref

from etcd_aio.balancer import Metadata, Stream, SubConnection
from etcd_aio.deadline import NEVER
from etcd_aio.error_handler.call import Call, CallContext
from etcd_aio.error_handler.large import LARGE
from etcd_aio.errors import (
    Attempt,
    AttemptFailure,
    ConnectionLostError,
    Delivery,
    EtcdTimeoutError,
    NotSupportedByServerError,
    StatusCode,
)
from etcd_aio.methods import Method, Reply, Request


class StreamedReply(Generic[Request, Reply]):
    """What is open of one streamed reply. Give it to `Invoker.read`, by one task at a time.

    Args:
        method: which RPC; it must only read.
        resumes: what is left can be asked for, anywhere. If not, another stream may be opened until the first reply
            has come, and never after it; and the stream stays with its connection, however that fares.

    Attributes:
        sub_connection: where its stream is open; None if none is.
        endpoint: the endpoint that sent the last reply; empty before the first.
        is_cancelled: whether it has been ended by `cancel()`.
    """

    __slots__ = (
        "__weakref__",
        "_is_late",
        "_loop",
        "_stream",
        "endpoint",
        "is_cancelled",
        "method",
        "resumes",
        "sub_connection",
    )

    def __init__(self, method: Method[Request, Reply], *, resumes: bool = True) -> None:
        self.method = method
        self.resumes = resumes
        self.endpoint = ""
        self.sub_connection: SubConnection | None = None
        self.is_cancelled = False
        self._stream: Stream | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_late = False

    def __del__(self) -> None:
        # The collector may run in any thread. A loop that is closed has nothing open any more.
        stream = self._stream
        if stream is not None and self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(stream.cancel)

    @property
    def may_open(self) -> bool:
        """Whether a stream may be opened for it, again or for the first time."""
        return self.resumes or not self.endpoint

    def cancel(self) -> None:
        """End it: its stream is closed at once, and a step under way ends without a reply. Safe to repeat."""
        self.is_cancelled = True
        self.close_stream()

    def close_stream(self) -> None:
        """Close its stream, if one is open; the next step opens another."""
        stream, self._stream, self.sub_connection = self._stream, None, None
        if stream is not None:
            stream.cancel()

    async def receive(
        self, sub_connection: SubConnection, request: bytes, metadata: Metadata, deadline: float
    ) -> bytes | None:
        """One attempt at the next message; None if the server has sent all. Opens the stream if none is open.

        Args:
            sub_connection: where to open it.
            request: what to ask for then.
            metadata: the request's metadata.
            deadline: instant by which the message is there.

        Raises:
            AttemptFailure: there is no message; the stream is closed. After anything else, close it.
        """
        loop = self._loop = asyncio.get_running_loop()
        self._is_late = False
        timer: asyncio.TimerHandle | None = None
        try:
            stream = self._stream
            is_new = stream is None
            if stream is None:
                stream = self._stream = await sub_connection.open_stream(
                    self.method.path, metadata, deadline, _leaver(self) if self.resumes else None
                )
                self.sub_connection = sub_connection
                if self.is_cancelled:
                    raise AttemptFailure(StatusCode.CANCELLED, "the reading was cancelled", Delivery.UNKNOWN)
            if deadline != NEVER:
                timer = loop.call_at(deadline, self._expire)
            if is_new:
                await stream.send(request)
                await stream.half_close()
            message = await stream.receive()
        except AttemptFailure as failure:
            self.close_stream()
            failure.take_beginning()  # it may hold values
            if not self._is_late or failure.delivery is Delivery.ANSWERED:
                raise
        else:
            if message is None or self._is_late:  # late by a hair: the message counts, its stream is gone
                self.close_stream()
            return message
        finally:
            if timer is not None:
                timer.cancel()
        text = "the deadline passed before the server sent more"
        raise AttemptFailure(StatusCode.DEADLINE_EXCEEDED, text, Delivery.UNKNOWN, is_local_deadline=True)

    def _expire(self) -> None:
        # Not by a cancellation of the task, which its owner could not tell from his own.
        self._is_late = True
        if self._stream is not None:
            self._stream.cancel()


def _leaver(reading: StreamedReply[Request, Reply]) -> Callable[[str], None]:
    """Closes the reading's stream when its connection is to be left, for the next step to open it elsewhere.

    Weakly: the connection knows its streams, and must not keep a reading that was dropped.
    """
    known = ref(reading)

    def leave(reason: str) -> None:
        del reason
        reading = known()
        if reading is not None:
            reading.close_stream()

    return leave


class NextReply(Call[Request, Reply]):
    """The next reply of a reading. `take` is awaited once.

    Args:
        context: what all calls share.
        reading: what is open.
        request: the encoded request for what is left.
        metadata: its metadata.
        deadline: when the step is over, on the loop's clock.
        may_retry: the caller allows more than one attempt.
        needs_leader: a member cannot serve it alone.
    """

    __slots__ = ("_reading",)

    def __init__(
        self,
        context: CallContext,
        reading: StreamedReply[Request, Reply],
        request: bytes,
        metadata: Metadata,
        deadline: float,
        *,
        may_retry: bool,
        needs_leader: bool = True,
    ) -> None:
        super().__init__(
            context,
            reading.method,
            request,
            metadata,
            deadline,
            is_mutation=False,
            may_repeat=True,
            may_retry=may_retry and reading.may_open,
            needs_leader=needs_leader,
        )
        self._reading = reading

    async def take(self) -> Reply | None:
        """Make attempts until one brings a reply; None after the last one, or if the reading was cancelled."""
        self._began = self._loop.time()
        try:
            return await self._take()
        except BaseException:  # a cancellation too: what is not read now is asked for anew, even if half decoded
            self._reading.close_stream()
            raise

    async def _take(self) -> Reply | None:
        reading, context = self._reading, self._context
        while not reading.is_cancelled:
            sub_connection = await self._choose()
            unserved = sub_connection.unserved  # of this connection, whatever becomes of it
            started = self._loop.time()
            if started >= self._deadline:
                raise self._finish(EtcdTimeoutError())
            try:
                raw = await reading.receive(
                    sub_connection, self._payload, self._metadata, self._attempt_deadline(started, sub_connection)
                )
            except AttemptFailure as failure:
                if not reading.is_cancelled:
                    if failure.code is StatusCode.UNIMPLEMENTED:
                        unserved.add(self._method.path)
                    await self._after_failure(failure, sub_connection, self._loop.time() - started)
                continue
            if context.budget is not None:
                context.budget.on_success()
            if raw is None:
                return None
            if len(raw) <= LARGE:
                reply = self._decode(raw, sub_connection, started)
            else:
                reply = await self._decode_large(raw, sub_connection, started)
            if reply is not None:
                reading.endpoint = sub_connection.endpoint_name
                return reply
            reading.close_stream()  # the reply was of another cluster
        return None

    async def _choose(self) -> SubConnection:
        """Where the stream is open, or is to be opened: where the RPC may be served, as far as is known."""
        if self._reading.sub_connection is not None:
            return self._reading.sub_connection
        if not self._reading.may_open:
            text = f"the stream of {self._method.name} from {self._reading.endpoint} was given up, and cannot go on"
            raise self._finish(ConnectionLostError(text))
        avoid = self._avoid
        while True:
            chosen = self._context.balancer.pick(avoid, self._needs_leader) or await self._wait_for_pick()
            is_served = self._method.path not in chosen.unserved
            if is_served and (avoid is self._avoid or chosen not in avoid):
                return chosen
            if chosen in avoid:  # and so is every other that is READY
                raise self._finish(
                    NotSupportedByServerError(
                        "no connected member has it", feature=self._method.name, needs=self._method.since
                    )
                )
            avoid = (*avoid, chosen)

    async def _after_failure(self, failure: AttemptFailure, sub_connection: SubConnection, seconds: float) -> None:
        if failure.code is not StatusCode.UNIMPLEMENTED or not self._may_continue(failure):
            await self._after(failure, sub_connection, seconds)
            return
        # Of an older release, or behind a proxy that is. Others may have it; if none has, `_choose` says so.
        self._attempts += (
            Attempt(sub_connection.endpoint_name, failure.code, failure.delivery, seconds, failure.message),
        )
        self._move_on(sub_connection)

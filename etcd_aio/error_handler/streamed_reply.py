"""Streamed replies: a reply that the server streams, read message by message over as many streams as it needs.

Each step is a call of its own: it takes the next message of the open stream, or opens a stream for the rest of the
reply and takes its first message. So a failure means the same at the start and in the middle of a reply: this step's
attempt failed, the stream is gone, and the decision table says whether another endpoint is asked for the rest. All of
that is inherited from `CallAttempts`. Between two steps nothing runs here: the server sends ahead as far as the
stream's flow control window allows, and no further.

If a step does not return a message, including when it is cancelled, the stream is closed. A `StreamedReply` that is
dropped without `cancel()` closes its stream when it is garbage collected. A slow reader does not hold a draining
connection open: its stream is closed, and opened elsewhere.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Generic
from weakref import ref

from etcd_aio import codec
from etcd_aio.balancer import Collector, Metadata, SubConnection, SubConnectionStream
from etcd_aio.base.deadline import NEVER
from etcd_aio.error_handler.call_with_retries import CallAttempts
from etcd_aio.error_handler.outcome import attempt_of
from etcd_aio.error_handler.reply import LARGE, decoder_of
from etcd_aio.errors import (
    AttemptFailure,
    ConnectionLostError,
    Delivery,
    EtcdTimeoutError,
    LocalReason,
    NotSupportedByServerError,
    StatusCode,
    server_error,
)
from etcd_aio.methods import Method, Reply, Request


class StreamedReply(Generic[Request, Reply]):
    """The open part of one streamed reply. Pass it to `Invoker.read`, from one task at a time.

    Args:
        method: the RPC, which must only read.
        resumes: the rest of the reply can be asked for at any member. If not, another stream may be opened until the
            first message has come, and never after it; and the stream stays on its connection, even a draining one.

    Attributes:
        sub_connection: where the stream is open; None if it is not.
        endpoint: the endpoint that sent the last message; empty before the first.
        is_cancelled: whether `cancel()` ended it.
        make_decoder: makes the decoder of a large message.
        began: when its first message was asked for; None before.
    """

    def __init__(self, method: Method[Request, Reply], *, resumes: bool = True) -> None:
        self.method = method
        self.resumes = resumes
        self.endpoint = ""
        self.sub_connection: SubConnection | None = None
        self.is_cancelled = False
        self.began: float | None = None
        self.make_decoder = partial(codec.IncrementalDecoder, method.reply)
        self._stream: SubConnectionStream | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_late = False

    def __del__(self) -> None:
        # The garbage collector may run in any thread. A closed loop has no open stream.
        stream = self._stream
        if stream is not None and self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(stream.cancel)

    @property
    def is_open(self) -> bool:
        """Whether a stream is open, on which the next step continues."""
        return self._stream is not None

    @property
    def may_open(self) -> bool:
        """Whether a stream may be opened, for the first time or again."""
        return self.resumes or not self.endpoint

    def cancel(self) -> None:
        """End the reply: the stream is closed at once, and a running step ends without a message. Safe to repeat."""
        self.is_cancelled = True
        self.close_stream()

    def close_stream(self) -> None:
        """Close the stream if it is open; the next step opens another."""
        stream, self._stream, self.sub_connection = self._stream, None, None
        if stream is not None:
            stream.cancel()

    async def receive(
        self, sub_connection: SubConnection, request: bytes, metadata: Metadata, deadline: float
    ) -> bytes | Collector | None:
        """Make one attempt at the next message, or its decoder if it is large; None if the server has sent all.

        Opens the stream if it is not open.

        Args:
            sub_connection: where to open the stream.
            request: the request for the rest of the reply, sent on a new stream.
            metadata: the request's metadata.
            deadline: instant by which the message must have come.

        Raises:
            AttemptFailure: no message came; the stream is closed. After any other exception, the caller closes it.
        """
        loop = self._loop = asyncio.get_running_loop()
        self._is_late = False
        timer: asyncio.TimerHandle | None = None
        try:
            stream = self._stream
            is_new = stream is None
            if stream is None:
                stream = self._stream = await sub_connection.open_stream(
                    self.method.path, metadata, deadline, _leaver(self) if self.resumes else None, self.make_decoder
                )
                self.sub_connection = sub_connection
                if self.is_cancelled:
                    raise AttemptFailure(StatusCode.CANCELLED, "the reader cancelled the reply", Delivery.UNKNOWN)
            if deadline != NEVER:
                timer = loop.call_at(deadline, self._expire)
            if is_new:
                await stream.send(request)
                await stream.half_close()
            message = await stream.receive()
        except AttemptFailure as failure:
            if failure.delivery is Delivery.ANSWERED and self._stream is not None:
                self._stream.note_end(server_error(failure.code, failure.message))
            self.close_stream()
            failure.take_beginning()  # it may hold values
            if not self._is_late or failure.delivery is Delivery.ANSWERED:
                raise
        else:
            if message is None or self._is_late:  # the message came just in time: it counts, its stream is gone
                self.close_stream()
            return message
        finally:
            if timer is not None:
                timer.cancel()
        text = "the deadline passed before the server sent the next message"
        raise AttemptFailure(StatusCode.DEADLINE_EXCEEDED, text, Delivery.UNKNOWN, reason=LocalReason.DEADLINE)

    def _expire(self) -> None:
        # Not by cancelling the task, which its owner could not tell from a cancellation of its own.
        self._is_late = True
        if self._stream is not None:
            self._stream.cancel()


def _leaver(reply: StreamedReply[Request, Reply]) -> Callable[[str], None]:
    """Return a function that closes the stream when its connection should be left; the next step opens another.

    It has a weak reference: the connection knows its streams, and must not keep a reply alive that was dropped.
    """
    reference = ref(reply)

    def leave(reason: str) -> None:
        del reason
        reply = reference()
        if reply is not None:
            reply.close_stream()

    return leave


class NextReply(CallAttempts[Request, Reply]):
    """The call for the next message of a streamed reply, whose payload is the request for the rest. Run by `take`."""

    __slots__ = ()

    async def take(self, reply: StreamedReply[Request, Reply]) -> Reply | None:
        """Make attempts until a message comes; None after the last message, or if the reply was cancelled."""
        if reply.began is None:
            reply.began = self._loop.time()
        self._began = reply.began  # an error tells for how long the reply was read, not how long this step took
        try:
            return await self._take(reply)
        except BaseException:  # a cancellation too: a message that was not returned is asked for again
            reply.close_stream()
            raise

    async def _take(self, reply: StreamedReply[Request, Reply]) -> Reply | None:
        context = self._context
        observed = self._observed
        while not reply.is_cancelled:
            sub_connection = await self._choose(reply)
            unserved = sub_connection.unserved  # of this connection; by the time of the failure there may be another
            started = self._loop.time()
            if started >= self._deadline:
                raise self._finish(EtcdTimeoutError())
            if observed is not None:
                observed.attempt_started(sub_connection.endpoint_name)
            try:
                raw = await reply.receive(
                    sub_connection, self._payload, self._metadata, self._attempt_deadline(started, sub_connection)
                )
            except AttemptFailure as failure:
                if not reply.is_cancelled:
                    if failure.code is StatusCode.UNIMPLEMENTED:
                        unserved[self._method.path] = failure.message
                    await self._after_failure(failure, sub_connection, self._loop.time() - started)
                continue
            if context.budget is not None:
                context.budget.on_success()
            if raw is None:
                if observed is not None:
                    observed.attempt_succeeded(sub_connection.endpoint_name)
                return None
            if isinstance(raw, bytes) and len(raw) <= LARGE:
                message = self._decode(raw, sub_connection, started)
            else:
                message = await self._decode_in_steps(decoder_of(reply.make_decoder, raw), sub_connection, started)
            if message is not None:
                reply.endpoint = sub_connection.endpoint_name
                if observed is not None:
                    observed.attempt_succeeded(sub_connection.endpoint_name)
                return message
            reply.close_stream()  # the message came from another cluster
        return None

    async def _choose(self, reply: StreamedReply[Request, Reply]) -> SubConnection:
        """Return where the stream is open, or where to open it: on a member that has the RPC, as far as is known."""
        if reply.sub_connection is not None:
            return reply.sub_connection
        if not reply.may_open:
            text = f"the stream of {self._method.name} from {reply.endpoint} was lost, and cannot be resumed"
            raise self._finish(ConnectionLostError(text))
        avoided = self._avoided
        while True:
            chosen = self._balancer.pick(avoided, self._needs_leader) or await self._wait_for_pick()
            why = chosen.unserved.get(self._method.path)
            is_served = why is None
            if is_served and (avoided is self._avoided or chosen not in avoided):
                return chosen
            if chosen in avoided:  # and so is every other member that is READY
                raise self._finish(
                    NotSupportedByServerError(
                        f"no connected member has it ({why or 'all are avoided'})",
                        feature=self._method.name,
                        needs=self._method.since,
                    )
                )
            avoided = (*avoided, chosen)

    async def _after_failure(self, failure: AttemptFailure, sub_connection: SubConnection, seconds: float) -> None:
        if failure.code is not StatusCode.UNIMPLEMENTED or not self._may_continue(failure):
            await super()._after_failure(failure, sub_connection, seconds)
            return
        # An older release, or a proxy in front of one. Other members may have the RPC; if none has, `_choose` says so.
        self._note(attempt_of(failure, sub_connection.endpoint_name, seconds))
        self._move_on(sub_connection)

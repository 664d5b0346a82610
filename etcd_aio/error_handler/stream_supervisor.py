"""Supervisor: owns one bidirectional stream that outlives its connections.

Knows: the balancer, the decision table for streams, the clock. Never knows: what the requests and replies mean; the
stream's handler does.

While the handler needs the stream there is one task. It picks an endpoint, opens the stream, and receives; a child task
sends, so that flow control never blocks receiving. To end the stream from this side (the handler gives up on a silent
server, the sub-connection drains, the stream is not needed any more), the reason is stored in `_own_end` and the stream
is cancelled. The task sees both, judges by the table, and opens the next stream elsewhere. It ends when the stream is
not needed any more, and `wake` starts another.

The handler's `due` runs on a timer of its own (`stream_timer.py`), with or without an open stream. Every call of the
handler may change its `due`, so all of them go through `_tell`, which sets the timer again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import field
from functools import partial
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar

from etcd_aio import codec
from etcd_aio.balancer import Balancer, Collector, Stream, SubConnection, SubConnectionStream
from etcd_aio.base.aio import start_background_task
from etcd_aio.base.closing import TwoPartClose, Unwinding
from etcd_aio.base.deadline import NEVER
from etcd_aio.base.reprs import when_constructed
from etcd_aio.base.unexpected import as_etcd_error
from etcd_aio.dataclass import dataclass
from etcd_aio.error_handler.call_with_retries import CallContext
from etcd_aio.error_handler.message_loading import load_messages
from etcd_aio.error_handler.outcome import StreamEnd
from etcd_aio.error_handler.reply import LARGE, MakeDecoder, check_cluster, decoder_of, finish_in_steps
from etcd_aio.error_handler.stream_handler import StreamHandler
from etcd_aio.error_handler.stream_history import StreamHistory
from etcd_aio.error_handler.stream_recovery import StreamRecovery
from etcd_aio.error_handler.stream_sender import StreamSender
from etcd_aio.error_handler.stream_timer import ReadThenFireTimer
from etcd_aio.errors import (
    Attempt,
    AttemptFailure,
    ClientClosedError,
    ClusterChangedError,
    Delivery,
    EtcdError,
    EtcdTimeoutError,
    MalformedReplyError,
    NoAvailableEndpointsError,
    StatusCode,
    with_history,
)
from etcd_aio.methods import Method, Reply, Request
from etcd_aio.observing import StreamChange
from etcd_aio.types import StreamStatistics

_T = TypeVar("_T")
_P = ParamSpec("_P")

_OPEN_TIMEOUT: Final = 2.0  # seconds; headers leave at once unless the member allows no further stream
_RECEIVED_AT_ONCE: Final = 1 << 16  # bytes without a turn for other tasks

# For closing all of them. `StreamSupervisor` is invariant, as `Method` is.
AnySupervisor: TypeAlias = "StreamSupervisor[Any, Any]"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StreamContext:
    """The common part of all streams of a client.

    Attributes:
        calls: the common part of all calls.
        balancer: the client's, and not the view of one endpoint.
        on_change: called with each change of a stream; None if that is not observed.
        running: the supervisors that have something to close: a task, or a wake that is due.
    """

    calls: CallContext
    balancer: Balancer
    on_change: Callable[[StreamChange], None] | None
    running: dict[AnySupervisor, None] = field(default_factory=dict)


class StreamSupervisor(TwoPartClose, Generic[Request, Reply]):
    """Keeps one stream open for as long as its handler needs it.

    The constructor touches nothing, not even the loop. The methods are called from the client's loop.

    Args:
        context: the common part of all streams.
        method: the RPC.
        handler: sends the requests and gets the replies; see `StreamHandler`.
        name: of the task, and in the log.
        needs_token: wait for a token if one is due. If False, the stream is opened with the current token, and only a
            refusal renews it.
        make_decoder: for large messages, which are decoded while they arrive; by default all of a message is decoded.
    """

    def __init__(
        self,
        context: StreamContext,
        method: Method[Request, Reply],
        handler: StreamHandler[Request, Reply],
        *,
        name: str,
        needs_token: bool = True,
        make_decoder: MakeDecoder[Reply] | None = None,
    ) -> None:
        self._context = context
        self._needs_token = needs_token
        self._make_decoder = make_decoder or partial(codec.IncrementalDecoder, method.reply)
        self._method = method
        self._handler = handler
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._stream: SubConnectionStream | None = None
        self._own_end: StreamEnd | None = None  # why this side ends the stream
        self._wait_scope: asyncio.Timeout | None = None  # of a wait that ends once the stream is not needed
        self._sender: StreamSender[Request] = StreamSender(f"etcd_aio {name} sender", self._fail)
        self._timer = ReadThenFireTimer(lambda: handler.due, lambda: self._received, self._on_due)
        self._history = StreamHistory(method.name, name, context.on_change, context.calls.client)
        self._recovery = StreamRecovery(context.calls, context.balancer, method, self._history)
        self._received = 0  # replies
        self._is_wake_due = False
        self._was_told_open = False  # the handler knows of a stream
        self._will_retry_differently = False  # the handler's answer to the last loss
        self._is_closed = False
        self._internal_error: EtcdError | None = None  # that was raised outside of the task

    @when_constructed
    def __repr__(self) -> str:
        return f"<StreamSupervisor {self._name} {self.endpoint or 'not open'}>"

    # For the owner of the stream.

    def wake(self) -> None:
        """Do what the handler wants, in the next turn of the loop. Call it after each change of the handler.

        After the client's close, a handler that still needs the stream gets `on_end`.

        Raises:
            WrongLoopError: called in another loop than the client's.
            ForkedError: the client was made before a fork.
        """
        lifetime = self._context.calls.lifetime
        if not self._is_closed and not lifetime.is_closed:
            lifetime.enter()
        if not self._is_wake_due:  # ten thousand watches that are opened in one turn are one change
            self._is_wake_due = True
            self._context.running[self] = None  # a close in this very turn has to end it, too
            asyncio.get_running_loop().call_soon(self._on_wake)

    def close(self) -> Unwinding:
        """End the stream at once; the handler gets `ClientClosedError` if it needs the stream."""
        task = self._task
        if not self._is_closed:
            self._is_closed = True
            self._timer.stop()
            if task is not None:
                task.cancel()
            if self._stream is not None:
                self._stream.cancel()
        if task is None:
            self._context.running.pop(self, None)
        if self._handler.is_needed:
            self._notify_end(ClientClosedError())
        return () if task is None else (task,)

    def outage_error(self) -> NoAvailableEndpointsError:
        """Return the error that says, for each endpoint, why there is no stream on it."""
        return self._recovery.failures.outage_error()

    def timeout_error(self, since: float, *, maybe_applied: bool = False) -> EtcdError:
        """Return the error of a wait for a reply that began at `since` and got none.

        Args:
            since: the instant.
            maybe_applied: whether the server may have carried out the request.
        """
        seconds = asyncio.get_running_loop().time() - since
        if not self.is_open:
            return with_history(self.outage_error(), (), maybe_applied=maybe_applied, seconds=seconds)
        text = "the server did not answer on the stream"
        attempt = Attempt(self.endpoint, StatusCode.DEADLINE_EXCEEDED, Delivery.UNKNOWN, seconds, text)
        return with_history(EtcdTimeoutError(), (attempt,), maybe_applied=maybe_applied, seconds=seconds)

    @property
    def is_open(self) -> bool:
        """Whether the stream is open."""
        return self._stream is not None

    @property
    def endpoint(self) -> str:
        """The endpoint where the stream is open; empty if it is not."""
        return self._history.endpoint

    @property
    def is_needed(self) -> bool:
        """Whether the stream is open, or should be."""
        return self._task is not None and self._handler.is_needed

    def statistics(self) -> StreamStatistics:
        """Return a snapshot of what happened to the stream. No loop need be running."""
        return self._history.statistics(self._context.calls.lifetime.time())

    @property
    def has_old_token(self) -> bool:
        """Whether the stream was opened with another token than it would be now."""
        return self._recovery.has_old_token

    async def renew_token(self, error: EtcdError) -> EtcdError | None:
        """Get another token than the stream was opened with, after a refusal; returns why there will be none.

        If there is no token only for now, the next stream waits for it, and nothing is returned. The wait has no time
        limit: it may last for an outage. Cancelling it does not affect other callers that wait.
        """
        return await self._recovery.renew_token(error)

    # What the handler wants.

    def _on_wake(self) -> None:
        self._is_wake_due = False
        if self._is_closed or self._context.calls.lifetime.is_closed:
            self.close()  # the stream may be needed again since the close, while the task is still ending
            return
        if self._task is None:
            if not self._handler.is_needed:
                self._context.running.pop(self, None)
                return
            self._internal_error = None
            self._history.since = NEVER
            self._task = start_background_task(self._run(), name=f"etcd_aio {self._name}")
        try:
            self._advance()
        except Exception as error:  # raised by the handler: the consumers of the stream must get it
            self._fail(error)

    def _tell(self, event: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call one of the handler's `on_` methods, then do what the handler wants. Nothing else calls these methods."""
        answer = event(*args, **kwargs)
        self._advance()
        return answer

    def _advance(self) -> None:
        """Do what the handler wants now."""
        if self._is_closed:
            return
        handler = self._handler
        if not handler.is_needed:
            self._timer.stop()
            self._history.since = NEVER
            self._end_stream(StreamEnd.not_needed())
            if self._wait_scope is not None:
                self._wait_scope.reschedule(0)
                self._wait_scope = None
            return
        if self._history.since == NEVER:
            self._history.since = asyncio.get_running_loop().time()
        if self._stream is not None and self._own_end is None:
            requests = handler.requests(asyncio.get_running_loop().time())
            if requests:
                self._sender.add(requests)
        self._timer.watch()

    def _on_due(self) -> None:
        try:
            self._tell(self._on_time)
        except Exception as error:  # see _on_wake
            self._fail(error)

    def _on_time(self) -> None:
        if self._handler.is_needed:
            reason = self._handler.on_time(asyncio.get_running_loop().time())
            if reason is not None:
                self._end_stream(StreamEnd.abandoned(reason))

    def _end_stream(self, end: StreamEnd) -> None:
        """End the stream from this side, for this reason."""
        if self._stream is not None and self._own_end is None:
            self._own_end = end
            self._stream.cancel()

    def _on_leave(self, reason: str) -> None:
        # Not at once: the engine may be in the middle of processing a frame.
        asyncio.get_running_loop().call_soon(self._leave, self._stream, reason)

    def _leave(self, stream: SubConnectionStream | None, reason: str) -> None:
        if stream is not None and self._stream is stream:
            self._end_stream(StreamEnd.abandoned(reason, is_routine=stream.is_routine))

    def _fail(self, error: Exception) -> None:
        """End everything, for an exception that was raised outside of the task."""
        if self._task is not None and self._internal_error is None:
            self._internal_error = as_etcd_error(error)
            self._task.cancel()

    # The task.

    async def _run(self) -> None:
        error: EtcdError | None = ClientClosedError("the task of the stream was cancelled")
        try:
            await load_messages()
            error = await self._supervise()
        except ClientClosedError as closed:
            error = closed
        except Exception as raised:  # by the handler or a policy: the consumers of the stream must get it
            error = as_etcd_error(raised)
        finally:
            error = self._internal_error or error
            self._task = None
            self._context.running.pop(self, None)
            self._timer.stop()
            self._history.on_end(error, is_closed=self._is_closed)
            if error is not None and not self._is_closed:
                self._recovery.failures.on_reply()  # a final answer is a reply too
                self._notify_end(error)

    async def _supervise(self) -> EtcdError | None:
        """Keep a stream open while it is needed; returns why there will be no other, None if it is not needed."""
        recovery, handler = self._recovery, self._handler
        while handler.is_needed:
            sub_connection = await self._choose()
            if sub_connection is None or not handler.is_needed:
                continue
            if self._needs_token and recovery.needs_token:
                upcoming = await self._while_needed(recovery.obtain_token())
            else:
                end = await self._run_stream(sub_connection)
                if end.is_unneeded or not handler.is_needed:
                    continue  # it did not fail, or it does not matter
                differs = self._will_retry_differently
                upcoming = await self._while_needed(
                    recovery.after_end(end, sub_connection, will_retry_differently=differs)
                )
            if upcoming is None:
                continue  # by now there is a token, but perhaps no sub-connection; or the stream is not needed
            if upcoming.refusal is not None:
                now = asyncio.get_running_loop().time()
                if not self._tell(handler.on_refused, upcoming.refusal, now):
                    return upcoming.refusal
            if upcoming.wait > 0:
                await self._while_needed(asyncio.sleep(upcoming.wait))
            await self._while_needed(recovery.wait_for_pauses())
        return None

    async def _choose(self) -> SubConnection | None:
        """Return where to open the stream; None as soon as it is not needed any more."""
        balancer = self._context.balancer
        avoid = self._recovery.failures.avoid(asyncio.get_running_loop().time())
        chosen = balancer.pick(avoid)
        if chosen is None:
            chosen = await self._while_needed(balancer.wait_for_pick(NEVER, avoid, is_patient=True))
        return chosen

    async def _while_needed(self, waiting: Awaitable[_T]) -> _T | None:
        """Wait, and return None as soon as the stream is not needed any more: an outage may last for ever."""
        scope = asyncio.timeout(None)
        self._wait_scope = scope
        try:
            async with scope:
                return await waiting
        except TimeoutError:
            if not scope.expired():
                raise
            return None
        finally:
            self._wait_scope = None

    async def _run_stream(self, sub_connection: SubConnection) -> StreamEnd:
        """Open one stream; send and receive until it ends."""
        loop = asyncio.get_running_loop()
        name = sub_connection.endpoint_name
        began = loop.time()
        metadata = self._context.calls.metadata.with_leader
        self._recovery.on_open(metadata)
        try:
            stream = await sub_connection.open_stream(
                self._method.path, metadata, began + _OPEN_TIMEOUT, self._on_leave, self._make_decoder
            )
        except AttemptFailure as failure:
            return self._recovery.end_of(failure, name, began)
        self._own_end = None
        self._stream = stream
        self._history.on_open(name, loop.time())
        sender = self._sender.start(stream)
        end: StreamEnd | None = None
        received = self._received
        try:
            self._tell(self._on_open, name)
            end = await self._receive(stream, sub_connection, began)
            end.error.endpoint = end.error.endpoint or name
            stream.note_end(end.error)
            return end
        finally:
            seconds = self._history.on_close(loop.time())
            if self._received != received:
                self._recovery.failures.on_served_for(seconds)
            self._stream = None
            stream.cancel()
            sender.cancel()
            self._notify_lost(end.error if end is not None else self._internal_error or ClientClosedError())
            await asyncio.wait([sender])

    def _on_open(self, endpoint: str) -> None:
        if self._handler.is_needed:
            self._was_told_open = True
            self._handler.on_open(endpoint, asyncio.get_running_loop().time())

    async def _receive(self, stream: Stream, sub_connection: SubConnection, began: float) -> StreamEnd:
        """Give the replies to the handler until the stream ends."""
        loop = asyncio.get_running_loop()
        handler = self._handler
        received_bytes = 0
        before = self._received
        while True:
            try:
                raw = await stream.receive()
                if raw is None:
                    return self._own_end or StreamEnd.abandoned("the server ended the stream")
                reply = await self._decode(raw)
                if reply is None:
                    continue
                # Messages that are there already are received without a turn for other tasks.
                received_bytes += len(raw) if isinstance(raw, bytes) else _RECEIVED_AT_ONCE
                if received_bytes >= _RECEIVED_AT_ONCE:
                    received_bytes = 0
                    await asyncio.sleep(0)
                check_cluster(reply, self._context.calls.identity, sub_connection)
            except AttemptFailure as failure:
                if self._own_end is not None and failure.delivery is not Delivery.ANSWERED:
                    return self._own_end
                return self._recovery.end_of(failure, sub_connection.endpoint_name, began)
            except ClusterChangedError as error:
                return StreamEnd.wrong_cluster(error)
            except MalformedReplyError as error:
                return StreamEnd.malformed(error)
            now = loop.time()
            if self._received == before:  # the member serves the stream
                self._recovery.failures.on_reply()
                self._history.on_first_reply(now)
            self._received += 1
            self._tell(handler.on_reply, reply, now)
            del raw, reply  # of many megabytes, perhaps; the next may come in hours, or the stream fail

    async def _decode(self, raw: bytes | Collector) -> Reply | None:
        """Return the reply that was received, or the part of it that is here; None if there is none."""
        if isinstance(raw, bytes) and len(raw) <= LARGE:
            return codec.decode(self._method.reply, raw)
        decoder = decoder_of(self._make_decoder, raw)
        return await finish_in_steps(decoder) if decoder.has_ended else decoder.take_part()

    def _notify_lost(self, error: EtcdError) -> None:
        """Tell the handler that the stream is gone, once for each stream that it knows of."""
        if self._was_told_open:
            self._was_told_open = False
            now = asyncio.get_running_loop().time()
            self._will_retry_differently = self._tell(self._handler.on_lost, error, now)

    def _notify_end(self, error: EtcdError) -> None:
        """Tell the handler that there will be no further stream."""
        self._notify_lost(error)
        self._tell(self._handler.on_end, error)

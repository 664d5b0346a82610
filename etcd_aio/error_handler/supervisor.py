"""StreamSupervisor: the owner of one stream that outlives its connections.

Knows: the balancer, the stream verdicts, the clock. Never knows: what is said on the stream; its conversation does.

Theory of operation. While the conversation is needed there is one task. It picks an endpoint, opens the stream, and
receives; a child task sends, so that flow control never keeps it from receiving. Whoever wants the stream to end (its
conversation fell silent, the sub-connection asks to leave, nobody needs it) notes why in `_parting` and cancels the
stream; the task finds both, judges by the table, and opens the next stream elsewhere. Once nobody needs it the task
ends, and `wake` starts another.

The conversation's `due` runs on a timer of its own (`due_timer.py`), with a stream or without one. Whatever the
conversation hears may change its `due`, so it hears everything through `_tell`, which sets the timer again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar

from etcd_aio import codec
from etcd_aio.aio import start_background_task, start_task, wake
from etcd_aio.balancer import Balancer, Stream, SubConnection
from etcd_aio.closing import TwoPartClose, Unwinding
from etcd_aio.deadline import NEVER
from etcd_aio.error_handler.call import CallContext
from etcd_aio.error_handler.failover import StreamFailures
from etcd_aio.error_handler.outcome import StreamEnd, unexpected_error
from etcd_aio.error_handler.reply import LARGE, check_cluster, decode_in_steps
from etcd_aio.error_handler.stream_handler import StreamHandler
from etcd_aio.error_handler.stream_timer import ReadThenFireTimer
from etcd_aio.error_handler.token_refusals import is_spent
from etcd_aio.error_handler.verdicts import Verdict, judge_stream
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
    NotSupportedByServerError,
    RetryHint,
    StatusCode,
    TokenUnavailableError,
    with_history,
)
from etcd_aio.methods import Method, Reply, Request
from etcd_aio.transport import token_of

logger = logging.getLogger("etcd_aio.streams")

_T = TypeVar("_T")
_P = ParamSpec("_P")

_OPEN_TIMEOUT: Final = 2.0  # seconds; headers leave at once unless the member allows no further stream
_TAKEN_AT_ONCE: Final = 1 << 16  # bytes
_SENT_AT_ONCE: Final = 64  # requests without a turn for anybody else: half a millisecond

# For whoever closes them all. `StreamSupervisor` is invariant, as `Method` is.
AnySupervisor: TypeAlias = "StreamSupervisor[Any, Any]"


class StreamContext:
    """What all streams of a client share: what its calls do, and more.

    Attributes:
        metadata: of all requests.
        tokens: the token in it.
        running: the supervisors that have something to close.
    """

    __slots__ = ("backoff", "balancer", "identity", "lifetime", "metadata", "random", "running", "tokens")

    def __init__(self, calls: CallContext, balancer: Balancer) -> None:
        self.balancer = balancer  # that of `calls` may be one endpoint of it
        self.lifetime = calls.lifetime
        self.identity = calls.identity
        self.backoff = calls.backoff
        self.random = calls.random
        self.metadata = calls.metadata
        self.tokens = calls.tokens
        self.running: set[AnySupervisor] = set()


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """A stream that outlives its connections: all watches of a client share one, and so do its leases.

    Attributes:
        method: name of the RPC.
        endpoint: where the stream is open; empty if it is not.
        is_open: whether it is. If not, no member could be reached for it yet.
        since: seconds it has been open, or has been needed and was not.
        opened: how often it was opened.
        last_error: why it was moved or lost the last time; None if it never was.
    """

    method: str
    endpoint: str
    is_open: bool
    since: float
    opened: int
    last_error: EtcdError | None


class StreamSupervisor(TwoPartClose, Generic[Request, Reply]):
    """Keeps one stream open for as long as its conversation is needed.

    Making one touches nothing, not even the loop. Its methods are called from the client's loop.

    Args:
        context: what all streams share.
        method: which RPC.
        conversation: what is said; see there.
        name: of the task and in the log.
        needs_token: wait for a token where one is due. If not, the stream is opened with the one there is, and only
            a refusal has it renewed.
    """

    def __init__(
        self,
        context: StreamContext,
        method: Method[Request, Reply],
        conversation: StreamHandler[Request, Reply],
        *,
        name: str,
        needs_token: bool = True,
    ) -> None:
        self._context = context
        self._needs_token = needs_token
        self._method = method
        self._conversation = conversation
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None
        self._endpoint = ""
        self._parting: StreamEnd | None = None  # why this side ends the stream
        self._patience: asyncio.Timeout | None = None  # of a wait that ends once nobody needs the stream
        self._outbox: deque[Request] = deque()
        self._sender: asyncio.Future[None] | None = None  # resolved when there is something to send
        self._timer = ReadThenFireTimer(lambda: conversation.due, lambda: self._received, self._on_due)
        self._is_wake_due = False
        self._is_told_open = False
        self._says_otherwise = False  # what the conversation answered to the last loss
        self._is_closed = False
        self._fatal: EtcdError | None = None  # a mistake that was met outside of the task
        self._received = 0
        self._token = ""  # which the stream was opened with
        self._failures = StreamFailures(context.balancer, context.backoff, context.random)
        self._lost_at = NEVER
        self._since = NEVER
        self._opened = 0
        self._last_error: EtcdError | None = None

    def __repr__(self) -> str:
        return f"<StreamSupervisor {self._name} {self._endpoint or 'not open'}>"

    # What its owner uses.

    def wake(self) -> None:
        """The conversation changed: in the next turn of the loop do what it wants now.

        After the client's close a conversation that is still needed is told so by `on_end`.

        Raises:
            WrongLoopError: called in another loop than the client's.
            ForkedError: the client was made before a fork.
        """
        lifetime = self._context.lifetime
        if not self._is_closed and not lifetime.is_closed:
            lifetime.enter()
        if not self._is_wake_due:  # ten thousand watches that are opened in one turn are one change
            self._is_wake_due = True
            asyncio.get_running_loop().call_soon(self._on_wake)

    def close(self) -> Unwinding:
        """End the stream at once; the conversation hears `ClientClosedError` as long as it needs one."""
        task = self._task
        if not self._is_closed:
            self._is_closed = True
            self._timer.stop()
            if task is not None:
                task.cancel()
            if self._stream is not None:
                self._stream.cancel()
        if self._conversation.is_needed:
            self._end(ClientClosedError())
        return () if task is None else (task,)

    def outage_error(self) -> NoAvailableEndpointsError:
        """The error that names, for each endpoint, why there is no stream on it."""
        return self._failures.outage_error()

    def timeout_error(self, since: float, *, maybe_applied: bool = False) -> EtcdError:
        """The error of a wait for an answer on the stream that began at `since` and was in vain.

        Args:
            since: the instant.
            maybe_applied: whether the server may have carried out what was asked for.
        """
        seconds = asyncio.get_running_loop().time() - since
        if not self.is_open:
            return with_history(self.outage_error(), (), maybe_applied=maybe_applied, seconds=seconds)
        text = "the server did not answer on the stream"
        attempt = Attempt(self._endpoint, StatusCode.DEADLINE_EXCEEDED, Delivery.UNKNOWN, seconds, text)
        return with_history(EtcdTimeoutError(), (attempt,), maybe_applied=maybe_applied, seconds=seconds)

    @property
    def is_open(self) -> bool:
        """Whether there is a stream."""
        return self._stream is not None

    @property
    def endpoint(self) -> str:
        """Where the stream is open; empty if it is not."""
        return self._endpoint

    @property
    def is_needed(self) -> bool:
        """Whether the stream is open, or is to be."""
        return self._task is not None and self._conversation.is_needed

    def statistics(self) -> StreamStatistics:
        """A snapshot of what it has seen."""
        since = 0.0 if self._since == NEVER else asyncio.get_running_loop().time() - self._since
        return StreamStatistics(self._method.name, self._endpoint, self.is_open, since, self._opened, self._last_error)

    # The conversation's wishes.

    def _on_wake(self) -> None:
        self._is_wake_due = False
        if self._is_closed or self._context.lifetime.is_closed:
            self.close()  # whatever became needed meanwhile, also while the task is still ending
            return
        if self._task is None:
            if not self._conversation.is_needed:
                return
            self._fatal = None
            self._since = NEVER
            self._task = start_background_task(self._run(), name=f"etcd_aio {self._name}")
            self._context.running.add(self)
        try:
            self._advance()
        except Exception as error:  # the owner's mistake must reach whoever waits for it
            self._fail(error)

    def _tell(self, fact: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Pass a fact to the conversation, then do what it wants: nothing else may call its `on_` methods."""
        answer = fact(*args, **kwargs)
        self._advance()
        return answer

    def _advance(self) -> None:
        """Do what the conversation wants now; follows every change of it."""
        if self._is_closed:
            return
        conversation = self._conversation
        if not conversation.is_needed:
            self._timer.stop()
            self._since = NEVER
            self._part(StreamEnd.not_needed())
            if self._patience is not None:
                self._patience.reschedule(0)
                self._patience = None
            return
        if self._since == NEVER:
            self._since = asyncio.get_running_loop().time()
        if self._stream is not None and self._parting is None:
            self._outbox.extend(conversation.requests(asyncio.get_running_loop().time()))
            if self._outbox:
                wake(self._sender)
        self._timer.watch()

    def _on_due(self) -> None:
        try:
            self._tell(self._on_time)
        except Exception as error:  # see _on_wake
            self._fail(error)

    def _on_time(self) -> None:
        if self._conversation.is_needed:
            reason = self._conversation.on_time(asyncio.get_running_loop().time())
            if reason is not None:
                self._part(StreamEnd.abandoned(reason))

    def _on_open(self, endpoint: str) -> None:
        if self._conversation.is_needed:
            self._is_told_open = True
            self._conversation.on_open(endpoint, asyncio.get_running_loop().time())

    def _part(self, ending: StreamEnd) -> None:
        """End the stream from this side, for this reason."""
        if self._stream is not None and self._parting is None:
            self._parting = ending
            self._stream.cancel()

    def _on_leave(self, reason: str) -> None:
        # Not at once: the engine may be in the middle of what it was told by the peer.
        asyncio.get_running_loop().call_soon(self._leave, self._stream, reason)

    def _leave(self, stream: Stream | None, reason: str) -> None:
        if self._stream is stream:
            self._part(StreamEnd.abandoned(reason))

    def _fail(self, error: Exception) -> None:
        """End everything, for a mistake that was met outside of the task."""
        if self._task is not None and self._fatal is None:
            self._fatal = unexpected_error(error)
            self._task.cancel()

    # The task.

    async def _run(self) -> None:
        error: EtcdError | None = ClientClosedError("the task of the stream was cancelled")
        try:
            error = await self._supervise()
        except ClientClosedError as closed:
            error = closed
        except Exception as raised:  # the owner's, or a user's policy's: it must reach whoever waits for the stream
            error = unexpected_error(raised)
        finally:
            error = self._fatal or error
            self._task = None
            self._context.running.discard(self)
            self._timer.stop()
            self._lost_at = NEVER
            if error is not None and not self._is_closed:
                self._failures.on_reply()  # a final answer is one too
                logger.warning("stream %s: ended: %s: %s", self._name, type(error).__name__, error)
                self._end(error)

    async def _supervise(self) -> EtcdError | None:
        """Keep a stream open while it is needed; returns why there will be no other, None if it is not needed."""
        balancer = self._context.balancer
        while self._conversation.is_needed:
            avoid = self._failures.avoid(asyncio.get_running_loop().time())
            sub_connection = balancer.pick(avoid)
            if sub_connection is None:
                sub_connection = await self._while_needed(balancer.wait_for_pick(NEVER, avoid, is_patient=True))
                if sub_connection is None or not self._conversation.is_needed:
                    continue
            if self._needs_token and self._context.tokens.state.is_due:
                lacking = await self._while_needed(self._obtain_token())
                if lacking is None:
                    continue  # the sub-connection may be gone by now
                refusal, wait = self._without_token(lacking)
            else:
                ending = await self._converse(sub_connection)
                if ending.is_unneeded or not self._conversation.is_needed:
                    continue  # it did not fail, or it does not matter
                self._note(ending, sub_connection)
                refusal, wait = await self._after(ending)
            if refusal is not None:
                now = asyncio.get_running_loop().time()
                if not self._tell(self._conversation.on_refused, refusal, now):
                    return refusal
            if wait > 0:
                await self._while_needed(asyncio.sleep(wait))
            await self._while_needed(self._wait_for_pushback())
        return None

    async def _wait_for_pushback(self) -> None:
        """Wait while every connected member has asked to be left alone; one that is connected meanwhile has not."""
        loop = asyncio.get_running_loop()
        while (until := self._failures.paused_until(loop.time())) is not None:
            await self._context.balancer.changed(until)

    async def _after(self, ending: StreamEnd) -> tuple[EtcdError | None, float]:
        """Judge how a stream ended; returns why another one would be refused, if it would, and the seconds to wait."""
        error, failures = ending.error, self._failures
        facts = replace(
            ending.facts,
            will_retry_differently=self._says_otherwise,
            has_token=failures.may_renew_token and self._context.tokens.may_renew(error),
            others_may_serve=isinstance(error, NotSupportedByServerError) and not failures.is_everywhere(type(error)),
        )
        verdict = judge_stream(facts)
        if verdict is Verdict.REFRESH_TOKEN:
            lacking = await self._while_needed(self._renew_token(error))
            if lacking is None:
                return None, failures.on_renewal()
            refusal, wait = self._without_token(lacking)
            if refusal is not None:
                error.__cause__ = refusal
                refusal = error
            return refusal, wait
        return error if verdict is Verdict.FAIL else None, failures.wait(verdict)

    def _without_token(self, lacking: EtcdError) -> tuple[EtcdError | None, float]:
        """What follows if there is no token, as with `_after`."""
        self._last_error = self._failures.no_token = lacking
        return None if _may_pass(lacking) else lacking, self._failures.wait_for_token()

    @property
    def has_old_token(self) -> bool:
        """Whether the stream was opened with another token than it would be now."""
        return self._context.tokens.state.has_newer(self._token)

    async def renew_token(self, error: EtcdError) -> EtcdError | None:
        """Have another token than the stream was opened with, after a refusal; returns why there will be none.

        If there only is none now, the next stream waits for it, so nothing is returned. It takes as long as it takes,
        an outage too. Cancelling it harms no other caller that waits.
        """
        lacking = await self._renew_token(error)
        return None if lacking is None or _may_pass(lacking) else lacking

    async def _renew_token(self, error: EtcdError) -> EtcdError | None:
        if not is_spent(error, self._token):
            return None  # the users were changed meanwhile, which the same token survives
        try:
            await self._context.tokens.renew(self._token, error, NEVER)
        except EtcdError as lacking:
            return lacking
        return None

    async def _obtain_token(self) -> EtcdError | None:
        try:
            await self._context.tokens.obtain(NEVER)
        except EtcdError as lacking:
            return lacking
        return None

    async def _while_needed(self, waiting: Awaitable[_T]) -> _T | None:
        """Wait, but not on once nobody needs the stream: an outage may last for ever. Then it returns None."""
        scope = asyncio.timeout(None)
        self._patience = scope
        try:
            async with scope:
                return await waiting
        except TimeoutError:
            if not scope.expired():
                raise
            return None
        finally:
            self._patience = None

    async def _converse(self, sub_connection: SubConnection) -> StreamEnd:
        """Open one stream and talk until it ends."""
        loop = asyncio.get_running_loop()
        name = sub_connection.endpoint_name
        begun = loop.time()
        metadata = self._context.metadata.with_leader
        self._token = token_of(metadata)
        try:
            stream = await sub_connection.open_stream(
                self._method.path, metadata, begun + _OPEN_TIMEOUT, self._on_leave
            )
        except AttemptFailure as failure:
            return self._failed(failure, name, begun)
        self._parting = None
        self._stream, self._endpoint, self._since = stream, name, loop.time()
        self._opened += 1
        self._outbox.clear()
        sender = start_task(self._send(stream), name=f"etcd_aio {self._name} sender")
        ending: StreamEnd | None = None
        received = self._received
        try:
            self._tell(self._on_open, name)
            ending = await self._receive(stream, sub_connection, begun)
            ending.error.endpoint = ending.error.endpoint or name
            return ending
        finally:
            now = loop.time()
            if self._received != received:
                self._failures.on_served_for(now - self._since)
            self._stream, self._endpoint, self._since = None, "", now
            stream.cancel()
            sender.cancel()
            self._lose(ending.error if ending is not None else self._fatal or ClientClosedError())
            await asyncio.wait([sender])

    async def _receive(self, stream: Stream, sub_connection: SubConnection, begun: float) -> StreamEnd:
        """Hand over what the server says, until the stream ends."""
        loop = asyncio.get_running_loop()
        conversation = self._conversation
        taken = 0
        before = self._received
        while True:
            try:
                raw = await stream.receive()
                if raw is None:
                    return self._parting or StreamEnd.abandoned("the server ended the stream")
                # Messages that have come are received without a turn for anybody else.
                taken += len(raw)
                if taken >= _TAKEN_AT_ONCE:
                    taken = 0
                    await asyncio.sleep(0)
                if len(raw) <= LARGE:
                    reply = codec.decode(self._method.reply, raw)
                else:
                    reply = await decode_in_steps(self._method.reply, raw)
                check_cluster(reply, self._context.identity, sub_connection)
            except AttemptFailure as failure:
                if self._parting is not None and failure.delivery is not Delivery.ANSWERED:
                    return self._parting
                return self._failed(failure, sub_connection.endpoint_name, begun)
            except ClusterChangedError as error:
                return StreamEnd.wrong_cluster(error)
            except MalformedReplyError as error:
                return StreamEnd.malformed(error)
            now = loop.time()
            if self._received == before:
                self._on_first_reply(now)
            self._received += 1
            self._tell(conversation.on_reply, reply, now)

    async def _send(self, stream: Stream) -> None:
        """The child task: send what is due."""
        sent = 0
        try:
            while True:
                while self._outbox:
                    await stream.send(codec.encode(self._outbox.popleft()))
                    sent += 1
                    if not sent % _SENT_AT_ONCE:
                        await asyncio.sleep(0)
                self._sender = asyncio.get_running_loop().create_future()
                await self._sender
        except AttemptFailure:
            return  # the stream is over, and who receives is told why
        except Exception as error:  # a request that cannot be written: whoever waits for its answer must hear of it
            self._fail(error)

    # How streams end.

    def _failed(self, failure: AttemptFailure, endpoint: str, begun: float) -> StreamEnd:
        seconds = asyncio.get_running_loop().time() - begun
        return StreamEnd.from_failure(
            failure, self._method, endpoint, seconds, is_alone=len(self._context.balancer.endpoints) < 2
        )

    def _on_first_reply(self, now: float) -> None:
        """The member serves the stream."""
        self._failures.on_reply()
        if self._lost_at != NEVER:
            logger.info("stream %s: goes on at %s after %.3f s", self._name, self._endpoint, now - self._lost_at)
            self._lost_at = NEVER

    def _note(self, ending: StreamEnd, sub_connection: SubConnection) -> None:
        """Remember a stream that ended though it is needed."""
        now = asyncio.get_running_loop().time()
        name, error = sub_connection.endpoint_name, ending.error
        self._last_error = error
        self._failures.on_failure(sub_connection, error, now, pushback=ending.pushback)
        is_news = self._lost_at == NEVER  # the repetitions of an outage are noise
        self._lost_at = min(self._lost_at, now)
        level = logging.DEBUG
        if is_news:
            is_old = ending.facts.delivery is None and self.has_old_token
            is_routine = is_old or ending.facts.retry_hint is RetryHint.REFRESH_TOKEN  # tokens expire
            level = logging.INFO if is_routine else logging.WARNING
        logger.log(level, "stream %s: lost at %s: %s", self._name, name, error.message)

    def _lose(self, error: EtcdError) -> None:
        """Tell the conversation that the stream is gone, once for each that it knows of."""
        if self._is_told_open:
            self._is_told_open = False
            now = asyncio.get_running_loop().time()
            self._says_otherwise = self._tell(self._conversation.on_lost, error, now)

    def _end(self, error: EtcdError) -> None:
        self._lose(error)
        self._tell(self._conversation.on_end, error)


def _may_pass(lacking: EtcdError) -> bool:
    """Whether there may be a token later: a user's function that failed may succeed next time."""
    return lacking.retryable or isinstance(lacking, TokenUnavailableError)

"""Invoker: the door through which every call, streamed reply and supervised stream leaves the API.

Knows: the client's defaults and the metadata of a request. Never knows: what a request means (`api/` does), what
follows from a failed attempt (`call.py` and `verdict.py` do), or HTTP/2.
"""

import asyncio
import random as random_module
from collections.abc import Callable
from typing import Final, get_args

from etcd_aio import codec
from etcd_aio.balancer import Balancer, ClusterIdentity
from etcd_aio.call_options import UNSET, RetryMode, Timeout
from etcd_aio.closing import TwoPartClose, Unwinding, close_all
from etcd_aio.deadline import deadline_after
from etcd_aio.error_handler.call import Call, CallContext
from etcd_aio.error_handler.credentials import Credentials, StaticToken
from etcd_aio.error_handler.description import explain
from etcd_aio.error_handler.hedging import Hedging
from etcd_aio.error_handler.lifetime import Lifetime
from etcd_aio.error_handler.login import Login
from etcd_aio.error_handler.retry import RetryPolicy
from etcd_aio.error_handler.stream_handler import StreamHandler
from etcd_aio.error_handler.streamed_reply import NextReply, StreamedReply
from etcd_aio.error_handler.supervisor import StreamContext, StreamStatistics, StreamSupervisor
from etcd_aio.error_handler.token_manager import TokenManager
from etcd_aio.error_handler.token_state import TokenState
from etcd_aio.errors import EtcdError, InvalidRequestError, RequestTooLargeError, with_history
from etcd_aio.methods import AnyMethod, Method, Reply, Request
from etcd_aio.pb import Message
from etcd_aio.transport import RequestMetadata

_RETRY_MODES: Final = get_args(RetryMode)


class Invoker(TwoPartClose):
    """Runs unary calls and streamed replies, and owns the supervised streams.

    Args:
        balancer: gives sub-connections.
        lifetime: says whether the client may be used.
        identity: the cluster that every answer must come from.
        metadata: of every request; the token goes into it.
        policy: how calls are repeated.
        timeout: seconds a call may take if it does not say itself; None for no limit.
        retry: the retry mode of calls that do not say themselves.
        max_send_bytes: largest request message.
        hedge_after: seconds after which an unanswered read is asked of another member too; None never.
        credentials: who the client is; None for nobody, or whom its certificate names.
        random: returns a number in [0, 1).
    """

    def __init__(
        self,
        balancer: Balancer,
        lifetime: Lifetime,
        identity: ClusterIdentity,
        metadata: RequestMetadata,
        *,
        policy: RetryPolicy,
        timeout: float | None,
        retry: RetryMode,
        max_send_bytes: int,
        credentials: Credentials | None = None,
        hedge_after: float | None = None,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._balancer = balancer
        self._lifetime = lifetime
        self._credentials = credentials
        self._metadata = metadata
        self._tokens = self._tokens_of(credentials, identity, policy, random)
        self._token = self._tokens.state
        self._context = CallContext(
            balancer, lifetime, identity, policy, random, self._metadata, self._tokens, credentials
        )
        self._seconds = deadline_after(timeout, 0.0)
        self._retry: RetryMode = _checked(retry)
        self._max_send_bytes = max_send_bytes
        self._hedging = None if hedge_after is None else Hedging(hedge_after, lambda: balancer.ready_count > 1)
        self._streams = StreamContext(self._context, balancer)

    async def unary(
        self,
        method: Method[Request, Reply],
        request: Request | bytes,
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
        repeatable: bool | None = None,
        needs_leader: bool = True,
        endpoint: str | None = None,
    ) -> Reply:
        """Run a call.

        Args:
            method: which RPC.
            request: its message, or the bytes of one.
            timeout: seconds for the whole call; None for no limit; `UNSET` for the client's default.
            retry: the retry mode; None for the client's default.
            repeatable: True if this very request only reads, whatever its method can do; False if it must not run
                twice; None for what its method says.
            needs_leader: the request cannot be served without a leader, so a member without one shall say so at once.
            endpoint: the endpoint it is about: it goes there and nowhere else. None is any.

        Returns:
            What the method says that its reply is.

        Raises:
            UnknownEndpointError: `endpoint` is none of the client's. Nothing was sent.
            EtcdError: whatever became of it; `attempts` and `maybe_applied` tell the story.

        Cancellation ends the attempt under way at once; a mutation that was sent may still be applied.
        """
        payload = self._enter(method, request)
        now = asyncio.get_running_loop().time()
        deadline = self.deadline(timeout, now)
        mode = self._retry if retry is None else _checked(retry)
        if self._token.is_due:
            now = await self._obtain_token(method, payload, now, deadline)
        is_repeatable = method.repeatable if repeatable is None else repeatable
        is_mutation = method.is_mutation and repeatable is not True
        call = Call(
            self._context if endpoint is None else self._context.only(self._balancer.only(endpoint)),
            method,
            payload,
            self._metadata.with_leader if needs_leader else self._metadata.plain,
            deadline,
            is_mutation=is_mutation,
            may_repeat=is_repeatable or mode == "always",
            may_retry=mode != "never",
            needs_leader=needs_leader,
        )
        if self._hedging is not None and endpoint is None and is_repeatable and not is_mutation and mode != "never":
            return await self._hedging.run(call.run(now), lambda: call.elsewhere().run(self.clock()))
        return await call.run(now)

    def deadline(self, timeout: Timeout, now: float) -> float:
        """When something is over that begins at `now` and may take `timeout`; `UNSET` is the client's default.

        Raises:
            InvalidRequestError: the timeout is negative, or no number of seconds.
        """
        return now + self._seconds if timeout is UNSET else deadline_after(timeout, now)

    async def read(
        self,
        reading: StreamedReply[Request, Reply],
        rest: Request | bytes,
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
        needs_leader: bool = True,
        endpoint: str | None = None,
    ) -> Reply | None:
        """Take the next reply of what the server streams.

        Args:
            reading: the streamed reply; a new one for each.
            rest: what to ask for if a stream has to be opened for it, the first time and after failures: all that no
                reply has brought yet.
            timeout: seconds within which this reply is there, with all attempts; None for no limit; `UNSET` for the
                client's default.
            retry: the retry mode; None for the client's default. `"never"` ends with the first failure, wherever.
            needs_leader: as with `unary`, when a stream is opened.
            endpoint: as with `unary`; the same at every step.

        Returns:
            The reply; None after the last one, or if the reading was cancelled meanwhile.

        Raises:
            UnknownEndpointError: as `unary`.
            NotSupportedByServerError: no member that is connected has this RPC. Each is asked once for each connection.
            EtcdError: as `unary`. The next step begins with a new stream.

        Cancellation closes the stream at once; the next step opens another for `rest`.
        """
        payload = self._enter(reading.method, rest)
        now = asyncio.get_running_loop().time()
        deadline = self.deadline(timeout, now)
        mode = self._retry if retry is None else _checked(retry)
        if self._token.is_due:
            await self._obtain_token(reading.method, payload, now, deadline)
        metadata = self._metadata.with_leader if needs_leader else self._metadata.plain
        context = self._context if endpoint is None else self._context.only(self._balancer.only(endpoint))
        may_retry = mode != "never"
        step = NextReply(context, reading, payload, metadata, deadline, may_retry=may_retry, needs_leader=needs_leader)
        return await step.take()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints in use."""
        return tuple(endpoint.name for endpoint in self._balancer.endpoints)

    def explain(self, error: EtcdError, method: AnyMethod, request: Message | bytes) -> None:
        """Note on an error which call it ends: see `description.explain`. For what is said on a shared stream."""
        explain(error, method, request, self._credentials)

    async def _obtain_token(self, method: AnyMethod, request: Message | bytes, began: float, deadline: float) -> float:
        """Have a token before a call begins; returns the instant. Its error names the login, or else the call."""
        try:
            await self._tokens.obtain(deadline)
        except EtcdError as error:
            if not error.call:
                self.explain(error, method, request)
                with_history(error, (), maybe_applied=False, seconds=self.clock() - began)
            raise
        return self.clock()

    def _enter(self, method: AnyMethod, request: Message | bytes) -> bytes:
        """Check that a call can be made here and now, and that its request can; returns its bytes."""
        self._lifetime.enter()
        payload = request if isinstance(request, bytes) else codec.encode(request)
        if len(payload) > self._max_send_bytes:
            text = f"the request has {len(payload)} bytes, more than max_send_bytes ({self._max_send_bytes})"
            error = RequestTooLargeError(text)
            self.explain(error, method, payload)
            raise error
        return payload

    def supervise(
        self,
        method: Method[Request, Reply],
        conversation: StreamHandler[Request, Reply],
        name: str,
        *,
        needs_token: bool = True,
    ) -> StreamSupervisor[Request, Reply]:
        """A stream of `method` that lives as long as `conversation` is needed; it opens nothing until its `wake`.

        Args:
            method: which RPC.
            conversation: what is said on it.
            name: of its task and in the log.
            needs_token: see `StreamSupervisor`.
        """
        return StreamSupervisor(self._streams, method, conversation, name=name, needs_token=needs_token)

    @property
    def max_send_bytes(self) -> int:
        """The largest request message."""
        return self._max_send_bytes

    def streams(self) -> tuple[StreamStatistics, ...]:
        """What each supervised stream that is needed has seen so far, by the name of its method."""
        found = (supervisor.statistics() for supervisor in self._streams.running if supervisor.is_needed)
        return tuple(sorted(found, key=lambda one: one.method))

    def clock(self) -> float:
        """The instant, on the clock of every deadline: that of the running loop."""
        return asyncio.get_running_loop().time()

    def close(self) -> Unwinding:
        """Forget all secrets and end every stream; their conversations hear `ClientClosedError`.

        It follows the close of the lifetime, so that no stream is opened any more.
        """
        if self._credentials is not None:
            self._credentials.forget()
        # At once, and in the task that closes: a lease that it holds must not cancel it.
        return close_all((self._tokens, *self._streams.running))

    def may_renew_token(self, error: EtcdError) -> bool:
        """Whether another token may help after this refusal: see `StreamSupervisor.renew_token`."""
        return self._tokens.may_renew(error)

    def _tokens_of(
        self,
        credentials: Credentials | None,
        identity: ClusterIdentity,
        policy: RetryPolicy,
        random: Callable[[], float],
    ) -> TokenManager:
        """The tokens of these credentials. A login is made by calls of its own, which carry none and need none."""
        if credentials is None or isinstance(credentials, StaticToken):
            if credentials is not None:
                self._metadata.carry(credentials.token)
            state = TokenState(is_due=False)
            return TokenManager(None, self._metadata, state, may_repeat=credentials is None, random=random)
        bare = self._metadata.without_token()
        none = TokenManager(None, bare, TokenState(is_due=False), random=random)
        context = CallContext(self._balancer, self._lifetime, identity, policy, random, bare, none)
        login = Login(context, credentials)
        state = TokenState(is_due=True)
        return TokenManager(
            login.fetch,
            self._metadata,
            state,
            outage_error=self._outage_error,
            fails_fast=self._balancer.fails_fast,
            random=random,
        )

    def _outage_error(self) -> EtcdError | None:
        return None if self._balancer.ready_count else self._balancer.no_available_endpoints()


def _checked(mode: RetryMode) -> RetryMode:
    if mode not in _RETRY_MODES:
        raise InvalidRequestError(f"retry must be one of {', '.join(map(repr, _RETRY_MODES))}; got {mode!r}")
    return mode

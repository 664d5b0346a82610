"""Invoker: runs every call, streamed reply and supervised stream of a client."""

import asyncio
import random as random_module
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Final, get_args

from etcd_aio import codec, pb
from etcd_aio.arguments import one_of
from etcd_aio.balancer import Balancer, ClusterIdentity, Endpoint, SingleEndpointView, StoreDoubts
from etcd_aio.base.call_options import UNSET, RetryMode, Timeout
from etcd_aio.base.closing import TwoPartClose, Unwinding, close_all
from etcd_aio.base.deadline import deadline_after, time_left
from etcd_aio.error_handler.call_with_retries import CallAttempts, CallContext
from etcd_aio.error_handler.credentials import Credentials, StaticToken
from etcd_aio.error_handler.lifetime import Lifetime
from etcd_aio.error_handler.retry_policy import RetryPolicy
from etcd_aio.error_handler.token_manager import TokenManager
from etcd_aio.error_handler.token_state import TokenState
from etcd_aio.errors import EtcdError, RequestTooLargeError, with_history
from etcd_aio.methods import AnyMethod, Method, Reply, Request
from etcd_aio.observing import CallStarted, ObservedCall, ObserverGroup
from etcd_aio.transport import RequestMetadata
from etcd_aio.types import StreamStatistics

if TYPE_CHECKING:
    from etcd_aio.error_handler.hedging import Hedging
    from etcd_aio.error_handler.reply import MakeDecoder
    from etcd_aio.error_handler.stream_handler import StreamHandler
    from etcd_aio.error_handler.stream_supervisor import StreamContext, StreamSupervisor
    from etcd_aio.error_handler.streamed_reply import StreamedReply

_RETRY_MODES: Final = get_args(RetryMode)


class Invoker(TwoPartClose):
    """Runs unary calls and streamed replies, and owns the supervised streams.

    Args:
        balancer: gives sub-connections.
        lifetime: knows whether the client may be used.
        identity: the cluster that every reply must come from.
        metadata: of every request; the token goes into it.
        policy: how calls are retried.
        timeout: default timeout of a call, in seconds; None for no limit.
        retry: default retry mode of a call.
        max_send_bytes: largest request message.
        hedge_after: seconds after which an unanswered read is sent to another member too; None for never.
        credentials: the user; None for no user, or the one that the client's certificate names.
        random: returns a number in [0, 1).
        observers: are notified of calls, logins and streams.
        client: name of the client; empty if it has none.

    Attributes:
        max_send_bytes, client: see above.
        observers: those of the client.
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
        observers: ObserverGroup | None = None,
        client: str = "",
    ) -> None:
        self.client = client
        self.observers = ObserverGroup() if observers is None else observers
        self._sees_calls = self.observers.sees_calls
        self._named: tuple[tuple[Endpoint, ...], tuple[str, ...]] = (), ()  # endpoints of the last call observed
        self._balancer = balancer
        self.doubts: StoreDoubts = balancer.doubts
        self._lifetime = lifetime
        self._credentials = credentials
        self._metadata = metadata
        self._tokens = self._tokens_of(credentials, identity, policy, random)
        self._token = self._tokens.state
        self._context = CallContext(
            lifetime, identity, policy, random, self._metadata, self._tokens, credentials, client=client
        )
        self._seconds = deadline_after(timeout, 0.0)
        self._retry: RetryMode = one_of(_RETRY_MODES, retry, "retry")
        self.max_send_bytes = max_send_bytes
        self._hedging = None if hedge_after is None else self._hedging_after(hedge_after)
        self._streams: StreamContext | None = None

    def unary(
        self,
        method: Method[Request, Reply],
        request: Request | bytes,
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
        repeatable: bool | None = None,
        needs_leader: bool = True,
        endpoint: str | None = None,
    ) -> Coroutine[Any, Any, Reply]:
        """Check a call, and return the coroutine that runs it, to be awaited at once.

        Args:
            method: the RPC.
            request: its message, or the bytes of one.
            timeout: seconds for the whole call; None for no limit; `UNSET` for the client's default.
            retry: the retry mode; None for the client's default.
            repeatable: True if this very request only reads, whatever its method can do; False if it must not run
                twice; None for the method's own rule.
            needs_leader: the request cannot be served without a leader, so a member without one should refuse at once.
            endpoint: the only endpoint that the request may go to; None for any.

        Returns:
            The reply, decoded into the method's reply type.

        Raises:
            UnknownEndpointError: `endpoint` is not one of the client's. Nothing was sent.
            EtcdError: the call failed; see its `attempts` and `maybe_applied`.

        Cancellation ends the current attempt at once; a mutation that was sent may still be applied.
        """
        payload, now, deadline, mode, balancer, observed = self._begin(method, request, timeout, retry, endpoint)
        is_repeatable = method.repeatable if repeatable is None else repeatable
        is_mutation = method.is_mutation and repeatable is not True
        call = CallAttempts(
            self._context,
            balancer,
            observed,
            method,
            payload,
            deadline,
            is_mutation,
            is_repeatable or mode == "always",
            mode != "never",
            needs_leader,
        )
        if observed is None and self._hedging is None and not self._token.is_due:
            return call.run(now)  # as usual: no coroutine more than are needed
        may_hedge = endpoint is None and is_repeatable and not is_mutation and mode != "never"
        token = self._obtain_token(method, payload, now, deadline) if self._token.is_due else None
        return self._run(call, now, token, self._hedging if may_hedge else None, observed)

    async def _run(
        self,
        call: CallAttempts[Request, Reply],
        now: float,
        token: Coroutine[Any, Any, float] | None,
        hedging: "Hedging | None",
        observed: ObservedCall | None,
    ) -> Reply:
        """Run a call that needs a token first, or may be sent twice, or is observed."""
        try:
            if token is not None:
                now = await token
                call.carry_token()
            if hedging is not None:
                reply = await hedging.run(call.run(now), lambda: call.elsewhere().run(self.clock()))
            else:
                reply = await call.run(now)
        except BaseException as error:  # also a cancellation: the observer sees every end
            if observed is not None:
                observed.ended(error)
            raise
        if observed is not None:
            observed.ended(None)
        return reply

    def _begin(
        self,
        method: AnyMethod,
        request: "pb.Message | bytes",
        timeout: Timeout,
        retry: RetryMode | None,
        endpoint: str | None,
        *,
        is_continued: bool = False,
    ) -> tuple[bytes, float, float, RetryMode, Balancer | SingleEndpointView, ObservedCall | None]:
        """Check that the client may be used here and now, and the arguments of a call; report its start.

        Returns:
            The encoded request, the instant, the deadline, the retry mode, the balancer, and the reporter of the rest.
        """
        loop = self._lifetime.enter()
        payload = request if isinstance(request, bytes) else codec.encode(request)
        if len(payload) > self.max_send_bytes:
            text = f"the request has {len(payload)} bytes, more than max_send_bytes ({self.max_send_bytes})"
            error = RequestTooLargeError(text)
            self.explain(error, method, payload)
            raise error
        now = loop.time()
        deadline = self.deadline(timeout, now)
        mode: RetryMode = self._retry if retry is None else one_of(_RETRY_MODES, retry, "retry")
        balancer = self._balancer if endpoint is None else self._balancer.only(endpoint)
        if not self._sees_calls:
            return payload, now, deadline, mode, balancer, None
        endpoints = balancer.endpoints
        if endpoints != self._named[0]:
            self._named = endpoints, tuple(endpoint.name for endpoint in endpoints)
        names = self._named[1]
        started = CallStarted(method.name, method.path, names, time_left(deadline, now), is_continued, self.client)
        observed = self.observers.call_started(started, loop.time, is_mutation=method.is_mutation)
        return payload, now, deadline, mode, balancer, observed

    def deadline(self, timeout: Timeout, now: float) -> float:
        """Return the deadline of something that begins at `now` and may take `timeout`; `UNSET` is the default timeout.

        Raises:
            InvalidRequestError: the timeout is negative, or not a number of seconds.
        """
        return now + self._seconds if timeout is UNSET else deadline_after(timeout, now)

    async def read(
        self,
        reply: "StreamedReply[Request, Reply]",
        rest: Request | bytes,
        *,
        timeout: Timeout = UNSET,
        retry: RetryMode | None = None,
        needs_leader: bool = True,
        endpoint: str | None = None,
    ) -> Reply | None:
        """Read the next message of a reply that the server streams.

        Args:
            reply: the streamed reply; a new one for each request.
            rest: the request for the part of the reply that was not read yet; sent when a stream is opened, the first
                time and after failures.
            timeout: seconds for this message, with all attempts; None for no limit; `UNSET` for the client's default.
            retry: the retry mode; None for the client's default. With `"never"` the first failure ends the reply.
            needs_leader: as in `unary`, when a stream is opened.
            endpoint: as in `unary`; the same for every message.

        Returns:
            The message; None after the last one, or if the reply was cancelled meanwhile.

        Raises:
            UnknownEndpointError: as `unary`.
            NotSupportedByServerError: no connected member has this RPC. Each is tried once for each connection.
            EtcdError: as `unary`. The next message begins with a new stream.

        Cancellation closes the stream at once; the next message begins with a new one.
        """
        payload, now, deadline, mode, balancer, observed = self._begin(
            reply.method, rest, timeout, retry, endpoint, is_continued=reply.is_open
        )
        try:
            if self._token.is_due:
                await self._obtain_token(reply.method, payload, now, deadline)
            from etcd_aio.error_handler.streamed_reply import NextReply

            call = NextReply(
                self._context,
                balancer,
                observed,
                reply.method,
                payload,
                deadline,
                is_mutation=False,
                may_repeat=True,
                may_retry=mode != "never" and reply.may_open,
                needs_leader=needs_leader,
            )
            message = await call.take(reply)
        except BaseException as error:  # also a cancellation: the observer sees every end
            if observed is not None:
                observed.ended(error)
            raise
        if observed is not None:
            observed.ended(None)
        return message

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints in use."""
        return tuple(endpoint.name for endpoint in self._balancer.endpoints)

    def explain(self, error: EtcdError, method: AnyMethod, request: "pb.Message | bytes") -> None:
        """Add to an error which request on a shared stream it is about: see `description.explain`."""
        from etcd_aio.error_handler.description import explain

        explain(error, method, request, self._credentials)

    async def _obtain_token(
        self, method: AnyMethod, request: "pb.Message | bytes", began: float, deadline: float
    ) -> float:
        """Get a token before a call begins, and return the instant. The error names the login, or else the call."""
        try:
            await self._tokens.obtain(deadline)
        except EtcdError as error:
            if not error.call:
                self.explain(error, method, request)
                with_history(error, (), maybe_applied=False, seconds=self.clock() - began)
            raise
        return self.clock()

    def supervise(
        self,
        method: Method[Request, Reply],
        handler: "StreamHandler[Request, Reply]",
        name: str,
        *,
        needs_token: bool = True,
        make_decoder: "MakeDecoder[Reply] | None" = None,
    ) -> "StreamSupervisor[Request, Reply]":
        """Return the supervisor of a new stream, with these arguments. It opens nothing until its `wake`."""
        from etcd_aio.error_handler.stream_supervisor import StreamContext, StreamSupervisor

        if self._streams is None:
            self._streams = StreamContext(self._context, self._balancer, self.observers.stream_changed)
        return StreamSupervisor(
            self._streams, method, handler, name=name, needs_token=needs_token, make_decoder=make_decoder
        )

    def streams(self) -> tuple[StreamStatistics, ...]:
        """Return the statistics of each supervised stream that is needed, sorted by method."""
        streams = (supervisor.statistics() for supervisor in self._running_streams if supervisor.is_needed)
        return tuple(sorted(streams, key=lambda stream: stream.method))

    @property
    def _running_streams(self) -> "Iterable[StreamSupervisor[Any, Any]]":
        return () if self._streams is None else self._streams.running

    def clock(self) -> float:
        """Return the instant, on the clock of all deadlines: that of the running loop."""
        return asyncio.get_running_loop().time()

    def close(self) -> Unwinding:
        """Forget all secrets and end every stream; their handlers get `ClientClosedError`.

        The lifetime must be closed before, so that no stream is opened any more.
        """
        if self._credentials is not None:
            self._credentials.forget()
        # In the task that closes the client, so that a lease that this task holds does not cancel it.
        return close_all((self._tokens, *self._running_streams))

    def may_renew_token(self, error: EtcdError) -> bool:
        """Whether `StreamSupervisor.renew_token` may help after this refusal."""
        return self._tokens.may_renew(error)

    def _tokens_of(
        self,
        credentials: Credentials | None,
        identity: ClusterIdentity,
        policy: RetryPolicy,
        random: Callable[[], float],
    ) -> TokenManager:
        """Return the token manager for these credentials. Logins are calls of their own, which need no token."""
        if credentials is None or isinstance(credentials, StaticToken):
            if credentials is not None:
                self._metadata.carry(credentials.token)
            state = TokenState(is_due=False)
            return TokenManager(None, self._metadata, state, may_repeat=credentials is None, random=random)
        bare = self._metadata.without_token()
        none = TokenManager(None, bare, TokenState(is_due=False), random=random)
        context = CallContext(self._lifetime, identity, policy, random, bare, none, client=self.client)
        from etcd_aio.error_handler.login import Login

        login = Login(context, self._balancer, credentials)
        state = TokenState(is_due=True)
        return TokenManager(
            login.fetch,
            self._metadata,
            state,
            outage_error=self._outage_error,
            fails_fast=self._balancer.fails_fast,
            random=random,
            on_login=self.observers.login_ended,
            client=self.client,
        )

    def _hedging_after(self, seconds: float) -> "Hedging":
        from etcd_aio.error_handler.hedging import Hedging

        return Hedging(seconds, lambda: self._balancer.ready_count > 1)

    def _outage_error(self) -> EtcdError | None:
        return None if self._balancer.ready_count else self._balancer.no_available_endpoints()

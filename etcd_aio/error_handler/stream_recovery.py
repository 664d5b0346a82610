"""Stream recovery: what follows when a supervised stream has ended: another token, a wait, or no further stream."""

import asyncio
from dataclasses import replace
from typing import NamedTuple

from etcd_aio.balancer import Balancer, Metadata, SubConnection
from etcd_aio.base.deadline import NEVER
from etcd_aio.error_handler.call_with_retries import CallContext
from etcd_aio.error_handler.failover import StreamFailures
from etcd_aio.error_handler.outcome import StreamEnd
from etcd_aio.error_handler.retry_verdicts import RetryVerdict, StreamSituation, classify_stream, judge_stream
from etcd_aio.error_handler.stream_history import StreamHistory
from etcd_aio.error_handler.token_state import is_spent
from etcd_aio.errors import AttemptFailure, EtcdError, NotSupportedByServerError, TokenUnavailableError
from etcd_aio.methods import AnyMethod
from etcd_aio.transport import token_of


class NextStream(NamedTuple):
    """The prospects of the next stream.

    Attributes:
        refusal: why it would be refused too; None if it may be served.
        wait: seconds to wait before it is opened.
    """

    refusal: EtcdError | None
    wait: float


class StreamRecovery:
    """Judges the ends of one supervised stream by the decision table, and renews the token that it was opened with.

    The coroutines have no time limit: the supervisor cancels them if the stream is not needed any more.

    Args:
        calls: the common part of all calls.
        balancer: knows which endpoints there are, and which are connected.
        method: the RPC.
        history: gets every end and failure.

    Attributes:
        failures: those since the last reply.
    """

    def __init__(self, calls: CallContext, balancer: Balancer, method: AnyMethod, history: StreamHistory) -> None:
        self._balancer = balancer
        self._method = method
        self._history = history
        self.failures = StreamFailures(balancer, calls.backoff, calls.random)
        self._tokens = calls.tokens
        self._used = ""  # the token of the stream

    def on_open(self, metadata: Metadata) -> None:
        """The stream is opened with this metadata."""
        self._used = token_of(metadata)

    def end_of(self, failure: AttemptFailure, endpoint: str, began: float) -> StreamEnd:
        """Return how a stream ended that began at `began`, as the transport reports it."""
        seconds = asyncio.get_running_loop().time() - began
        is_alone = len(self._balancer.endpoints) < 2
        return StreamEnd.from_failure(failure, self._method, endpoint, seconds, is_alone=is_alone)

    @property
    def needs_token(self) -> bool:
        """Whether a token must be obtained before the stream is opened."""
        return self._tokens.state.is_due

    @property
    def has_old_token(self) -> bool:
        """Whether the stream was opened with another token than it would be now."""
        return self._tokens.state.has_newer(self._used)

    async def obtain_token(self) -> NextStream | None:
        """Get a token if one is due; returns None if there is one now."""
        try:
            await self._tokens.obtain(NEVER)
        except EtcdError as no_token:
            return self._without_token(no_token)
        return None

    async def renew_token(self, error: EtcdError) -> EtcdError | None:
        """Get another token after a refusal; returns why there is none, not even later."""
        no_token = await self._renew(error)
        return None if no_token is None or _may_pass(no_token) else no_token

    async def after_end(
        self, end: StreamEnd, sub_connection: SubConnection, *, will_retry_differently: bool
    ) -> NextStream:
        """Judge the end of a stream that is still needed, and get another token if that is the verdict.

        Args:
            end: how the stream ended, or could not be opened.
            sub_connection: where.
            will_retry_differently: see `StreamFacts`.
        """
        error, failures = end.error, self.failures
        now = asyncio.get_running_loop().time()
        facts = replace(end.facts, will_retry_differently=will_retry_differently)
        is_put_off = classify_stream(facts) is StreamSituation.PUT_OFF
        is_routine = is_put_off or end.is_routine or (end.facts.delivery is None and self.has_old_token)
        self._history.on_failure(end, sub_connection.endpoint_name, now, is_routine=is_routine)
        if is_put_off:
            failures.on_put_off()
            return NextStream(None, 0.0)
        failures.on_failure(sub_connection, error, now, pushback=end.pushback)
        facts = replace(
            facts,
            has_token=failures.may_renew_token and self._tokens.may_renew(error),
            others_may_serve=isinstance(error, NotSupportedByServerError) and not failures.is_everywhere(type(error)),
        )
        verdict = judge_stream(facts)
        if verdict is not RetryVerdict.REFRESH_TOKEN:
            return NextStream(error if verdict is RetryVerdict.FAIL else None, failures.wait(verdict))
        no_token = await self._renew(error)
        if no_token is None:
            return NextStream(None, failures.on_renewal())
        refusal, wait = self._without_token(no_token)
        if refusal is not None:
            error.__cause__ = refusal
            refusal = error
        return NextStream(refusal, wait)

    async def wait_for_pauses(self) -> None:
        """Wait while every connected member has asked for a pause; a member that gets connected meanwhile has not."""
        loop = asyncio.get_running_loop()
        while (until := self.failures.paused_until(loop.time())) is not None:
            await self._balancer.changed(until)

    async def _renew(self, error: EtcdError) -> EtcdError | None:
        if is_spent(error, self._used):  # else the users were changed meanwhile, and the same token is still valid
            try:
                await self._tokens.renew(self._used, error, NEVER)
            except EtcdError as no_token:
                return no_token
        return None

    def _without_token(self, no_token: EtcdError) -> NextStream:
        self._history.last_error = self.failures.no_token = no_token
        return NextStream(None if _may_pass(no_token) else no_token, self.failures.wait_for_token())


def _may_pass(no_token: EtcdError) -> bool:
    """Whether there may be a token later: a function of the application that failed may succeed the next time."""
    return no_token.retryable or isinstance(no_token, TokenUnavailableError)

"""The attempts of one unary call, one after the other: the loop of retries.

The first attempt is the short path: pick, attempt, decode, check the cluster. Everything else happens only after a
failure: judge it by the table, wait if a wait is due, pick another endpoint.

An attempt of a call that may run twice leaves a member that looks unhealthy (`balancer/health_verdicts.py`), but a call
leaves each member only once. If it has left all members without an answer it stays until its deadline, since a request
that is slow everywhere must be able to finish. If no other call shows that a member is unhealthy, the attempt's
deadline does: several times the duration of the slowest answers, and at most half of the time left as long as other
members could take the call over. Once that deadline has passed, the next attempt gets all of the remaining time.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import field
from typing import Final, Generic, NoReturn

from etcd_aio import codec
from etcd_aio.balancer import (
    Balancer,
    ClusterIdentity,
    Metadata,
    SingleEndpointView,
    SubConnection,
    refused_health,
)
from etcd_aio.base.backoff import Backoff
from etcd_aio.base.deadline import NEVER
from etcd_aio.base.logs import log_of
from etcd_aio.dataclass import dataclass
from etcd_aio.error_handler.credentials import Credentials
from etcd_aio.error_handler.failover import next_avoided, seconds_before_next
from etcd_aio.error_handler.lifetime import Lifetime
from etcd_aio.error_handler.outcome import attempt_of, local_error_of, meaning_of, server_error_of
from etcd_aio.error_handler.reply import LARGE, check_cluster, finish_in_steps
from etcd_aio.error_handler.retry_policy import RetryBudget, RetryPolicy
from etcd_aio.error_handler.retry_verdicts import CallFacts, RetryVerdict, judge_call, may_have_been_applied
from etcd_aio.error_handler.token_manager import TokenManager
from etcd_aio.error_handler.token_state import TokenRefusals, TokenRemedy
from etcd_aio.errors import (
    Attempt,
    AttemptFailure,
    ClientClosedError,
    ClientUsageError,
    ClusterChangedError,
    Delivery,
    EtcdError,
    EtcdTimeoutError,
    LocalReason,
    MalformedReplyError,
    NoAvailableEndpointsError,
    RetryHint,
    ServerError,
    StatusCode,
    UnknownEndpointError,
    with_history,
)
from etcd_aio.methods import Method, Reply, Request
from etcd_aio.observing import ObservedCall
from etcd_aio.transport import RequestMetadata, token_of, with_headers

logger: Final = logging.getLogger("etcd_aio.calls")

_MIN_ATTEMPT_TIME: Final = 1.0  # seconds; less would cut off requests that are merely slow (an election, a big range)
_QUEUE_TIME: Final = 0.001  # seconds for each attempt that the member is working on: a burst does not make it unhealthy
_SLOW_FACTOR: Final = 8.0  # times the 99th percentile: more than slow
_NO_TIME_LEFT: Final = (LocalReason.DEADLINE, LocalReason.GIVEN_UP)
_CLOSED_DURING_CALL: Final = "the client was closed during the call"
_MAYBE_APPLIED: Final = "The write was sent: it may have been applied."
_NOT_APPLIED: Final = "The write was not applied."
_REFUSED_TOO_LATE: Final = "the deadline passed before another token could take the place of one that was refused"


@dataclass(slots=True, eq=False, repr=False)
class CallContext:
    """The common part of all calls of a client.

    Attributes:
        policy: how calls are retried, with the `backoff` and the `budget` that follow from it.
        may_move: an attempt that a member is slow to answer may be given up in favour of another member.
        is_heavy: the calls make the server compute for long: see `Connection.unary`.
        client: name of the client; empty if it has none.
    """

    lifetime: Lifetime
    identity: ClusterIdentity
    policy: RetryPolicy
    random: Callable[[], float]
    metadata: RequestMetadata
    tokens: TokenManager
    credentials: Credentials | None = None
    may_move: bool = True
    is_heavy: bool = False
    client: str = ""
    backoff: Backoff = field(init=False)
    budget: RetryBudget | None = field(init=False)

    def __post_init__(self) -> None:
        self.backoff = self.policy.backoff()
        self.budget = RetryBudget(self.policy.throttling) if self.policy.throttling is not None else None


class CallAttempts(Generic[Request, Reply]):
    """The attempts of one call. `run` is awaited once.

    Args:
        context: the common part of all calls.
        balancer: gives the sub-connections: that of the client, or the view of the only endpoint that it may go to.
        observed: notifies the observers of the call; None if there are none.
        method: the RPC.
        payload: its encoded request.
        needs_leader: a member cannot serve it alone. Whether it carries `hasleader` decides what "no leader" proves.
        deadline: when the call is over, on the loop's clock.
        is_mutation: the call changes the store, so an unknown outcome matters.
        may_repeat: the request may run twice.
        may_retry: the caller allows more than one attempt.
    """

    __slots__ = (
        "_attempts",
        "_avoided",
        "_balancer",
        "_began",
        "_collector",
        "_context",
        "_deadline",
        "_is_mutation",
        "_is_uncertain",
        "_left",
        "_loop",
        "_may_move",
        "_may_repeat",
        "_may_retry",
        "_metadata",
        "_method",
        "_needs_leader",
        "_observed",
        "_payload",
        "_refusals",
        "_sub_connection",
        "_twin",
        "_was_cut_short",
        "_was_unprocessed",
    )

    def __init__(
        self,
        context: CallContext,
        balancer: Balancer | SingleEndpointView,
        observed: ObservedCall | None,
        method: Method[Request, Reply],
        payload: bytes,
        deadline: float,
        is_mutation: bool,
        may_repeat: bool,
        may_retry: bool,
        needs_leader: bool = True,
    ) -> None:
        self._context = context
        self._balancer = balancer
        self._observed = observed
        self._needs_leader = needs_leader
        self._method = method
        self._payload = payload
        self.carry_token()
        self._deadline = deadline
        self._is_mutation = is_mutation
        self._may_repeat = may_repeat
        self._may_retry = may_retry
        self._may_move = (
            may_repeat and may_retry and context.may_move and balancer.may_move and context.policy.max_attempts > 1
        )
        self._loop = asyncio.get_running_loop()
        self._sub_connection: SubConnection | None = None  # of the current attempt
        self._twin: CallAttempts[Request, Reply] | None = None  # the same call, made at the same time elsewhere
        self._attempts: tuple[Attempt, ...] = ()  # that failed
        self._avoided: tuple[SubConnection, ...] = ()
        self._collector: codec.IncrementalDecoder[Reply] | None = None  # of the reply that is arriving, if it is large
        self._refusals: TokenRefusals | None = None  # of its token, if there were any
        self._is_uncertain = False
        self._left: tuple[SubConnection, ...] = ()  # members that looked unhealthy while this call waited there
        self._was_cut_short = False
        self._was_unprocessed = False

    async def run(self, now: float) -> Reply:
        """Make attempts until one succeeds or the verdict is to fail; `now` is the instant of the call."""
        context = self._context
        balancer = self._balancer
        observed = self._observed
        self._began = started = now
        while True:
            sub_connection = balancer.pick(self._avoided, self._needs_leader)
            if sub_connection is None:
                sub_connection = await self._wait_for_pick()
                started = self._loop.time()
            if started >= self._deadline:
                raise self._finish(EtcdTimeoutError())
            self._sub_connection = sub_connection
            if observed is not None:
                observed.attempt_started(sub_connection.endpoint_name)
            try:
                attempt_deadline = self._attempt_deadline(started, sub_connection)
                connection, record, service = sub_connection.begin(started, self._needs_leader)
                try:
                    raw = await connection.unary(
                        self._method.path,
                        self._payload,
                        self._metadata,
                        attempt_deadline,
                        self._collect,
                        self._may_move and (not self._attempts or self._may_leave(sub_connection)),
                        self._deadline,
                        context.is_heavy,
                    )
                except BaseException as error:  # also a cancellation: the attempt is not under way any more
                    sub_connection.end_failed(record, service, started, error)
                    if not isinstance(error, AttemptFailure):
                        self._say_whether_applied(error, is_uncertain=True)
                    raise
                sub_connection.end_answered(service, started)
            except AttemptFailure as failure:
                self._collector = None
                await self._after_failure(failure, sub_connection, self._loop.time() - started)
                started = self._loop.time()
                continue
            if context.budget is not None:
                context.budget.on_success()
            if self._collector is None and len(raw) <= LARGE:
                reply = self._decode(raw, sub_connection, started)
            else:
                decoder = self._collector or self._collect()
                self._collector = None
                if raw:
                    decoder.feed(raw)  # the engine has fed the collector none of it
                reply = await self._decode_in_steps(decoder, sub_connection, started)
            if reply is not None:
                if observed is not None:
                    observed.attempt_succeeded(sub_connection.endpoint_name)
                return reply
            started = self._loop.time()

    def carry_token(self) -> None:
        """Have the next attempts carry the token of now, which may be another one than when the call was made."""
        metadata = self._context.metadata
        self._metadata = metadata.with_leader if self._needs_leader else metadata.plain
        if self._observed is not None:
            self._metadata = with_headers(self._metadata, self._observed.metadata)

    def elsewhere(self) -> "CallAttempts[Request, Reply]":
        """Return the same call once more; neither goes to the member that the other one is on, if there is a third."""
        other = CallAttempts(
            self._context,
            self._balancer,
            self._observed,
            self._method,
            self._payload,
            self._deadline,
            is_mutation=self._is_mutation,
            may_repeat=self._may_repeat,
            may_retry=self._may_retry,
            needs_leader=self._needs_leader,
        )
        other._avoided = (self._sub_connection,) if self._sub_connection is not None else ()
        self._twin, other._twin = other, self
        return other

    # The reply.

    def _decode(self, raw: bytes, sub_connection: SubConnection, started: float) -> Reply | None:
        """Return the reply; None if it came from another cluster and the next endpoint should be tried."""
        try:
            reply = codec.decode(self._method.reply, raw)
            check_cluster(reply, self._context.identity, sub_connection)
        except (MalformedReplyError, ClusterChangedError) as error:
            self._after_bad_reply(error, sub_connection, started)
            return None
        return reply

    async def _decode_in_steps(
        self, decoder: "codec.IncrementalDecoder[Reply]", sub_connection: SubConnection, started: float
    ) -> Reply | None:
        """Do what `_decode` does for a large reply, and let other tasks run in between.

        Args:
            decoder: was fed all of the reply.
            sub_connection: where the reply came from.
            started: when the attempt began.
        """
        try:
            reply = await finish_in_steps(decoder)
            check_cluster(reply, self._context.identity, sub_connection)
        except (MalformedReplyError, ClusterChangedError) as error:
            self._after_bad_reply(error, sub_connection, started)
            return None
        return reply

    def _collect(self) -> "codec.IncrementalDecoder[Reply]":
        """Make the collector of a reply that arrives in pieces."""
        collector = self._collector = codec.IncrementalDecoder(self._method.reply)
        return collector

    def _after_bad_reply(
        self, error: MalformedReplyError | ClusterChangedError, sub_connection: SubConnection, started: float
    ) -> None:
        """Raise the error of a reply that cannot be used, or prepare the attempt on another member."""
        is_of_another_cluster = isinstance(error, ClusterChangedError)
        code = StatusCode.FAILED_PRECONDITION if is_of_another_cluster else StatusCode.INTERNAL
        seconds = self._loop.time() - started
        self._note(Attempt(sub_connection.endpoint_name, code, Delivery.UNKNOWN, seconds, error.message))
        self._is_uncertain = True
        if not (is_of_another_cluster and self._may_repeat and self._may_continue(None)):
            raise self._finish(error) from None
        self._move_on(sub_connection)

    # The failure.

    async def _after_failure(self, failure: AttemptFailure, sub_connection: SubConnection, seconds: float) -> None:
        """Raise the error of a failed attempt, or return when the next attempt may be made."""
        # Its frames hold the request and its metadata, and it is the context of every error that is raised from now on.
        failure.__traceback__ = failure.__cause__ = failure.__context__ = None
        context = self._context
        error = server_error_of(failure, self._method) if failure.delivery is Delivery.ANSWERED else None
        is_known = refused_health(error) is not None  # the connection has noted it
        retry_hint, is_definite = meaning_of(
            error, is_alone=len(self._balancer.endpoints) < 2, asks_for_leader=self._asks_for_leader
        )
        self._note(attempt_of(failure, sub_connection.endpoint_name, seconds))
        self._is_uncertain = self._is_uncertain or may_have_been_applied(failure.delivery, is_definite=is_definite)
        token_remedy = TokenRemedy.RAISE if error is None else self._judge_token(error)
        verdict = judge_call(
            CallFacts(
                failure.delivery,
                retry_hint,
                may_repeat=self._may_repeat,
                may_continue=self._may_continue(failure),
                has_token=token_remedy is not TokenRemedy.RAISE,
                was_unprocessed=self._was_unprocessed,
                is_given_up=failure.reason is LocalReason.GIVEN_UP,
            )
        )
        if verdict is RetryVerdict.FAIL:
            self._raise(failure, error, could_renew=token_remedy is TokenRemedy.RENEW)
        if verdict is RetryVerdict.REFRESH_TOKEN and error is not None and token_remedy is TokenRemedy.RENEW:
            await self._renew_token(error)
            return
        if failure.reason is LocalReason.GIVEN_UP:
            self._left += (sub_connection,)
        self._was_unprocessed = self._was_unprocessed or failure.delivery is Delivery.UNPROCESSED
        # The server may notice an attempt's deadline before this side does.
        self._was_cut_short = self._was_cut_short or failure.code is StatusCode.DEADLINE_EXCEEDED
        is_another_ready = self._move_on(sub_connection)
        self._charge_budget(failure, verdict, is_known=is_known)
        wait = seconds_before_next(
            verdict,
            len(self._attempts),
            self._balancer,
            context.backoff,
            context.random,
            is_another_ready=is_another_ready,
            is_throttled=context.budget is not None and context.budget.is_exhausted,
            pushback=failure.pushback,
        )
        if self._loop.time() + wait >= self._deadline:
            self._raise(failure, error)  # after the wait the error would be the same
        if wait > 0:
            try:
                await context.lifetime.sleep(wait)
            except ClientClosedError:
                raise self._finish(ClientClosedError(_CLOSED_DURING_CALL)) from None
            except asyncio.CancelledError as error_of_wait:
                self._say_whether_applied(error_of_wait, is_uncertain=self._is_uncertain)
                raise

    def _charge_budget(self, failure: AttemptFailure, verdict: RetryVerdict, *, is_known: bool) -> None:
        """Charge the retry budget for an attempt that may have failed because the cluster is overloaded.

        Args:
            failure: how the attempt ended.
            verdict: on it.
            is_known: the member's health shows the failure to all other calls, so that no retry storm can follow.
        """
        if verdict is RetryVerdict.AT_ONCE:
            is_charged = failure.reason is LocalReason.GIVEN_UP
        else:  # a member that refuses a token is healthy
            is_charged = (
                verdict is RetryVerdict.BACKOFF and not is_known and failure.delivery is not Delivery.UNPROCESSED
            )
        if is_charged and self._context.budget is not None:
            self._context.budget.on_failure()

    def _judge_token(self, error: ServerError) -> TokenRemedy:
        """Return what to do about a refusal of the token; `RAISE` for any other error."""
        if error.retry_hint is not RetryHint.REFRESH_TOKEN:
            return TokenRemedy.RAISE
        context = self._context
        if self._refusals is None:
            self._refusals = TokenRefusals()
        return self._refusals.judge(
            error,
            token_of(self._metadata),
            may_renew=context.tokens.may_renew(error),
            endpoints=len(self._balancer.endpoints),
        )

    async def _renew_token(self, error: ServerError) -> None:
        """Have the next attempt carry another token, if there is one."""
        context = self._context
        try:
            has_renewed = await context.tokens.renew(token_of(self._metadata), error, self._deadline)
        except EtcdError as no_token:
            raise self._finish(no_token) from None
        if has_renewed and self._refusals is not None:
            self._refusals.has_renewed = True
        self.carry_token()
        self._metadata = _with_previous_attempts(self._metadata, len(self._attempts))

    async def _wait_for_pick(self) -> SubConnection:
        try:
            return await self._balancer.wait_for_pick(self._deadline, self._avoided, self._needs_leader)
        except (NoAvailableEndpointsError, UnknownEndpointError, ClientUsageError) as error:
            raise self._finish(error) from None
        except asyncio.CancelledError as error:
            self._say_whether_applied(error, is_uncertain=self._is_uncertain)
            raise

    @property
    def _asks_for_leader(self) -> bool:
        return any(name == "hasleader" for name, _ in self._metadata)

    def _may_continue(self, failure: AttemptFailure | None) -> bool:
        context = self._context
        return (
            self._may_retry
            and len(self._attempts) < context.policy.max_attempts
            and not context.lifetime.is_closed
            and self._loop.time() < self._deadline
            and not (
                failure is not None and (failure.reason is LocalReason.REPLY_TOO_LARGE or (failure.pushback or 0) < 0)
            )
        )

    def _move_on(self, sub_connection: SubConnection) -> bool:
        """Prepare the next attempt; returns whether a member is READY that has not failed."""
        self._metadata = _with_previous_attempts(self._metadata, len(self._attempts))
        balancer = self._balancer
        self._avoided, is_another_ready = next_avoided(self._avoided, sub_connection, balancer)
        if self._twin is not None and self._twin._sub_connection is not None:
            avoided = (*self._avoided, self._twin._sub_connection)
            if balancer.has_other(avoided):
                self._avoided = avoided
        self._log_move(self._attempts[-1])
        return is_another_ready

    def _log_move(self, failed: Attempt) -> None:
        """Log an attempt after which the call moves on. Not the text of the failure, which may repeat keys."""
        number, code = len(self._attempts), failed.code.name
        log_of(logger, self._context.client).debug(
            "call %s: attempt %d failed at %s with %s, and the call moves on",
            self._method.name,
            number,
            failed.endpoint,
            code,
            extra={"method": self._method.name, "endpoint": failed.endpoint, "code": code, "attempts": number},
        )

    def _may_leave(self, sub_connection: SubConnection) -> bool:
        """Whether a later attempt of a call that may move may be given up there, to be made elsewhere."""
        return sub_connection not in self._left and len(self._attempts) + 1 < self._context.policy.max_attempts

    def _attempt_deadline(self, now: float, sub_connection: SubConnection) -> float:
        """Return when an attempt must be answered; an answer that has begun may take until the call's own deadline."""
        deadline = self._deadline
        if deadline == NEVER or not self._may_move or self._was_cut_short:
            return deadline
        is_last = len(self._attempts) + 1 >= self._context.policy.max_attempts
        if is_last or sub_connection in self._left or self._balancer.ready_count < 2:
            return deadline
        seconds = (deadline - now) / 2
        slow = self._balancer.p99_latency
        if slow:
            seconds = min(seconds, slow * _SLOW_FACTOR + _QUEUE_TIME * sub_connection.in_flight)
        return min(deadline, now + max(seconds, _MIN_ATTEMPT_TIME))

    # The error.

    def _note(self, attempt: Attempt) -> None:
        """Note a failed attempt, for the call's error and its observers."""
        self._attempts += (attempt,)
        if self._observed is not None:
            self._observed.attempt_failed(attempt)

    def _raise(self, failure: AttemptFailure, error: ServerError | None, *, could_renew: bool = False) -> NoReturn:
        """Raise the error of a failed attempt; `could_renew`: with more time another token would have been fetched."""
        if error is not None and error.retry_hint is RetryHint.REFRESH_TOKEN:
            was_renewed = self._refusals is not None and self._refusals.has_renewed
            self._context.tokens.refused_for_good(
                token_of(self._metadata),
                error,
                self._loop.time(),
                was_renewed=was_renewed,
                by_one=self._balancer.is_part,
            )
            if could_renew and not was_renewed and self._may_retry and self._loop.time() >= self._deadline:
                # An error of the token would say that something is wrong with the user or the password.
                raise self._finish(EtcdTimeoutError(_REFUSED_TOO_LATE)) from None
        raise self._finish(error if error is not None else self._local_error(failure)) from None

    def _local_error(self, failure: AttemptFailure) -> EtcdError:
        """Return the error for an attempt that was not answered."""
        if self._context.lifetime.is_closed:
            return ClientClosedError(_CLOSED_DURING_CALL)
        # After an attempt that was given up there is always another, unless there is no time for it.
        if failure.reason in _NO_TIME_LEFT or self._loop.time() >= self._deadline:
            return EtcdTimeoutError()
        return local_error_of(failure)

    def _say_whether_applied(self, error: BaseException, *, is_uncertain: bool) -> None:
        """Add to a cancellation what is known about a write that it ends; see `portal/call.py`."""
        if self._is_mutation:
            error.add_note(_MAYBE_APPLIED if is_uncertain else _NOT_APPLIED)

    def _finish(self, error: EtcdError) -> EtcdError:
        """Add to an error which call it ends, and its attempts."""
        from etcd_aio.error_handler.description import explain

        explain(error, self._method, self._payload, self._context.credentials)
        seconds = min(self._loop.time(), self._deadline) - self._began
        maybe_applied = self._is_mutation and self._is_uncertain
        return with_history(error, self._attempts, maybe_applied=maybe_applied, seconds=seconds)


def _with_previous_attempts(metadata: Metadata, attempts: int) -> Metadata:
    """Return the metadata of a retry, which says how many attempts came before (gRPC A6)."""
    kept = tuple(pair for pair in metadata if pair[0] != "grpc-previous-rpc-attempts")
    return (*kept, ("grpc-previous-rpc-attempts", str(attempts)))

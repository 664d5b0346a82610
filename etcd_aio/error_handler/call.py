"""Call: one unary call on its way through its attempts.

Knows: the balancer, the verdict table, one deadline. Never knows: what the request means, or HTTP/2.

The first attempt is the short path: pick, attempt, decode, check the cluster. Everything else happens only after a
failure: judge it by the table, wait if a wait is due, pick another endpoint. An attempt of a call that may run twice
leaves a member that looks bad (`balancer/health.py`), but a call leaves each member only once: where all were left in
vain it stays until its deadline, since what is slow everywhere must be able to finish. Where no other call shows that a
member is bad, the attempt's deadline does: several times what the slowest answers take, and at most half of the time
left while others could take it over. Once that passed, the next attempt gets all the rest.
"""

import asyncio
import copy
from collections.abc import Callable
from typing import Final, Generic, NoReturn

from etcd_aio import codec
from etcd_aio.balancer import Balancer, ClusterIdentity, Metadata, SingleEndpointView, SubConnection
from etcd_aio.deadline import NEVER
from etcd_aio.error_handler.answer import answer
from etcd_aio.error_handler.credentials import Credentials
from etcd_aio.error_handler.description import explain
from etcd_aio.error_handler.large import LARGE, finished
from etcd_aio.error_handler.lifetime import Lifetime
from etcd_aio.error_handler.retry import RetryBudget, RetryPolicy, wait_before
from etcd_aio.error_handler.token_manager import TokenManager
from etcd_aio.error_handler.token_refusals import TokenRefusals, TokenRemedy
from etcd_aio.error_handler.verdicts import CallFacts, Verdict, judge_call, may_have_been_applied
from etcd_aio.errors import (
    Attempt,
    AttemptFailure,
    ClientClosedError,
    ClusterChangedError,
    ConnectionLostError,
    Delivery,
    EtcdError,
    EtcdTimeoutError,
    MalformedReplyError,
    NoAvailableEndpointsError,
    NoLeaderError,
    NotSupportedForLearnerError,
    Remedy,
    ReplyTooLargeError,
    ServerError,
    StatusCode,
    UnknownEndpointError,
    with_history,
)
from etcd_aio.methods import Method, Reply, Request
from etcd_aio.transport import RequestMetadata, token_of

_MIN_ATTEMPT_TIME: Final = 1.0  # seconds; less would cut off what is merely slow (an election, a big range)
_QUEUE_TIME: Final = 0.001  # seconds for each attempt that the member has in hand: a burst is no trouble of its
_SLOW_FACTOR: Final = 8.0  # times the 99th percentile: more than slow
_CLOSED_MEANWHILE: Final = "the client was closed while the call was under way"
_NO_CONNECTION_CODES: Final = frozenset({StatusCode.UNAVAILABLE, StatusCode.CANCELLED})


class CallContext:
    """What all calls of a client share, or all that must go to one endpoint: those have nowhere else to go.

    Attributes:
        may_move: an attempt that a member is slow to answer may be given up for one on another member.
        is_heavy: the calls have the server compute for long: see `Connection.unary`.
    """

    __slots__ = (
        *("backoff", "balancer", "budget", "credentials", "identity", "is_heavy", "lifetime", "may_move", "metadata"),
        *("policy", "random", "tokens"),
    )

    def __init__(
        self,
        balancer: Balancer,
        lifetime: Lifetime,
        identity: ClusterIdentity,
        policy: RetryPolicy,
        random: Callable[[], float],
        metadata: RequestMetadata,
        tokens: TokenManager,
        credentials: Credentials | None = None,
    ) -> None:
        self.balancer: Balancer | SingleEndpointView = balancer
        self.may_move = True
        self.is_heavy = False
        self.lifetime = lifetime
        self.identity = identity
        self.policy = policy
        self.backoff = policy.backoff()
        self.budget = RetryBudget(policy.throttling) if policy.throttling is not None else None
        self.random = random
        self.metadata = metadata
        self.tokens = tokens
        self.credentials = credentials

    def only(self, endpoint: SingleEndpointView) -> "CallContext":
        """The same for calls that must go to one endpoint."""
        found = copy.copy(self)
        found.balancer = endpoint
        found.may_move = False
        return found


class Call(Generic[Request, Reply]):
    """One call. `run` is awaited once.

    Args:
        context: what all calls share.
        method: which RPC.
        payload: its encoded request.
        metadata: its metadata; whether it carries `hasleader` decides what "no leader" proves.
        needs_leader: a member cannot serve it alone.
        deadline: when the call is over, on the loop's clock.
        is_mutation: it changes the store, so an unknown outcome matters.
        may_repeat: it may run twice.
        may_retry: the caller allows more than one attempt.
    """

    __slots__ = (
        "_asked",
        "_attempts",
        "_avoid",
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
        "_payload",
        "_refusals",
        "_was_cut_short",
        "_was_unprocessed",
    )

    def __init__(
        self,
        context: CallContext,
        method: Method[Request, Reply],
        payload: bytes,
        metadata: Metadata,
        deadline: float,
        *,
        is_mutation: bool,
        may_repeat: bool,
        may_retry: bool,
        needs_leader: bool = True,
    ) -> None:
        self._context = context
        self._needs_leader = needs_leader
        self._method = method
        self._payload = payload
        self._metadata = metadata
        self._deadline = deadline
        self._is_mutation = is_mutation
        self._may_repeat = may_repeat
        self._may_retry = may_retry
        self._may_move = may_repeat and may_retry and context.may_move and context.policy.max_attempts > 1
        self._loop = asyncio.get_running_loop()
        self._asked: SubConnection | None = None
        self._attempts: tuple[Attempt, ...] = ()
        self._avoid: tuple[SubConnection, ...] = ()
        self._collector: codec.Collector[Reply] | None = None  # of the reply that is coming, if it is large
        self._refusals: TokenRefusals | None = None  # of its token, if there were any
        self._is_uncertain = False
        self._left: tuple[SubConnection, ...] = ()  # members that looked bad while this call waited there
        self._was_cut_short = False
        self._was_unprocessed = False

    async def run(self, now: float) -> Reply:
        """Make attempts until one succeeds or the verdict is to raise; `now` is the instant of the call."""
        context = self._context
        balancer = context.balancer
        self._began = started = now
        while True:
            sub_connection = balancer.pick(self._avoid, self._needs_leader)
            if sub_connection is None:
                sub_connection = await self._wait_for_pick()
                started = self._loop.time()
            if started >= self._deadline:
                raise self._finish(EtcdTimeoutError())
            self._asked = sub_connection
            try:
                raw = await sub_connection.unary(
                    self._method.path,
                    self._payload,
                    self._metadata,
                    self._attempt_deadline(started, sub_connection),
                    self._collect,
                    needs_leader=self._needs_leader,
                    may_move=self._may_move and (not self._attempts or self._may_leave(sub_connection)),
                    whole_by=self._deadline,
                    is_heavy=context.is_heavy,
                )
            except AttemptFailure as failure:
                self._collector = None
                await self._after(failure, sub_connection, self._loop.time() - started)
                started = self._loop.time()
                continue
            if context.budget is not None:
                context.budget.on_success()
            if self._collector is None and len(raw) <= LARGE:
                reply = self._decode(raw, sub_connection, started)
            else:
                reply = await self._decode_large(raw, sub_connection, started)
            if reply is not None:
                return reply
            started = self._loop.time()

    def elsewhere(self) -> "Call[Request, Reply]":
        """The same call once more, which does not begin with the member that this one asks now."""
        other = Call(
            self._context,
            self._method,
            self._payload,
            self._metadata,
            self._deadline,
            is_mutation=self._is_mutation,
            may_repeat=self._may_repeat,
            may_retry=self._may_retry,
            needs_leader=self._needs_leader,
        )
        other._avoid = (self._asked,) if self._asked is not None else ()
        return other

    # The answer.

    def _decode(self, raw: bytes, sub_connection: SubConnection, started: float) -> Reply | None:
        """The reply; None if it came from a wrong cluster and another endpoint is to be asked."""
        try:
            reply = codec.decode(self._method.reply, raw)
        except MalformedReplyError as error:
            raise self._malformed(error, sub_connection, started) from None
        return self._checked(reply, sub_connection, started)

    def _collect(self) -> "codec.Collector[Reply]":
        """The collector of a reply that comes in pieces."""
        collector = self._collector = codec.Collector(self._method.reply)
        return collector

    async def _decode_large(self, rest: bytes, sub_connection: SubConnection, started: float) -> Reply | None:
        """What `_decode` does, letting others run in between: see `large`.

        Args:
            rest: what the engine has not given to the collector, which is nothing or all.
            sub_connection: where it came from.
            started: when the attempt began.
        """
        collector = self._collector or self._collect()
        self._collector = None
        if rest:
            collector.feed(rest)
        try:
            reply = await finished(collector)
        except MalformedReplyError as error:
            raise self._malformed(error, sub_connection, started) from None
        return self._checked(reply, sub_connection, started)

    def _malformed(self, error: MalformedReplyError, sub_connection: SubConnection, started: float) -> EtcdError:
        self._remember(sub_connection, error.message, StatusCode.INTERNAL, Delivery.UNKNOWN, started)
        return self._finish(error)

    def _checked(self, reply: Reply, sub_connection: SubConnection, started: float) -> Reply | None:
        header = getattr(reply, "header", None)
        identity = self._context.identity
        if header is None:
            return reply
        if header.raft_term != identity.raft_term:
            identity.note_term(header.raft_term)
        if header.cluster_id != identity.cluster_id:
            try:
                identity.check(header.cluster_id, sub_connection.endpoint_name)
            except ClusterChangedError as error:
                sub_connection.reject(error)
                self._remember(sub_connection, error.message, StatusCode.FAILED_PRECONDITION, Delivery.UNKNOWN, started)
                if not (self._may_repeat and self._may_continue(None)):
                    raise self._finish(error) from None
                self._move_on(sub_connection)
                return None
        return reply

    # The failure.

    async def _after(self, failure: AttemptFailure, sub_connection: SubConnection, seconds: float) -> None:
        """Do what a failed attempt calls for, and return when the next one is to be made."""
        # What it says becomes a note of the error. Its frames hold the request and its metadata, and every error that
        # is raised from now on has it as its context.
        failure.__traceback__ = failure.__cause__ = failure.__context__ = None
        context = self._context
        error = answer(failure, self._method) if failure.delivery is Delivery.ANSWERED else None
        is_known = sub_connection.note_refusal(error)
        remedy, is_definite = self._meaning(error)
        self._attempts += (
            Attempt(sub_connection.endpoint_name, failure.code, failure.delivery, seconds, failure.message),
        )
        self._is_uncertain = self._is_uncertain or may_have_been_applied(failure.delivery, is_definite=is_definite)
        token_remedy = TokenRemedy.RAISE if error is None else self._judge_token(error)
        facts = CallFacts(
            failure.delivery,
            remedy,
            may_repeat=self._may_repeat,
            may_continue=self._may_continue(failure),
            has_token=token_remedy is not TokenRemedy.RAISE,
            was_unprocessed=self._was_unprocessed,
            is_given_up=failure.is_given_up,
        )
        verdict = judge_call(facts)
        if verdict is Verdict.REFRESH_TOKEN and error is not None and token_remedy is TokenRemedy.RENEW:
            await self._renew_token(error)
            return
        if verdict is Verdict.FAIL:
            self._raise(failure, error)
        if failure.is_given_up:
            self._left += (sub_connection,)
        self._was_unprocessed = self._was_unprocessed or failure.delivery is Delivery.UNPROCESSED
        # The server may notice an attempt's deadline before this side does.
        self._was_cut_short = self._was_cut_short or failure.code is StatusCode.DEADLINE_EXCEEDED
        is_another_ready = self._move_on(sub_connection)
        is_known = is_known or verdict is Verdict.REFRESH_TOKEN  # the member is well
        wait = self._due_wait(failure, verdict, is_another_ready=is_another_ready, is_known=is_known)
        if self._loop.time() + wait >= self._deadline:
            self._raise(failure, error)  # waiting on would only make the same error later
        if wait > 0:
            try:
                await context.lifetime.sleep(wait)
            except ClientClosedError:
                raise self._finish(ClientClosedError(_CLOSED_MEANWHILE)) from None

    def _judge_token(self, error: ServerError) -> TokenRemedy:
        """What to do about a refusal, if it is one of the token."""
        if error.remedy is not Remedy.REFRESH_TOKEN:
            return TokenRemedy.RAISE
        context = self._context
        if self._refusals is None:
            self._refusals = TokenRefusals()
        return self._refusals.judge(
            error,
            token_of(self._metadata),
            may_renew=context.tokens.may_renew(error),
            endpoints=len(context.balancer.endpoints),
        )

    async def _renew_token(self, error: ServerError) -> None:
        """See to it that the next attempt carries another token, if there is one."""
        context = self._context
        try:
            has_renewed = await context.tokens.renew(token_of(self._metadata), error, self._deadline)
        except EtcdError as lost:
            raise self._finish(lost) from None
        if has_renewed and self._refusals is not None:
            self._refusals.has_renewed = True
        metadata = context.metadata.with_leader if self._asks_for_leader else context.metadata.plain
        self._metadata = _with_previous_attempts(metadata, len(self._attempts))

    def _due_wait(self, failure: AttemptFailure, verdict: Verdict, *, is_another_ready: bool, is_known: bool) -> float:
        """Seconds to wait before the next attempt.

        Args:
            failure: what came of the last one.
            verdict: on it.
            is_another_ready: there is a READY member that has not failed.
            is_known: the member's health tells it to all other calls, so that no storm can follow from it.
        """
        context = self._context
        ready = context.balancer.ready_count
        if failure.is_given_up and context.budget is not None:
            context.budget.on_failure()
        if verdict is Verdict.AT_ONCE:
            if is_another_ready or not ready:
                return 0.0
            # "At once" is about the next endpoint. Where only those are left that failed, all attempts would be used up
            # in no time, perhaps before the end of a connection is noticed.
            return context.backoff.wait(len(self._attempts) // ready - 1, context.random)
        if context.budget is not None and not is_known and failure.delivery is not Delivery.UNPROCESSED:
            context.budget.on_failure()
        return wait_before(
            len(self._attempts),
            endpoints=len(context.balancer.endpoints),
            backoff=context.backoff,
            is_throttled=context.budget is not None and context.budget.is_exhausted,
            pushback=failure.pushback,
            random=context.random,
        )

    async def _wait_for_pick(self) -> SubConnection:
        try:
            return await self._context.balancer.wait_for_pick(self._deadline, self._avoid, self._needs_leader)
        except (NoAvailableEndpointsError, UnknownEndpointError, ClientClosedError) as error:
            raise self._finish(error) from None

    def _meaning(self, error: ServerError | None) -> tuple[Remedy, bool]:
        """What an answer asks for, and whether it proves that nothing was done; for this very call."""
        if error is None:
            return Remedy.RAISE, False
        if isinstance(error, NoLeaderError) and not self._asks_for_leader:
            # Without `hasleader` the member looked for a leader only after it had taken the request.
            return Remedy.RETRY_IF_REPEATABLE, False
        if isinstance(error, NotSupportedForLearnerError) and len(self._context.balancer.endpoints) < 2:
            return Remedy.RAISE, True
        return error.remedy, error.is_definite

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
            and not (failure is not None and (failure.is_final or (failure.pushback or 0) < 0))
        )

    def _move_on(self, sub_connection: SubConnection) -> bool:
        """Prepare the next attempt: avoid what has failed, until all have, then only what failed last.

        Returns whether one is READY that has not failed.
        """
        self._metadata = _with_previous_attempts(self._metadata, len(self._attempts))
        avoid = (*self._avoid, sub_connection)
        is_another_ready = self._context.balancer.has_other(avoid)
        self._avoid = avoid if is_another_ready else (sub_connection,)
        return is_another_ready

    def _may_leave(self, sub_connection: SubConnection) -> bool:
        """Whether a later attempt of a call that may move may be given up there, to be made elsewhere."""
        return sub_connection not in self._left and len(self._attempts) + 1 < self._context.policy.max_attempts

    def _attempt_deadline(self, now: float, sub_connection: SubConnection) -> float:
        """By when an attempt must be answered; an answer that has begun may take until the call's own deadline."""
        deadline = self._deadline
        if deadline == NEVER or not self._may_repeat or not self._may_retry or self._was_cut_short:
            return deadline
        if not self._context.may_move:
            return deadline
        is_last = len(self._attempts) + 1 >= self._context.policy.max_attempts
        if is_last or sub_connection in self._left or self._context.balancer.ready_count < 2:
            return deadline
        seconds = (deadline - now) / 2
        slow = self._context.balancer.slow
        if slow:
            seconds = min(seconds, slow * _SLOW_FACTOR + _QUEUE_TIME * sub_connection.in_flight)
        return min(deadline, now + max(seconds, _MIN_ATTEMPT_TIME))

    # The error.

    def _raise(self, failure: AttemptFailure, error: ServerError | None) -> NoReturn:
        if error is not None and error.remedy is Remedy.REFRESH_TOKEN:
            was_renewed = self._refusals is not None and self._refusals.has_renewed
            self._context.tokens.refused_for_good(
                token_of(self._metadata), error, self._loop.time(), was_renewed=was_renewed
            )
        raise self._finish(error if error is not None else self._local_error(failure)) from None

    def _local_error(self, failure: AttemptFailure) -> EtcdError:
        """The error for an attempt that got no answer."""
        if self._context.lifetime.is_closed:
            return ClientClosedError(_CLOSED_MEANWHILE)
        # What is given up always has another attempt to come, unless there is no time for one.
        if failure.is_local_deadline or failure.is_given_up or self._loop.time() >= self._deadline:
            return EtcdTimeoutError()
        if failure.is_final:
            return ReplyTooLargeError(failure.message, code=failure.code)
        if failure.code in _NO_CONNECTION_CODES:
            return ConnectionLostError(failure.message, code=failure.code)
        return MalformedReplyError(failure.message, code=failure.code)

    def _finish(self, error: EtcdError) -> EtcdError:
        context = self._context
        explain(error, self._method, self._payload, context.credentials)
        seconds = min(self._loop.time(), self._deadline) - self._began
        maybe_applied = self._is_mutation and self._is_uncertain
        return with_history(error, self._attempts, maybe_applied=maybe_applied, seconds=seconds)

    def _remember(
        self, sub_connection: SubConnection, message: str, code: StatusCode, delivery: Delivery, started: float
    ) -> None:
        """Note an attempt whose answer could not be used."""
        seconds = self._loop.time() - started
        self._attempts += (Attempt(sub_connection.endpoint_name, code, delivery, seconds, message),)
        self._is_uncertain = True


def _with_previous_attempts(metadata: Metadata, attempts: int) -> Metadata:
    """The metadata of a repetition, which says how many attempts came before (gRPC A6)."""
    kept = tuple(pair for pair in metadata if pair[0] != "grpc-previous-rpc-attempts")
    return (*kept, ("grpc-previous-rpc-attempts", str(attempts)))

"""Outcomes: what a failed attempt means, as an error and as facts for the decision tables. Pure.

Calls and streams share these rules. Only one thing differs: a call that ran out of time raises a timeout, which it
checks itself; for a stream the deadline is that of opening it, so a stream that was not open in time has no connection.
"""

from typing import Final

from etcd_aio import errors
from etcd_aio.codec import leading_watch_id
from etcd_aio.dataclass import dataclass
from etcd_aio.error_handler.retry_verdicts import StreamFacts
from etcd_aio.errors import (
    Attempt,
    AttemptFailure,
    ConnectionLostError,
    Delivery,
    EtcdError,
    LocalReason,
    MalformedReplyError,
    NoLeaderError,
    NotSupportedForLearnerError,
    ReplyTooLargeError,
    RetryHint,
    ServerError,
    StatusCode,
    UnknownServerError,
    with_history,
)
from etcd_aio.methods import WATCH, AnyMethod

_SAME_AGAIN: Final = (LocalReason.REPLY_TOO_LARGE, LocalReason.MALFORMED)
_NO_CONNECTION: Final = frozenset({StatusCode.UNAVAILABLE, StatusCode.CANCELLED, StatusCode.DEADLINE_EXCEEDED})


def attempt_of(failure: AttemptFailure, endpoint: str, seconds: float) -> Attempt:
    """Return the record of a failed attempt, which the error of its call lists."""
    return Attempt(endpoint, failure.code, failure.delivery, seconds, failure.message)


def server_error_of(failure: AttemptFailure, method: AnyMethod) -> ServerError:
    """Return the error that the server answered. If the RPC is missing, it names the RPC and the etcd that has it."""
    return errors.server_error(failure.code, failure.message, feature=method.name, needs=method.since)


def local_error_of(failure: AttemptFailure) -> EtcdError:
    """Return the error for an attempt that was not answered."""
    if failure.reason is LocalReason.REPLY_TOO_LARGE:
        return ReplyTooLargeError(failure.message, code=failure.code)
    if failure.code in _NO_CONNECTION:
        return ConnectionLostError(failure.message, code=failure.code)
    return MalformedReplyError(failure.message, code=failure.code)


def meaning_of(error: EtcdError | None, *, is_alone: bool, asks_for_leader: bool = True) -> tuple[RetryHint, bool]:
    """Return what an error of the server asks for, and whether it proves that nothing was done.

    Args:
        error: the server's error; None, or an error of this side, if the server did not answer.
        is_alone: the client has no other endpoint.
        asks_for_leader: the request carried `hasleader`.
    """
    if not isinstance(error, ServerError):
        return RetryHint.RAISE, False
    if isinstance(error, NoLeaderError) and not asks_for_leader:
        # Without `hasleader` the member looked for a leader only after it had accepted the request.
        return RetryHint.RETRY_IF_REPEATABLE, False
    if is_alone and isinstance(error, NotSupportedForLearnerError):
        return RetryHint.RAISE, True
    return error.retry_hint, error.is_definite


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """How a stream ended.

    Attributes:
        facts: the input of the verdict.
        error: the error for the stream's handler.
        pushback: seconds that the server asks this client to wait; None if it does not.
        is_unneeded: nothing failed; the stream was not needed any more.
        is_routine: nothing failed: the connection was renewed, or its endpoint is no longer used.
    """

    facts: StreamFacts
    error: EtcdError
    pushback: float | None = None
    is_unneeded: bool = False
    is_routine: bool = False

    @classmethod
    def abandoned(cls, reason: str, *, is_routine: bool = False) -> "StreamEnd":
        """This side gave up the stream, or the server ended it with OK although it was needed."""
        return cls(StreamFacts(None), ConnectionLostError(reason), is_routine=is_routine)

    @classmethod
    def not_needed(cls) -> "StreamEnd":
        """The stream is not needed any more."""
        return cls(StreamFacts(None), ConnectionLostError("the stream is not needed any more"), is_unneeded=True)

    @classmethod
    def wrong_cluster(cls, error: EtcdError) -> "StreamEnd":
        """A member of another cluster answered: its reply is dropped, and another member is tried."""
        return cls(StreamFacts(None), error)

    @classmethod
    def malformed(cls, error: MalformedReplyError) -> "StreamEnd":
        """A reply could not be decoded; the next stream would begin with the same reply."""
        return cls(StreamFacts(Delivery.UNKNOWN, is_final=True), error)

    @classmethod
    def from_failure(
        cls, failure: AttemptFailure, method: AnyMethod, endpoint: str, seconds: float, *, is_alone: bool
    ) -> "StreamEnd":
        """The transport reports how the stream ended.

        Args:
            failure: the report.
            method: of the stream.
            endpoint: where the stream was open.
            seconds: how long the stream lived.
            is_alone: the client has no other endpoint.
        """
        if failure.delivery is Delivery.ANSWERED:
            error: EtcdError = server_error_of(failure, method)
        else:
            error = local_error_of(failure)
            if isinstance(error, ReplyTooLargeError):
                beginning = failure.take_beginning()
                error.watch_id = leading_watch_id(beginning) if method is WATCH else None
        retry_hint, _ = meaning_of(error, is_alone=is_alone)
        facts = StreamFacts(
            failure.delivery,
            retry_hint,
            isinstance(error, UnknownServerError),
            failure.reason in _SAME_AGAIN,
        )
        attempts = (attempt_of(failure, endpoint, seconds),)
        return cls(facts, with_history(error, attempts, maybe_applied=False, seconds=seconds), failure.pushback)

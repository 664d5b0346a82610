"""Ending: how a supervised stream ended, as facts for the verdict and as the error that it means. Pure.

Knows: what the transport and this side can say of an end. Never knows: what follows from it (`stream_verdict.py`).
"""

from dataclasses import dataclass
from typing import Final

from etcd_aio.codec import leading_watch_id
from etcd_aio.error_handler.answer import answer
from etcd_aio.error_handler.verdicts import StreamFacts
from etcd_aio.errors import (
    Attempt,
    AttemptFailure,
    ConnectionLostError,
    Delivery,
    EtcdError,
    MalformedReplyError,
    NotSupportedForLearnerError,
    Remedy,
    ReplyTooLargeError,
    ServerError,
    StatusCode,
    UnknownServerError,
    with_history,
)
from etcd_aio.methods import WATCH, AnyMethod

_NO_CONNECTION: Final = frozenset({StatusCode.UNAVAILABLE, StatusCode.CANCELLED, StatusCode.DEADLINE_EXCEEDED})


@dataclass(frozen=True, slots=True)
class Ending:
    """How a stream ended.

    Attributes:
        facts: what the verdict depends on.
        error: what the conversation is told.
        pushback: seconds the server asks us to wait, None if it does not.
        is_unneeded: nothing failed, nobody needed it any more.
    """

    facts: StreamFacts
    error: EtcdError
    pushback: float | None = None
    is_unneeded: bool = False


def left(reason: str) -> Ending:
    """This side gave the stream up, or the server ended it with OK though it was needed."""
    return Ending(StreamFacts(None), ConnectionLostError(reason))


def unneeded() -> Ending:
    """Nobody needs the stream any more."""
    return Ending(StreamFacts(None), ConnectionLostError("nobody needs the stream"), is_unneeded=True)


def stranger(error: EtcdError) -> Ending:
    """A member of another cluster answered: what it says is not taken, and another member is asked."""
    return Ending(StreamFacts(None), error)


def unreadable(error: MalformedReplyError) -> Ending:
    """A reply is none; the next stream would begin with the same."""
    return Ending(StreamFacts(Delivery.UNKNOWN, is_final=True), error)


def failed(failure: AttemptFailure, method: AnyMethod, endpoint: str, seconds: float, *, is_alone: bool) -> Ending:
    """The transport says how it ended.

    Args:
        failure: what it says.
        method: of the stream.
        endpoint: where.
        seconds: how long the stream lived.
        is_alone: the client has no other endpoint.
    """
    error = _error_of(failure, method)
    remedy = error.remedy if isinstance(error, ServerError) else Remedy.RAISE
    if is_alone and isinstance(error, NotSupportedForLearnerError):
        remedy = Remedy.RAISE
    facts = StreamFacts(failure.delivery, remedy, isinstance(error, UnknownServerError), failure.is_final)
    attempt = Attempt(endpoint, failure.code, failure.delivery, seconds, failure.message)
    return Ending(facts, with_history(error, (attempt,), maybe_applied=False, seconds=seconds), failure.pushback)


def unexpected_error(error: Exception) -> EtcdError:
    """Something raised that must not. What it says may hold values, so only its kind is told, and itself as cause."""
    if isinstance(error, EtcdError):
        return error
    wrapped = EtcdError(f"ended by a mistake on this side: {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def _error_of(failure: AttemptFailure, method: AnyMethod) -> EtcdError:
    if failure.delivery is Delivery.ANSWERED:
        return answer(failure, method)
    if failure.is_final:
        error = ReplyTooLargeError(failure.message, code=failure.code)
        beginning = failure.take_beginning()
        if method is WATCH:
            error.watch_id = leading_watch_id(beginning)
        return error
    if failure.code in _NO_CONNECTION:
        return ConnectionLostError(failure.message, code=failure.code)
    return MalformedReplyError(failure.message, code=failure.code)

"""Verdicts: what follows from a failed attempt of a call, and from the end of a stream. Two pure decision tables.

Knows: how far an attempt got, what the server's answer asks for, what the call or the stream allows. Never knows:
clocks, endpoints, tokens, or how a verdict is carried out.

A failed attempt of a call leaves its request in one of three places. Either the request surely did nothing (unsent,
unprocessed, or refused before it could run); or it may have been carried out (no answer, or an answer that etcd also
gives to requests that it commits later); or the server's answer is final. In the first case the request may always be
sent again, in the second only if running twice does no harm, in the third never.

A stream does not ask whether its requests may run twice, since its handler sends all of them again on the next stream.
The only question is whether another stream would fare better. It would if only this connection or this member is at
fault: at once if the member did not answer; after the backoff if it refused, since the other members probably refuse
too. It would not if the server rejects the requests, or if this side rejects the reply.

Each table works in two steps. The facts are read from top to bottom into one situation; the table gives each situation
exactly one verdict.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from etcd_aio.dataclass import dataclass
from etcd_aio.errors import Delivery, RetryHint


class RetryVerdict(Enum):
    """The next step."""

    FAIL = "the call raises its error; the stream ends"
    AT_ONCE = "try the next endpoint at once"
    BACKOFF = "try the next endpoint after the backoff"
    REFRESH_TOKEN = "refresh the token, then try again"  # noqa: S105 - no password


# --- calls ---


class CallSituation(Enum):
    """The state after a failed attempt, in the order in which the facts are examined."""

    NOTHING_LEFT = "no time or attempts are left, or the caller or the server forbids another attempt"
    UNSENT = "the request never left this machine"
    UNPROCESSED = "the server guarantees that it did nothing"
    GIVEN_UP = "this side stopped waiting for the member, since other members answer"
    UNPROCESSED_AGAIN = "the server guarantees that it did nothing, and not for the first time in this call"
    TOKEN_REFUSED = "the server refused the token"  # noqa: S105 - no password
    REFUSED = "the server refused the request before it could run, and another member may accept it"
    UNCERTAIN_ANSWER = "the server answered, but may still carry out the request"
    NO_ANSWER = "the request was sent and no answer came"
    FINAL_ANSWER = "the server's answer is final"


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Everything that the verdict on a failed attempt depends on.

    Attributes:
        delivery: how far the attempt got.
        retry_hint: what the server's answer asks for; only examined if there was an answer.
        may_repeat: the RPC is repeatable, or the caller declared the call idempotent.
        may_continue: time and attempts are left, and neither the caller (`retry="never"`) nor the server (a negative
            pushback) forbids another attempt.
        has_token: a new token can be fetched, and was not fetched for this very failure yet.
        was_unprocessed: an earlier attempt of the call was unprocessed too.
        is_given_up: this side gave the attempt up in favour of the next.
    """

    delivery: Delivery
    retry_hint: RetryHint
    may_repeat: bool
    may_continue: bool
    has_token: bool = False
    was_unprocessed: bool = False
    is_given_up: bool = False


_C, _V = CallSituation, RetryVerdict

# situation: (verdict if the call may run twice, verdict if it must not)
CALL_VERDICTS: Final[Mapping[CallSituation, tuple[RetryVerdict, RetryVerdict]]] = {
    _C.NOTHING_LEFT: (_V.FAIL, _V.FAIL),
    _C.UNSENT: (_V.AT_ONCE, _V.AT_ONCE),
    _C.UNPROCESSED: (_V.AT_ONCE, _V.AT_ONCE),
    _C.GIVEN_UP: (_V.AT_ONCE, _V.FAIL),  # nothing refused it, so there is no reason to wait; mutations are not given up
    # gRPC A6: once a request has reached servers, transparent retry is for the first refusal only.
    _C.UNPROCESSED_AGAIN: (_V.BACKOFF, _V.BACKOFF),
    _C.TOKEN_REFUSED: (_V.REFRESH_TOKEN, _V.REFRESH_TOKEN),
    _C.REFUSED: (_V.BACKOFF, _V.BACKOFF),
    _C.UNCERTAIN_ANSWER: (_V.BACKOFF, _V.FAIL),
    _C.NO_ANSWER: (_V.BACKOFF, _V.FAIL),
    _C.FINAL_ANSWER: (_V.FAIL, _V.FAIL),
}


def classify_call(facts: CallFacts) -> CallSituation:
    """Return the first situation that holds."""
    if not facts.may_continue:
        return _C.NOTHING_LEFT
    if facts.delivery is Delivery.UNSENT:
        return _C.UNSENT
    if facts.delivery is Delivery.UNPROCESSED:
        return _C.UNPROCESSED_AGAIN if facts.was_unprocessed else _C.UNPROCESSED
    if facts.delivery is Delivery.UNKNOWN:
        return _C.GIVEN_UP if facts.is_given_up else _C.NO_ANSWER
    if facts.retry_hint is RetryHint.REFRESH_TOKEN:
        return _C.TOKEN_REFUSED if facts.has_token else _C.FINAL_ANSWER
    if facts.retry_hint is RetryHint.RETRY_ELSEWHERE:
        return _C.REFUSED
    if facts.retry_hint is RetryHint.RETRY_IF_REPEATABLE:
        return _C.UNCERTAIN_ANSWER
    return _C.FINAL_ANSWER


def judge_call(facts: CallFacts) -> RetryVerdict:
    """Return the verdict on a failed attempt of a call."""
    if_repeatable, if_not = CALL_VERDICTS[classify_call(facts)]
    return if_repeatable if facts.may_repeat else if_not


def may_have_been_applied(delivery: Delivery, *, is_definite: bool) -> bool:
    """Whether the server may have carried out, or may yet carry out, the request of an attempt.

    Args:
        delivery: how far the attempt got.
        is_definite: the server's answer proves that nothing was done; only examined if there was an answer.
    """
    return delivery is Delivery.UNKNOWN or (delivery is Delivery.ANSWERED and not is_definite)


# --- streams ---


class StreamSituation(Enum):
    """How a stream ended, in the order in which the facts are examined."""

    UNACCEPTABLE = "this side rejects the reply, and another stream would bring the same reply"
    PUT_OFF = "the server rejects one request, which the stream's handler will send later, and alone"
    LEFT = "this side ended the stream, to send other requests or to move; or the server ended it with OK"
    LOST = "no gRPC status came back"
    TOKEN_REFUSED = "the server refused the token"  # noqa: S105 - no password
    REFUSED = "the server ended the stream for a temporary reason, or for a reason that concerns one member"
    REFUSED_FOR_GOOD = "the server rejected a request"


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """Everything that the verdict on a stream that ended depends on.

    Attributes:
        delivery: how far a failed stream got; None if it did not fail (this side or the server ended it with OK).
        retry_hint: what the server's answer asks for; only examined if there was an answer.
        is_unforeseen: the answer is not in etcd's list of errors, so it has no status of its own.
        is_final: this side rejects the reply, and another stream would bring the same reply.
        will_retry_differently: unless the stream's handler changes its requests, which it will. The same holds for an
            answer that rejects one of them.
        has_token: a new token can be fetched, and was not fetched too often already.
        others_may_serve: the member does not know the method, but another member may.
    """

    delivery: Delivery | None
    retry_hint: RetryHint = RetryHint.RAISE
    is_unforeseen: bool = False
    is_final: bool = False
    will_retry_differently: bool = False
    has_token: bool = False
    others_may_serve: bool = False


_S = StreamSituation

STREAM_VERDICTS: Final[Mapping[StreamSituation, RetryVerdict]] = {
    _S.UNACCEPTABLE: _V.FAIL,
    _S.PUT_OFF: _V.AT_ONCE,
    _S.LEFT: _V.AT_ONCE,
    _S.LOST: _V.AT_ONCE,
    _S.TOKEN_REFUSED: _V.REFRESH_TOKEN,
    _S.REFUSED: _V.BACKOFF,
    _S.REFUSED_FOR_GOOD: _V.FAIL,
}


def classify_stream(facts: StreamFacts) -> StreamSituation:
    """Return the first situation that holds."""
    if facts.is_final and not facts.will_retry_differently:
        return _S.UNACCEPTABLE
    if facts.delivery is Delivery.ANSWERED and facts.will_retry_differently and not facts.is_final:
        return _S.PUT_OFF
    if facts.is_final or facts.delivery is None:
        return _S.LEFT
    if facts.delivery is not Delivery.ANSWERED:
        return _S.LOST
    if facts.retry_hint is RetryHint.REFRESH_TOKEN:
        return _S.TOKEN_REFUSED if facts.has_token else _S.REFUSED_FOR_GOOD
    if facts.retry_hint is not RetryHint.RAISE or facts.is_unforeseen or facts.others_may_serve:
        return _S.REFUSED
    return _S.REFUSED_FOR_GOOD


def judge_stream(facts: StreamFacts) -> RetryVerdict:
    """Return the verdict on a stream that ended."""
    return STREAM_VERDICTS[classify_stream(facts)]

"""Verdicts: what follows from a failed attempt. A pure table.

Knows: delivery, what the server's answer means, whether the call may run twice, how much is left. Never knows: clocks,
endpoints, tokens, or how a verdict is carried out.

Theory. A failed attempt leaves the request in one of three places: it surely did nothing (unsent, unprocessed, or
refused before it could run); it may have been carried out (no answer, or an answer that etcd also gives to what it
commits later); or the server answered for good. The first may always be made again, the second only if running twice
does no harm, the third never. `classify` reads the facts from top to bottom into one situation, and the table gives
each situation exactly one verdict for each kind of call.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from etcd_aio.errors import Delivery, Remedy


class Verdict(Enum):
    """What to do now."""

    RAISE = "raise"
    AT_ONCE = "next endpoint, at once"
    BACKOFF = "next endpoint, after the backoff"
    REFRESH_TOKEN = "refresh the token, then the same endpoint or another"  # noqa: S105 - no password


class Situation(Enum):
    """What became of an attempt, in the order in which the facts are looked at."""

    NOTHING_LEFT = "no time or attempts are left, or the caller or the server forbids another"
    UNSENT = "it never left this machine"
    UNPROCESSED = "the server promises that it did nothing"
    GIVEN_UP = "this side waits no longer for the member, since others answer"
    UNPROCESSED_AGAIN = "the server promised that already once for this call"
    TOKEN_REFUSED = "the server refused the token"  # noqa: S105 - no password
    REFUSED = "the server refused it before it could run, and another may take it"
    UNCERTAIN_ANSWER = "the server answered, but may still carry it out"
    NO_ANSWER = "it was sent and no answer came"
    FINAL_ANSWER = "the server answered for good"


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a verdict depends on.

    Attributes:
        delivery: how far the attempt got.
        remedy: what the server's answer asks for; only looked at if there was one.
        may_repeat: the RPC is repeatable, or the caller declared the call idempotent.
        may_continue: time and attempts are left, and neither the caller (`retry="never"`) nor the server (a negative
            pushback) forbids another attempt.
        has_token: there is a token that can be fetched anew, and that was not done for this very failure already.
        was_unprocessed: an earlier attempt of the call was unprocessed too.
        is_given_up: this side gave the attempt up, for the sake of the next.
    """

    delivery: Delivery
    remedy: Remedy
    may_repeat: bool
    may_continue: bool
    has_token: bool = False
    was_unprocessed: bool = False
    is_given_up: bool = False


_S, _V = Situation, Verdict

# situation: (verdict if the call may run twice, verdict if it must not)
VERDICTS: Final[Mapping[Situation, tuple[Verdict, Verdict]]] = {
    _S.NOTHING_LEFT: (_V.RAISE, _V.RAISE),
    _S.UNSENT: (_V.AT_ONCE, _V.AT_ONCE),
    _S.UNPROCESSED: (_V.AT_ONCE, _V.AT_ONCE),
    _S.GIVEN_UP: (_V.AT_ONCE, _V.RAISE),  # no failure to be patient with; a mutation is never given up
    # gRPC A6: once a request has reached servers, transparent retry is for the first refusal only.
    _S.UNPROCESSED_AGAIN: (_V.BACKOFF, _V.BACKOFF),
    _S.TOKEN_REFUSED: (_V.REFRESH_TOKEN, _V.REFRESH_TOKEN),
    _S.REFUSED: (_V.BACKOFF, _V.BACKOFF),
    _S.UNCERTAIN_ANSWER: (_V.BACKOFF, _V.RAISE),
    _S.NO_ANSWER: (_V.BACKOFF, _V.RAISE),
    _S.FINAL_ANSWER: (_V.RAISE, _V.RAISE),
}


def classify(facts: Facts) -> Situation:
    """The first situation that holds."""
    if not facts.may_continue:
        return _S.NOTHING_LEFT
    if facts.delivery is Delivery.UNSENT:
        return _S.UNSENT
    if facts.delivery is Delivery.UNPROCESSED:
        return _S.UNPROCESSED_AGAIN if facts.was_unprocessed else _S.UNPROCESSED
    if facts.delivery is Delivery.UNKNOWN:
        return _S.GIVEN_UP if facts.is_given_up else _S.NO_ANSWER
    if facts.remedy is Remedy.REFRESH_TOKEN:
        return _S.TOKEN_REFUSED if facts.has_token else _S.FINAL_ANSWER
    if facts.remedy is Remedy.RETRY_ELSEWHERE:
        return _S.REFUSED
    if facts.remedy is Remedy.RETRY_IF_REPEATABLE:
        return _S.UNCERTAIN_ANSWER
    return _S.FINAL_ANSWER


def judge(facts: Facts) -> Verdict:
    """What follows from a failed attempt."""
    if_repeatable, if_not = VERDICTS[classify(facts)]
    return if_repeatable if facts.may_repeat else if_not


def may_have_been_applied(delivery: Delivery, *, is_definite: bool) -> bool:
    """Whether the server may have carried out, or may yet carry out, what an attempt asked for.

    Args:
        delivery: how far the attempt got.
        is_definite: the server's answer proves that nothing was done; only looked at if there was one.
    """
    return delivery is Delivery.UNKNOWN or (delivery is Delivery.ANSWERED and not is_definite)

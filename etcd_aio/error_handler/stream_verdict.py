"""Stream verdicts: what follows when a supervised stream has ended. A pure table.

Knows: how the stream ended, what the server's answer means. Never knows: clocks, endpoints, tokens, or how a verdict is
carried out.

Theory. A call asks whether its request may run twice; a stream does not, since its conversation says everything again
on the next one. So the only question is whether another stream would fare better. If nothing but this connection or
this member stood against it, it would: at once where the member said nothing, after the backoff where it refused, since
the others probably do the same. If the server refuses what is said, or this side refuses the answer, it would not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from etcd_aio.errors import Delivery, Remedy


class StreamVerdict(Enum):
    """What to do now."""

    AT_ONCE = "open it elsewhere, at once"
    BACKOFF = "open it elsewhere, after the backoff"
    REFRESH_TOKEN = "refresh the token, then open it anew"  # noqa: S105 - no password
    END = "end watches; leases are retried until their deadlines"


class StreamSituation(Enum):
    """How a stream ended, in the order in which the facts are looked at."""

    UNACCEPTABLE = "an answer came that this side does not take, and would come again"
    LEFT = "this side left it, to say something else or somewhere else, or the server ended it with OK"
    LOST = "no gRPC status came back"
    TOKEN_REFUSED = "the server refused the token"  # noqa: S105 - no password
    REFUSED = "the server ended it, for a reason that passes or belongs to one member"
    REFUSED_FOR_GOOD = "the server refused what was said"


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """All that a verdict depends on.

    Attributes:
        delivery: how far a failed stream got; None if it did not fail: it was left, or ended with OK.
        remedy: what the server's answer asks for; only looked at if there was one.
        is_unforeseen: the answer is none that etcd lists: it has no status of its own.
        is_final: this side does not take what came, and another stream would bring the same.
        says_otherwise: unless its owner asks in another way, which it will.
        has_token: there is a token that can be fetched anew, and that was not done too often already.
        others_may_serve: the member does not know the method, but another one may.
    """

    delivery: Delivery | None
    remedy: Remedy = Remedy.RAISE
    is_unforeseen: bool = False
    is_final: bool = False
    says_otherwise: bool = False
    has_token: bool = False
    others_may_serve: bool = False


_S, _V = StreamSituation, StreamVerdict

STREAM_VERDICTS: Final[Mapping[StreamSituation, StreamVerdict]] = {
    _S.UNACCEPTABLE: _V.END,
    _S.LEFT: _V.AT_ONCE,
    _S.LOST: _V.AT_ONCE,
    _S.TOKEN_REFUSED: _V.REFRESH_TOKEN,
    _S.REFUSED: _V.BACKOFF,
    _S.REFUSED_FOR_GOOD: _V.END,
}


def classify_stream(facts: StreamFacts) -> StreamSituation:
    """The first situation that holds."""
    if facts.is_final and not facts.says_otherwise:
        return _S.UNACCEPTABLE
    if facts.is_final or facts.delivery is None:
        return _S.LEFT
    if facts.delivery is not Delivery.ANSWERED:
        return _S.LOST
    if facts.remedy is Remedy.REFRESH_TOKEN:
        return _S.TOKEN_REFUSED if facts.has_token else _S.REFUSED_FOR_GOOD
    if facts.remedy is not Remedy.RAISE or facts.is_unforeseen or facts.others_may_serve:
        return _S.REFUSED
    return _S.REFUSED_FOR_GOOD


def judge_stream(facts: StreamFacts) -> StreamVerdict:
    """What follows from the end of a stream."""
    return STREAM_VERDICTS[classify_stream(facts)]

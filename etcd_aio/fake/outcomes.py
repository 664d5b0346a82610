"""What becomes of a call, if it is more than a reply at once. Pure."""

from dataclasses import dataclass
from math import inf
from typing import Final

from etcd_aio.fake.refusals import Reason, Refusal

NEVER: Final = inf
_REQUEST_TIMEOUT: Final = 7.0  # seconds; five and two election timeouts


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call.

    Attributes:
        reply: the encoded reply; None if the call is refused or its connection lost.
        refusal: the status, if it is refused.
        delay: seconds until the caller gets it; infinite for no answer at all.
        loses_connection: the connection breaks instead of an answer.
        goes_away: the member announces that it takes no more calls on this connection.
    """

    reply: bytes | None = None
    refusal: Refusal | None = None
    delay: float = 0.0
    loses_connection: bool = False
    goes_away: bool = False


def timed_out() -> Outcome:
    """The outcome of a call that needs a leader, on a member that has none."""
    return Outcome(refusal=Refusal(Reason.TIMEOUT), delay=_REQUEST_TIMEOUT)

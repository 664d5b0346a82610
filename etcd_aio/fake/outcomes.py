"""Outcomes of a call that are more than a reply at once. Pure."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from etcd_aio.fake.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER: Final = inf


@dataclass(frozen=True, slots=True)
class CallOutcome:
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


class PendingCall:
    """The outcome of a call that waits for a leader: there will be one.

    Attributes:
        is_wanted: whether the caller still waits; a call that was given up is not run any more.
        on_answer: called with the outcome.
    """

    def __init__(self) -> None:
        self.is_wanted: Callable[[], bool] = lambda: True
        self.on_answer: Callable[[bytes | Refusal], None] = lambda answer: None
